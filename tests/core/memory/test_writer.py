import errno
import itertools
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.errors import LamellaError, MemoryConflict, UsageError
from lamella.memory.hunks import content_hash
from lamella.memory.journal import read_journal
from lamella.memory.writer import MemoryWriter
from lamella.types.memory import Provenance

DATA = Path(__file__).parents[2] / "data" / "memory"
WHO = Provenance("memory_append", "agent:main:main", "s1", "call-7", "user")
NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)


def writer_in(folder: Path, now: datetime = NOON, **options: float) -> MemoryWriter:
    (folder / "ws").mkdir(exist_ok=True)
    return MemoryWriter(folder / "ws", folder / "state", "UTC", clock=lambda: now, **options)


@pytest.fixture
def writer(tmp_path: Path) -> MemoryWriter:
    return writer_in(tmp_path)


def put(writer: MemoryWriter, name: str, data: bytes) -> Path:
    path = writer.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_todays_note_is_made_with_its_title(writer: MemoryWriter) -> None:
    first = writer.append(None, "- one\n- two\n\n", WHO)
    second = writer.append(None, "- three", WHO)
    assert (writer.workspace / first.path).read_text() == "# 2026-05-10\n\n- one\n- two\n- three\n"
    assert (first.path, first.start_line, first.end_line) == ("memory/2026-05-10.md", 3, 4)
    assert (second.start_line, second.end_line, second.bytes_written) == (5, 5, 8)


def test_the_day_is_the_users(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    late = datetime(2026, 5, 10, 23, 30, tzinfo=UTC)
    writer = MemoryWriter(tmp_path / "ws", tmp_path / "state", "Asia/Shanghai", clock=lambda: late)
    assert writer.append(None, "x", WHO).path == "memory/2026-05-11.md"


def test_a_wrong_zone_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Mars"):
        MemoryWriter(tmp_path, tmp_path, "Mars/Olympus")


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (b"# a\n- b", b"# a\n- b\n- new\n", (3, 3)),
        (b"# a\r\n- b\r\n", b"# a\r\n- b\r\n- new\r\n", (3, 3)),
        (b"# a\r\n- b", b"# a\r\n- b\r\n- new\r\n", (3, 3)),
        (b"\xef\xbb\xbf# a\r\n\r\n", b"\xef\xbb\xbf# a\r\n\r\n- new\r\n", (3, 3)),
        (b"\xef\xbb\xbf", b"\xef\xbb\xbf- new\n", (1, 1)),
        (b"", b"- new\n", (1, 1)),
        (b"caf\xe9\r kept\n", b"caf\xe9\r kept\n- new\n", (2, 2)),
    ],
)
def test_what_stood_there_stays_byte_for_byte(
    writer: MemoryWriter, old: bytes, new: bytes, lines: tuple[int, int]
) -> None:
    path = put(writer, "memory/a.md", old)
    written = writer.append("memory/a.md", "- new", WHO)
    assert path.read_bytes() == new
    assert (written.start_line, written.end_line) == lines
    assert written.bytes_written == len(new) - len(old)


def test_line_ends_and_halves_of_characters_are_put_right(writer: MemoryWriter) -> None:
    path = put(writer, "MEMORY.md", b"- a\r\n")
    writer.append("MEMORY.md", "\n- b \ud83d\ude00\r- c \ud83d\r\n- d\n", WHO)
    assert path.read_bytes() == "- a\r\n- b 😀\r\n- c \ufffd\r\n- d\r\n".encode()


def test_a_utf16_file_is_refused_and_stays(writer: MemoryWriter) -> None:
    path = put(writer, "memory/a.md", "日本\n".encode("utf-16"))
    with pytest.raises(UsageError, match="UTF-16"):
        writer.append("memory/a.md", "x", WHO)
    assert path.read_bytes() == "日本\n".encode("utf-16")


@pytest.mark.parametrize("text", ["", "  \n ", "\r\n"])
def test_nothing_is_refused(writer: MemoryWriter, text: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        writer.append(None, text, WHO)
    assert not (writer.workspace / "memory").exists()


def test_a_missing_workspace_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        MemoryWriter(tmp_path / "none", tmp_path / "state").append(None, "x", WHO)
    assert not (tmp_path / "none").exists()


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec=None, exclude_categories=())), min_size=1, max_size=5))
def test_appends_only_add(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    writer = writer_in(tmp_path_factory.mktemp("w"))
    path = writer.workspace / "memory" / "2026-05-10.md"
    for text in texts:
        before = path.read_bytes() if path.exists() else b""
        try:
            written = writer.append(None, text, WHO)
        except UsageError:
            continue
        after = path.read_bytes()
        assert after.startswith(before)
        assert after.endswith(b"\n")
        after.decode("utf-8")
        assert written.end_line == after.count(b"\n")
        assert written.bytes_written == len(after) - len(before)


# --- compare and swap ------------------------------------------------------------------------------


def test_replacing_needs_the_content_that_was_read(writer: MemoryWriter) -> None:
    path = put(writer, "MEMORY.md", b"old\n")
    seen = writer.hash_of("MEMORY.md")
    assert seen == content_hash(b"old\n")
    path.write_bytes(b"changed by hand\n")
    with pytest.raises(MemoryConflict, match="changed"):
        writer.replace("MEMORY.md", "new\n", seen, WHO)
    assert path.read_bytes() == b"changed by hand\n"
    written = writer.replace("MEMORY.md", "new\nlines", writer.hash_of("MEMORY.md"), WHO)
    assert path.read_bytes() == b"new\nlines"
    assert (written.start_line, written.end_line) == (1, 2)


def test_a_new_file_must_not_exist_yet(writer: MemoryWriter) -> None:
    assert writer.hash_of("memory/deep/er/a.md") is None
    writer.replace("memory/deep/er/a.md", "one\n", None, WHO)
    with pytest.raises(MemoryConflict):
        writer.replace("memory/deep/er/a.md", "two\n", None, WHO)
    assert (writer.workspace / "memory/deep/er/a.md").read_text() == "one\n"


def test_replacing_keeps_the_files_conventions(writer: MemoryWriter) -> None:
    path = put(writer, "MEMORY.md", b"\xef\xbb\xbfa\r\nb\r\n")
    writer.replace("MEMORY.md", "a\nc\n", writer.hash_of("MEMORY.md"), WHO)
    assert path.read_bytes() == b"\xef\xbb\xbfa\r\nc\r\n"
    writer.replace("MEMORY.md", "a\r\nd\n", writer.hash_of("MEMORY.md"), WHO)
    assert path.read_bytes() == b"\xef\xbb\xbfa\r\nd\n"


# --- journal -----------------------------------------------------------------------------------------


def test_every_write_is_journalled_with_who_made_it(writer: MemoryWriter) -> None:
    writer.append(None, "- one", WHO)
    writer.replace("MEMORY.md", "x\n", None, Provenance("write"))
    one, two = read_journal(writer.state_dir).entries
    assert one.provenance == WHO
    assert (one.time, one.path, one.mode) == ("2026-05-10T12:00:00.000Z", "memory/2026-05-10.md", "append")
    assert (one.start_line, one.end_line, one.before) == (3, 3, "")
    assert one.after == writer.hash_of("memory/2026-05-10.md")
    assert (two.mode, two.bytes, two.provenance.actor) == ("replace", 2, "write")


def test_the_journal_can_be_cut_at_any_byte(writer: MemoryWriter) -> None:
    for i in range(3):
        writer.append(None, f"- {i} ü", WHO)
    path = writer.state_dir / "memory-journal.jsonl"
    whole = path.read_bytes()
    entries = read_journal(writer.state_dir).entries
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        read = read_journal(writer.state_dir)
        assert read.entries == entries[: len(read.entries)]
        assert len(read.entries) >= whole[:cut].count(b"\n")
    path.write_bytes(whole[:-10])
    writer.append(None, "- after the crash", WHO)
    read = read_journal(writer.state_dir)
    assert (len(read.entries), read.damaged) == (3, 1)
    assert read.entries[:2] == entries[:2]


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert read_journal(tmp_path).entries == ()


# --- faults ------------------------------------------------------------------------------------------

FAULTS = [
    (fault, where)
    for fault in json.loads((DATA / "K143-faults.json").read_text())
    for where in ("note", "journal")
    if fault["op"] != "kill" and (fault["op"], where) != ("rename", "journal")
]


@pytest.mark.parametrize(("fault", "where"), FAULTS, ids=str)
def test_a_full_or_broken_disk_changes_nothing(
    writer: MemoryWriter, monkeypatch: pytest.MonkeyPatch, fault: dict[str, object], where: str
) -> None:
    note = put(writer, "memory/2026-05-10.md", b"# 2026-05-10\n\n- old\n")
    writer.append(None, "- first", WHO)
    old, journal = note.read_bytes(), (writer.state_dir / "memory-journal.jsonl").read_bytes()
    code = getattr(errno, str(fault["errno"]))
    calls = 0

    def failing(name: str, real: object) -> object:
        def call(*arguments: object) -> object:
            nonlocal calls
            target = str(Path(f"/proc/self/fd/{arguments[0]}").readlink()) if isinstance(arguments[0], int) else "note"
            calls += 1
            if ("journal" in target) != (where == "journal"):
                return real(*arguments)  # type: ignore[operator]
            if name == "write" and fault["after"] and calls < 3:
                return real(arguments[0], bytes(arguments[1])[: fault["after"]])  # type: ignore[operator, call-overload, misc]
            raise OSError(code, os.strerror(code))

        return call

    name = "replace" if fault["op"] == "rename" else str(fault["op"])
    with monkeypatch.context() as patch:
        patch.setattr(os, name, failing(name, getattr(os, name)))
        with pytest.raises(LamellaError, match=r"cannot write memory/2026-05-10\.md") as caught:
            writer.append(None, "- lost", WHO)
    if code == errno.ENOSPC:
        assert "disk space" in caught.value.hint
    assert note.read_bytes() == old
    assert (writer.state_dir / "memory-journal.jsonl").read_bytes() == journal
    writer.append(None, "- second", WHO)
    assert note.read_bytes() == old + b"- second\n"
    assert [p.name for p in note.parent.iterdir()] == ["2026-05-10.md"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_killed_writer_leaves_the_old_content(tmp_path: Path, call: str) -> None:
    writer = writer_in(tmp_path)
    writer.append(None, "- old", WHO)
    note = writer.workspace / "memory" / "2026-05-10.md"
    old = note.read_bytes()
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from lamella.memory.writer import MemoryWriter\n"
        "from lamella.types.memory import Provenance\n"
        f"def die(*a): os.kill(os.getpid(), signal.SIGKILL)\n"
        f"os.{call} = die\n"
        "writer = MemoryWriter(Path(sys.argv[1]), Path(sys.argv[2]), 'UTC')\n"
        "writer.append('memory/2026-05-10.md', 'x', Provenance('t'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(writer.workspace), str(writer.state_dir)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert note.read_bytes() == old
    writer.append(None, "- new", WHO)
    assert note.read_bytes() == old + b"- new\n"
    assert [p.name for p in note.parent.iterdir()] == ["2026-05-10.md"]


# --- several processes -------------------------------------------------------------------------------


APPEND_MANY = """
import sys
from pathlib import Path
from lamella.memory.writer import MemoryWriter
from lamella.types.memory import Provenance
workspace, state, name = sys.argv[1:]
writer = MemoryWriter(Path(workspace), Path(state), "UTC")
for i in range(15):
    writer.append("memory/2026-05-10.md", f"- {name} {i}\\n  second line", Provenance("test"))
"""


def test_processes_lose_and_mix_nothing(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    command = [sys.executable, "-c", APPEND_MANY, str(tmp_path / "ws"), str(tmp_path / "state")]
    for worker in [subprocess.Popen([*command, name]) for name in ("a", "b", "c")]:
        assert worker.wait() == 0
    lines = (tmp_path / "ws/memory/2026-05-10.md").read_text().splitlines()[2:]
    assert lines[1::2] == ["  second line"] * 45
    for name in ("a", "b", "c"):
        assert [x for x in lines if x.startswith(f"- {name} ")] == [f"- {name} {i}" for i in range(15)]
    entries = read_journal(tmp_path / "state").entries
    assert len(entries) == 45
    assert all(a.after == b.before for a, b in itertools.pairwise(entries))


def test_a_lock_that_is_not_free_in_time_is_an_error(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, lock_timeout=0.05)
    writer.append(None, "- a", WHO)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import filelock, sys; lock = filelock.FileLock(sys.argv[1]); lock.acquire();"
            "print('held', flush=True); sys.stdin.read()",
            str(tmp_path / "state" / "locks" / "memory-writer.lock"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None and holder.stdin is not None
        holder.stdout.readline()
        with pytest.raises(LamellaError, match="another process"):
            writer.append(None, "- b", WHO)
        holder.stdin.close()
    writer.append(None, "- c", WHO)
