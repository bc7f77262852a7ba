import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_tables import contents
from notes import copy_case, make_workspace, open_backend

from lamella.errors import MemoryUnavailable, UsageError
from lamella.types.memory import SearchQuery
from lamella_memory_core import Config
from lamella_memory_core.index.database import Database


def paths(workspace: Path, words: str) -> list[str]:
    return [h.path for h in open_backend(workspace).search(SearchQuery(words)).hits]


# --- what a sync sees and does -----------------------------------------------------------------------


def test_a_sync_tells_what_it_did(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"MEMORY.md": "- a fact\n", "memory/a.md": "alpha\n", "memory/b.md": "beta\n"})
    backend = open_backend(workspace)
    first = backend.sync()
    assert (first.workspace, first.seen, first.added, first.chunks, first.rebuilt) == (str(workspace), 3, 3, 3, "")
    (workspace / "memory/a.md").write_text("gamma\n")
    (workspace / "memory/b.md").unlink()
    (workspace / "memory/c.md").write_text("")
    second = backend.sync()
    assert (second.seen, second.added, second.updated, second.unchanged, second.removed) == (3, 1, 1, 1, 1)
    assert (second.chunks, second.ok) == (2, True)
    assert backend.sync().unchanged == 3


def test_a_missing_workspace_is_an_error_and_an_empty_one_is_not(tmp_path: Path) -> None:
    backend = open_backend(tmp_path / "none")
    for action in (backend.sync, lambda: backend.search(SearchQuery("x"))):
        with pytest.raises(UsageError, match="none"):
            action()
    workspace = make_workspace(tmp_path, {"README.txt": "nothing here"})
    report = open_backend(workspace).sync()
    assert (report.workspace, report.seen, report.chunks, report.ok) == (str(workspace), 0, 0, True)
    assert [p.name for p in workspace.iterdir()] == ["README.txt"]


def test_one_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"MEMORY.md": "oak", "memory/2026-05-10.md": "pine", "memory/bad.md/x": ""})
    report = open_backend(workspace).sync()
    assert (report.seen, report.added, report.ok) == (3, 2, False)
    assert [(p.path, "folder" in p.reason) for p in report.failed] == [("memory/bad.md", True)]
    assert paths(workspace, "pine") == ["memory/2026-05-10.md"]


def test_a_read_error_keeps_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "oak", "memory/sub/b.md": "pine"})
    backend = open_backend(workspace)
    backend.sync()
    real_open, real_scandir = os.open, os.scandir

    def refusing_open(path: object, *rest: object, **more: object) -> int:
        if str(path).endswith("a.md"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *rest, **more)  # type: ignore[arg-type]

    def refusing_scandir(path: object) -> object:
        if str(path).endswith("sub"):
            raise PermissionError(13, "Permission denied")
        return real_scandir(path)  # type: ignore[call-overload]

    (workspace / "memory/a.md").write_text("elm")
    monkeypatch.setattr(os, "open", refusing_open)
    monkeypatch.setattr(os, "scandir", refusing_scandir)
    report = backend.sync()
    assert [p.path for p in report.failed] == ["memory/sub", "memory/a.md"]
    assert (report.removed, report.chunks) == (0, 2)


def test_links_are_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("platypus")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/more.md").write_text("platypus")
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi"})
    (workspace / "memory/link.md").symlink_to(tmp_path / "secret.md")
    (workspace / "memory/linkdir").symlink_to(tmp_path / "outside")
    os.link(tmp_path / "secret.md", workspace / "memory/hard.md")
    report = open_backend(workspace).sync()
    assert (report.seen, report.ok) == (1, True)
    assert [p.path for p in report.skipped] == ["memory/hard.md", "memory/link.md", "memory/linkdir"]
    assert paths(workspace, "platypus") == []
    (workspace / "memory/a.md").unlink()
    (workspace / "memory/a.md").symlink_to(tmp_path / "secret.md")
    assert open_backend(workspace).sync().removed == 1


def test_what_is_left_out_is_named_on_one_line(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a\nfailed: b.md": "x", "memory/\x1b[31mc.md": "x"})
    with contextlib.suppress(OSError, UnicodeError):  # not every disk takes such a name
        (workspace / "memory/d\udcff.md").write_text("x")
    named = [p.path for p in open_backend(workspace).sync().skipped]
    assert named[:2] == ["memory/\\x1b[31mc.md", "memory/a\\nfailed: b.md"]
    assert named[2:] in ([], ["memory/d\\udcff.md"])


def test_status_of_an_index_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi"})
    (tmp_path / "state/memory.sqlite").mkdir(parents=True)
    status = open_backend(workspace).status()
    assert "memory.sqlite cannot be used" in status["problem"]
    assert (status["files"], status["behind"]) == (0, None)


def test_a_linked_memory_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.md").write_text("okapi")
    workspace = make_workspace(tmp_path, {})
    (workspace / "memory").symlink_to(tmp_path / "elsewhere")
    report = open_backend(workspace).sync()
    assert (report.seen, [p.path for p in report.skipped]) == (0, ["memory"])


def test_the_lower_case_file_counts_only_alone(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory.md": "okapi lower"})
    assert paths(workspace, "okapi") == ["memory.md"]
    (workspace / "MEMORY.md").write_text("okapi upper")
    assert paths(workspace, "okapi") == ["MEMORY.md"]


def test_the_same_files_are_taken_as_by_the_original(tmp_path: Path) -> None:
    workspace = copy_case("golden", tmp_path)
    open_backend(workspace).sync()
    indexed = {str(row[0]) for row in contents(workspace)}
    assert {"MEMORY.md", "memory/.hidden.md", "memory/deep/er/est.md", "memory/empty.md"} <= indexed
    assert not indexed & {"memory/UPPER.MD", "memory/notes.txt", "notes/outside-default.md"}


def test_a_huge_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "x" * 100, "memory/b.md": "y"})
    monkeypatch.setattr("lamella_memory_core.index.sync.MAX_FILE_BYTES", 50)
    backend = open_backend(workspace)
    report = backend.sync()
    assert (report.added, [p.path for p in report.failed]) == (1, ["memory/a.md"])
    assert backend.status()["behind"] == 0
    (workspace / "memory/b.md").write_text("y" * 100)
    assert backend.status()["behind"] == 1
    assert (backend.sync().removed, backend.status()["behind"]) == (1, 0)


def test_a_file_that_cannot_be_read_is_no_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "oak", "memory/b.md": "pine"})
    real_open = os.open

    def refusing_open(path: object, *rest: object, **more: object) -> int:
        if str(path).endswith("a.md"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refusing_open)
    backend = open_backend(workspace)
    backend.search(SearchQuery("makes the index", as_is=True))
    assert backend.status()["behind"] == 1
    assert [p.path for p in backend.sync().failed] == ["memory/a.md"]
    assert backend.status()["behind"] == 0


def test_chunks_are_slices_of_the_file(tmp_path: Path) -> None:
    workspace = copy_case("golden", tmp_path)
    open_backend(workspace).sync()
    for path, _, _, _, start_line, _, start, end, _, text, *_ in contents(workspace):
        if text is not None:
            source = (workspace / str(path)).read_bytes().decode("utf-8-sig")
            assert source[start:end] == text  # type: ignore[misc]
            assert source[:start].count("\n") + 1 == start_line  # type: ignore[misc]


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    workspace = make_workspace(
        tmp_path, {"memory/latin.md": b"caf\xe9 opens at nine\n", "memory/nul.md": b"okapi \x00 zebra\n"}
    )
    assert open_backend(workspace).sync().ok
    assert paths(workspace, "opens nine") == ["memory/latin.md"]
    assert paths(workspace, "zebra") == ["memory/nul.md"]


# --- an index after any edits is the index of a fresh start ----------------------------------------------

names = st.sampled_from(["MEMORY.md", "memory.md", "memory/a.md", "memory/b.md", "memory/d/c.md", "memory/x.txt"])
texts = st.sampled_from(["", "\n", "oak tree\n", "elm tree\n", "- one\n- two\n" * 40, "汉字笔记\r\n第二行\r\n"])
edits = st.one_of(
    st.tuples(st.just("write"), names, texts),
    st.tuples(st.just("delete"), names, st.just("")),
    st.tuples(st.just("touch"), names, st.just("")),
    st.tuples(st.just("sync"), names, st.just("")),
    st.tuples(st.just("force"), names, st.just("")),
)


def apply(workspace: Path, edit: tuple[str, str, str]) -> None:
    action, name, text = edit
    path = workspace / name
    if action == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, newline="")
    elif action == "delete":
        path.unlink(missing_ok=True)
    elif action == "touch" and path.exists():
        os.utime(path, (1_000_000_000, 1_000_000_000))
    elif action in ("sync", "force"):
        open_backend(workspace).sync(force=action == "force")


@settings(deadline=None, max_examples=40)
@given(st.lists(edits, max_size=14))
def test_any_edits_give_the_index_of_a_fresh_start(sequence: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_workspace(Path(folder), {})
        for edit in sequence:
            apply(workspace, edit)
        report = open_backend(workspace).sync()
        fresh = open_backend(workspace, state="fresh").sync()
        assert contents(workspace) == contents(workspace, "fresh")
        assert (report.chunks, report.seen) == (fresh.chunks, fresh.seen)


def test_an_edit_of_the_same_size_at_the_same_time_is_seen(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "oak"})
    assert paths(workspace, "oak") == ["memory/a.md"]
    stat = (workspace / "memory/a.md").stat()
    (workspace / "memory/a.md").write_text("elm")
    os.utime(workspace / "memory/a.md", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert paths(workspace, "elm") == ["memory/a.md"]


def test_a_settled_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "oak"})
    monkeypatch.setattr("lamella_memory_core.index.changes._SETTLED_NS", -(10**18))
    backend = open_backend(workspace)
    backend.sync()
    monkeypatch.setattr("lamella_memory_core.index.changes.read_content", lambda _file: pytest.fail("was read again"))
    assert backend.sync().unchanged == 1


def test_other_settings_rebuild_the_index_and_say_so(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "words and more words\n" * 60})
    before = open_backend(workspace).sync()
    after = open_backend(workspace, Config(chunk_tokens=64, chunk_overlap=0, embedder="none")).sync()
    assert "settings" in after.rebuilt
    assert (after.added, after.chunks > before.chunks) == (1, True)


# --- broken, foreign, busy -------------------------------------------------------------------------------


def damage_header(path: Path) -> None:
    path.write_bytes(b"this is not a database, but longer than a header of one" * 20)


def damage_pages(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def make_foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE chunks (mine TEXT)")
    db.close()


@pytest.mark.parametrize("damage", [damage_header, damage_pages, make_foreign])
@pytest.mark.parametrize("first", ["sync", "search", "status"])
def test_a_file_that_is_no_index_is_moved_aside_and_made_anew(tmp_path: Path, damage: object, first: str) -> None:
    workspace = make_workspace(tmp_path, {f"memory/{i}.md": f"okapi {i}\n" for i in range(30)})
    open_backend(workspace).sync()
    database = tmp_path / "state" / "memory.sqlite"
    damage(database)  # type: ignore[operator]
    damaged = database.read_bytes()
    backend = open_backend(workspace)
    if first == "search":
        assert len(backend.search(SearchQuery("okapi")).hits) == 6
    elif first == "status":
        backend.status()
    else:
        report = backend.sync()
        assert "moved to memory.sqlite.broken-" in report.rebuilt
        assert report.added == 30
    (aside,) = [p for p in database.parent.glob("memory.sqlite.broken-*") if not p.name.endswith(("-wal", "-shm"))]
    assert aside.read_bytes() == damaged
    assert len(backend.search(SearchQuery("okapi")).hits) == 6
    assert backend.sync().rebuilt == ""


def test_damage_that_only_a_search_meets_is_no_empty_answer(tmp_path: Path) -> None:
    """A sync finds all files unchanged, and does not read the words."""
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi", "memory/b.md": "zebra"})
    open_backend(workspace).sync()
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / "memory.sqlite")) as db, db:
        db.execute("DELETE FROM chunks_fts_data WHERE id >= 10")
    backend = open_backend(workspace)
    as_it_is = backend.search(SearchQuery("okapi", as_is=True))
    assert as_it_is.degraded is not None and "not filled yet" in as_it_is.degraded.reason
    found = backend.search(SearchQuery("okapi"))
    assert ([hit.path for hit in found.hits], found.degraded) == (["memory/a.md"], None)
    assert len(list((tmp_path / "state").glob("memory.sqlite.broken-*Z"))) == 1


def table_names(database: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(database)) as db:
        listed = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%fts_%'")
        return [row[0] for row in listed]


def test_an_index_without_one_of_its_tables_is_made_anew(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi"})
    open_backend(workspace).sync()
    database = tmp_path / "state" / "memory.sqlite"
    names = table_names(database)
    assert {"meta", "files", "chunks", "vectors"} <= set(names)
    for name in names:
        with contextlib.closing(sqlite3.connect(database)) as db:
            db.execute(f"DROP TABLE {name}")
        report = open_backend(workspace).sync()
        assert (report.added, "missing" in report.rebuilt) == (1, True), name
        results = open_backend(workspace).search(SearchQuery("okapi"))
        assert (len(results.hits), results.degraded) == (1, None), name
        assert sorted(table_names(database)) == sorted(names)


def test_the_last_three_broken_databases_are_kept(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi"})
    database = tmp_path / "state" / "memory.sqlite"
    database.parent.mkdir()
    for number in range(5):
        database.write_bytes(f"broken {number} ".encode() * 99)
        assert len(open_backend(workspace).search(SearchQuery("okapi")).hits) == 1
        time.sleep(0.002)  # names have milliseconds
    kept = sorted(p for p in database.parent.glob("memory.sqlite.broken-*") if p.name.endswith("Z"))
    assert [p.read_bytes()[:8] for p in kept] == [b"broken 2", b"broken 3", b"broken 4"]


def test_an_index_that_vanishes_is_made_anew(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi"})
    backend = open_backend(workspace)
    backend.sync()
    (tmp_path / "state/memory.sqlite").unlink()
    assert [h.path for h in backend.search(SearchQuery("okapi")).hits] == ["memory/a.md"]


def test_when_the_index_cannot_be_written_the_old_state_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi"})
    backend = open_backend(workspace)
    backend.sync()
    (workspace / "memory/b.md").write_text("zebra")

    def full(_self: Database) -> object:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "session", full)
        results = backend.search(SearchQuery("okapi zebra"))
        with pytest.raises(MemoryUnavailable, match="No space"):
            backend.sync()
    assert [h.path for h in results.hits] == ["memory/a.md"]
    assert results.degraded is not None and "No space left" in results.degraded.reason
    assert backend.search(SearchQuery("zebra")).degraded is None


def test_a_locked_index_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamella_memory_core.index.database._BUSY_SECONDS", 0.05)
    workspace = make_workspace(tmp_path, {"memory/a.md": "okapi"})
    backend = open_backend(workspace)
    backend.sync()
    (workspace / "memory/b.md").write_text("okapi")
    holder = sqlite3.connect(tmp_path / "state/memory.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(MemoryUnavailable, match="locked"):
        backend.sync()
    assert backend.search(SearchQuery("okapi")).degraded is not None
    holder.execute("ROLLBACK")
    holder.close()
    assert backend.sync().added == 1


# --- several processes -----------------------------------------------------------------------------------

BUSY = """
import sys
from pathlib import Path
from lamella.types.memory import BackendContext, SearchQuery
from lamella_memory_core import Config
from lamella_memory_core.backend import open_sqlite
workspace, name, state = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[1]).parent / "state"
backend = open_sqlite(BackendContext("main", workspace, state), Config())
for i in range(12):
    (workspace / "memory" / f"{name}.md").write_text(f"{name} note {i}\\n" * (i + 1))
    hits = backend.search(SearchQuery(f"{name} note")).hits
    assert any(h.path == f"memory/{name}.md" for h in hits), (name, i, hits)
    assert not any("locked" in str(h) for h in hits)
    if i == 6:
        backend.sync(force=True)
"""


def test_processes_sync_and_search_at_once(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {f"memory/n{i}.md": f"note number {i}\n" for i in range(40)})
    command = [sys.executable, "-c", BUSY, str(workspace)]
    workers = [subprocess.Popen([*command, name]) for name in ("alpha", "beta", "gamma")]
    assert [w.wait() for w in workers] == [0, 0, 0]
    open_backend(workspace).sync()
    open_backend(workspace, state="fresh").sync()
    assert contents(workspace) == contents(workspace, "fresh")


DYING = """
import os, signal, sys
from pathlib import Path
from lamella.types.memory import BackendContext
from lamella_memory_core import Config
from lamella_memory_core.backend import open_sqlite
from lamella_memory_core.index import changes, sync
real, left = changes._insert_chunks, [int(sys.argv[2])]
def dying(*a):
    left[0] -= 1
    real(*a)
    if left[0] == 0: os.kill(os.getpid(), signal.SIGKILL)
changes._insert_chunks, sync.FILLED_AT_ONCE = dying, int(sys.argv[3])
w = Path(sys.argv[1])
open_sqlite(BackendContext('main', w, w.parent / 'state'), Config()).sync()
"""


def killed_sync(workspace: Path, after: int, together: int) -> None:
    """A sync that is killed in the file with this number, an empty index being filled with so many bytes at once."""
    command = [sys.executable, "-c", DYING, str(workspace), str(after), str(together)]
    assert subprocess.run(command, check=False).returncode == -9


def test_a_killed_sync_leaves_a_sound_index(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {f"memory/n{i:02}.md": f"note number {i:02}\n" * 50 for i in range(60)})
    size = (workspace / "memory/n00.md").stat().st_size
    for after, kept in ((9, 0), (25, 20), (8, 27), (20, 46)):  # ten files at once at first, then one by one
        killed_sync(workspace, after, 10 * size)
        assert len({row[0] for row in contents(workspace)}) == kept
    report = open_backend(workspace).sync()
    assert (report.rebuilt, report.added, report.unchanged) == ("", 60 - 46, 46)
    open_backend(workspace, state="fresh").sync()
    assert contents(workspace) == contents(workspace, "fresh")


def test_a_change_of_many_files_is_a_transaction_for_each(tmp_path: Path) -> None:
    """So that nobody who wants to write waits long, and whatever is interrupted keeps what was done."""
    notes = {f"memory/n{i}.md": f"note number {i}\n" for i in range(5)}
    workspace = make_workspace(tmp_path, notes)
    open_backend(workspace).sync()
    make_workspace(tmp_path, {name: f"{text}changed\n" for name, text in notes.items()})
    killed_sync(workspace, 4, 10**6)
    assert sum("changed" in str(row) for row in contents(workspace)) == 3
