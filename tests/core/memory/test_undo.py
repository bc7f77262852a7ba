"""Writes to memory can be taken back: alone, whatever came after them, and never over somebody's changes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.errors import MemoryConflict, UsageError
from lamella.memory.journal import JournalEntry, read_journal
from lamella.memory.writer import MemoryWriter
from lamella.types.memory import Provenance

WHO = Provenance("memory_append", "agent:main:main", "s1", "e1", "user")
NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
NOTE = "memory/2026-05-10.md"


def writer_in(folder: Path) -> MemoryWriter:
    (folder / "ws").mkdir(exist_ok=True)
    return MemoryWriter(folder / "ws", folder / "state", "UTC", clock=lambda: NOON)


@pytest.fixture
def writer(tmp_path: Path) -> MemoryWriter:
    return writer_in(tmp_path)


def note(writer: MemoryWriter, data: bytes | None = None, name: str = NOTE) -> Path:
    path = writer.workspace / name
    if data is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return path


def last(writer: MemoryWriter) -> JournalEntry:
    return read_journal(writer.state_dir).entries[-1]


def append(writer: MemoryWriter, text: str) -> str:
    writer.append(NOTE, text, WHO)
    return last(writer).id


def replace(writer: MemoryWriter, text: str, name: str = NOTE) -> str:
    writer.replace(name, text, writer.hash_of(name), WHO)
    return last(writer).id


# --- what comes back --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "old",
    [
        b"",
        b"\xef\xbb\xbf",
        b"- a\n",
        b"- a",
        b"- a\r\n- b\r\n",
        b"\xef\xbb\xbf- a\r\n",
        b"\n\n",
        b"caf\xe9\n",
        "- 茶\n".encode(),
    ],
)
def test_an_append_is_taken_back_byte_for_byte(writer: MemoryWriter, old: bytes) -> None:
    path = note(writer, old)
    written = append(writer, "- one\n- two")
    longer = len(path.read_bytes())
    undo = writer.undo(written, Provenance("cli"))
    assert path.read_bytes() == old
    assert (undo.path, undo.bytes_written) == (NOTE, len(old) - longer)


def test_what_was_written_later_stays(writer: MemoryWriter) -> None:
    path = note(writer, b"- old\n")
    first = append(writer, "- one\n- two")
    append(writer, "- three")
    path.write_bytes(b"typed above\n" + path.read_bytes() + b"typed below\n")
    writer.undo(first, WHO)
    assert path.read_bytes() == b"typed above\n- old\n- three\ntyped below\n"


def test_a_replaced_text_comes_back_in_every_place(writer: MemoryWriter) -> None:
    path = note(writer, b"# Tea\r\n- at four\r\n\r\n# Boiler\r\n- Anna\r\n- May\r\n")
    written = replace(writer, "# Tea\n- at five\n- with milk\n\n# Boiler\n- May\n")
    assert path.read_bytes() == b"# Tea\r\n- at five\r\n- with milk\r\n\r\n# Boiler\r\n- May\r\n"
    append(writer, "- later")
    writer.undo(written, WHO)
    assert path.read_bytes() == b"# Tea\r\n- at four\r\n\r\n# Boiler\r\n- Anna\r\n- May\r\n- later\r\n"


def test_of_equal_lines_those_with_the_same_neighbours_are_meant(writer: MemoryWriter) -> None:
    path = note(writer, b"# notes\n")
    append(writer, "## tea\n- done")
    append(writer, "## boiler")
    written = append(writer, "- done")
    path.write_bytes(b"# notes\n## boiler\n- done\n\n\n## tea\n- done\n")
    writer.undo(written, WHO)
    assert path.read_bytes() == b"# notes\n## boiler\n\n\n## tea\n- done\n"


def test_a_byte_order_mark_stays_where_it_is(writer: MemoryWriter) -> None:
    path = note(writer, b"\xef\xbb\xbf- a\r\n- b\r\n")
    written = replace(writer, "- b\n")
    assert path.read_bytes() == b"\xef\xbb\xbf- b\r\n"
    writer.undo(written, WHO)
    assert path.read_bytes() == b"\xef\xbb\xbf- a\r\n- b\r\n"


def test_lines_that_were_only_removed_come_back_between_their_neighbours(writer: MemoryWriter) -> None:
    path = note(writer, b"- a\n- b\n- c\n- d\n")
    written = replace(writer, "- a\n- d\n")
    path.write_bytes(b"- x\n- y\n- a\n- d\n- z\n")
    writer.undo(written, WHO)
    assert path.read_bytes() == b"- x\n- y\n- a\n- b\n- c\n- d\n- z\n"


def test_an_emptied_file_comes_back(writer: MemoryWriter) -> None:
    path = note(writer, b"- a\n- b\n")
    writer.undo(replace(writer, ""), WHO)
    assert path.read_bytes() == b"- a\n- b\n"


def test_an_undo_is_journalled_and_can_be_undone(writer: MemoryWriter) -> None:
    path = note(writer, b"- old\n")
    written = append(writer, "- new")
    writer.undo(written, Provenance("cli", trigger="user"))
    undo = last(writer)
    assert (undo.mode, undo.undoes, undo.actor, undo.before != undo.after) == ("undo", written, "cli", True)
    assert path.read_bytes() == b"- old\n"
    with pytest.raises(UsageError, match=f"undone already, by {undo.id}"):
        writer.undo(written, WHO)
    writer.undo(undo.id, WHO)
    assert path.read_bytes() == b"- old\n- new\n"
    writer.undo(written, WHO)
    assert path.read_bytes() == b"- old\n"


def test_the_beginning_of_an_id_is_enough_and_must_mean_one(writer: MemoryWriter) -> None:
    written = append(writer, "- new")
    append(writer, "- newer")
    for wrong in ("", "zz"):
        with pytest.raises(UsageError, match="no memory writes have ids that begin"):
            writer.undo(wrong, WHO)
    assert writer.undo(written[:11], WHO).path == NOTE


# --- a file that the write made ---------------------------------------------------------------------------


def test_a_new_note_goes_when_nothing_else_is_in_it(writer: MemoryWriter) -> None:
    written = append(writer, "- one")
    writer.undo(written, WHO)
    assert not note(writer).exists()
    assert last(writer).after == ""
    writer.undo(last(writer).id, WHO)
    assert note(writer).read_bytes() == b"# 2026-05-10\n\n- one\n"


def test_the_title_stays_for_what_was_written_later(writer: MemoryWriter) -> None:
    first = append(writer, "- one")
    second = append(writer, "- two")
    writer.undo(first, WHO)
    assert note(writer).read_bytes() == b"# 2026-05-10\n\n- two\n"
    writer.undo(second, WHO)
    assert note(writer).read_bytes() == b"# 2026-05-10\n\n"


def test_a_title_that_was_changed_by_hand_stays(writer: MemoryWriter) -> None:
    written = append(writer, "- one")
    note(writer, b"# Sunday\n\n- one\n")
    writer.undo(written, WHO)
    assert note(writer).read_bytes() == b"# Sunday\n\n"


# --- what is refused -----------------------------------------------------------------------------------------


def test_lines_that_have_changed_are_shown_and_left_alone(writer: MemoryWriter) -> None:
    path = note(writer, b"- old\n")
    written = append(writer, "- tea at four\n- 锅炉在五月")
    path.write_bytes("- old\n- tea at four\n- 锅炉在六月\n".encode())
    before = path.read_bytes(), len(read_journal(writer.state_dir).entries)
    with pytest.raises(MemoryConflict) as caught:
        writer.undo(written, WHO)
    shown = str(caught.value).split("\n")
    assert NOTE in shown[0] and written in shown[0]
    assert {"-- 锅炉在五月", "+- 锅炉在六月"} <= set(shown)
    assert (path.read_bytes(), len(read_journal(writer.state_dir).entries)) == before


@pytest.mark.parametrize("now", [None, b"", b"- other\n", b"- two\n- one\n", b"- one\nbetween\n- two\n"])
def test_lines_that_are_gone_or_apart_are_refused(writer: MemoryWriter, now: bytes | None) -> None:
    path = note(writer, b"- old\n")
    written = append(writer, "- one\n- two")
    path.write_bytes(now) if now is not None else path.unlink()
    with pytest.raises(MemoryConflict, match="have changed since"):
        writer.undo(written, WHO)
    assert (path.read_bytes() if path.exists() else None) == now


def test_removed_lines_without_a_neighbour_left_are_refused(writer: MemoryWriter) -> None:
    path = note(writer, b"- x\n- y\n- z\n- a\n- gone\n- b\n- u\n- v\n- w\n")
    written = replace(writer, "- x\n- y\n- z\n- a\n- b\n- u\n- v\n- w\n")
    path.write_bytes(b"quite\nother\nwords\n")
    with pytest.raises(MemoryConflict):
        writer.undo(written, WHO)


def test_a_long_diff_is_cut(writer: MemoryWriter) -> None:
    path = note(writer, b"")
    written = append(writer, "\n".join(f"- {i}" for i in range(500)))
    path.write_bytes(path.read_bytes().replace(b"- 1", b"- !"))
    with pytest.raises(MemoryConflict, match=r"\.\.\. \d+ more lines") as caught:
        writer.undo(written, WHO)
    assert str(caught.value).count("\n") < 70


def test_a_write_that_changed_no_line_cannot_be_undone(writer: MemoryWriter) -> None:
    note(writer, b"- a\n")
    written = replace(writer, "- a")
    with pytest.raises(UsageError, match="changed no line"):
        writer.undo(written, WHO)


def test_a_write_of_another_workspace_is_refused(writer: MemoryWriter, tmp_path: Path) -> None:
    written = append(writer, "- one")
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="was made in workspace"):
        MemoryWriter(tmp_path / "other", tmp_path / "state", "UTC").undo(written, WHO)


# --- secrets ---------------------------------------------------------------------------------------------------

SECRET = "- password: hunter22"


def test_the_journal_holds_no_secret_and_an_added_one_can_be_taken_back(writer: MemoryWriter) -> None:
    path = note(writer, b"- old\n")
    written = append(writer, SECRET)
    assert b"hunter22" not in (writer.state_dir / "memory-journal.jsonl").read_bytes()
    path.write_bytes(path.read_bytes().replace(b"hunter22", b"hunter23"))
    with pytest.raises(MemoryConflict, match="only what is masked"):
        writer.undo(written, WHO)
    path.write_bytes(path.read_bytes().replace(b"hunter23", b"hunter22"))
    writer.undo(written, WHO)
    assert path.read_bytes() == b"- old\n"


def test_a_replaced_secret_is_gone_for_good(writer: MemoryWriter) -> None:
    path = note(writer, f"{SECRET}\n- tea\n".encode())
    written = replace(writer, "- tea\n")
    with pytest.raises(UsageError, match="hold a secret"):
        writer.undo(written, WHO)
    assert path.read_bytes() == b"- tea\n"
    assert not [p for p in writer.state_dir.rglob("*") if p.is_file() and b"hunter22" in p.read_bytes()]


def test_a_secret_is_masked_by_lines_that_did_not_change(writer: MemoryWriter) -> None:
    body = [f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{i:04}" for i in range(40)]
    key = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----", "- tea"]
    note(writer, "\n".join(key).encode())
    replace(writer, "\n".join([*key[:20], "MIIEvQchanged", *key[21:]]))
    stored = (writer.state_dir / "memory-journal.jsonl").read_bytes()
    assert last(writer).hunks
    assert b"MIIEvQ" not in stored


def test_bytes_that_are_no_text_are_not_made_up(writer: MemoryWriter) -> None:
    note(writer, b"caf\xe9\n- a\n")
    written = replace(writer, "- a\n")
    with pytest.raises(UsageError, match="not UTF-8"):
        writer.undo(written, WHO)


# --- always ------------------------------------------------------------------------------------------------------

TEXT = st.lists(st.sampled_from(["- a", "- b", "", "- 茶", "# T", "password: hunter22"]), min_size=1, max_size=6)
END = st.sampled_from(["\n", "\r\n"])


@settings(deadline=None, max_examples=60)
@given(before=TEXT, text=TEXT.filter(lambda lines: any(lines)), end=END, closed=st.booleans())
def test_undo_right_after_an_append_gives_the_old_bytes(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], text: list[str], end: str, closed: bool
) -> None:
    writer = writer_in(tmp_path_factory.mktemp("w"))
    path = note(writer, (end.join(before) + (end if closed else "")).encode())
    old = path.read_bytes()
    writer.undo(append(writer, "\n".join(text)), WHO)
    assert path.read_bytes() == old


@settings(deadline=None, max_examples=60)
@given(before=TEXT, after=TEXT, end=END)
def test_undo_of_a_replacement_gives_the_old_lines_and_its_undo_the_new_ones(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], after: list[str], end: str
) -> None:
    writer = writer_in(tmp_path_factory.mktemp("w"))
    path = note(writer, (end.join(before) + end).encode())
    old = path.read_bytes()
    written = replace(writer, end.join(after) + end)
    new = path.read_bytes()
    if old == new:
        return
    try:
        writer.undo(written, WHO)
    except UsageError as error:
        assert "hold a secret" in str(error)
        assert path.read_bytes() == new
        return
    assert path.read_bytes() == old
    if last(writer).mode == "undo" and "password" not in new.decode():
        writer.undo(last(writer).id, WHO)
        assert path.read_bytes() == new
