"""Holds: a search never waits without bound, and answers from what there is; an index that cannot be kept
is made for the run; what is read, embedded or opened too slowly is said."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from notes import make_workspace, open_backend, open_memory
from vector_words import WordVectors

from lamella.errors import MemoryUnavailable
from lamella.types.memory import BackendContext, EmbedderRegistration, SearchQuery, SyncProgress
from lamella_memory_core import Config
from lamella_memory_core.backend import SqliteBackend, open_sqlite

NOTES = {f"memory/n{i}.md": f"okapi number {i}\n" for i in range(6)}
WORDS = Config(embedder="none", search_wait_seconds=0.0)


class Gate:
    """Holds back whatever passes it until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def __call__(self) -> None:
        self.opened.wait(20)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@contextmanager
def busy_index(folder: Path) -> Iterator[None]:
    """Another program holds the index for itself: who wants to write waits."""
    holder = sqlite3.connect(folder / "state/memory.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


def reason(backend: SqliteBackend, words: str = "okapi") -> str:
    found = backend.search(SearchQuery(words))
    return found.degraded.reason if found.degraded else ""


def test_a_search_does_not_wait_for_a_long_sync(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, NOTES)
    backend = open_backend(workspace, WORDS)
    backend.sync()
    (workspace / "memory/late.md").write_text("an okapi came late\n")
    with busy_index(tmp_path):
        first = backend.search(SearchQuery("okapi", max_results=9))
        assert (len(first.hits), first.in_step) == (6, False)
        assert "still being brought up to date" in reason(backend)
    backend.sync()
    found = open_backend(workspace).search(SearchQuery("okapi", max_results=9))
    assert (len(found.hits), found.degraded, found.in_step) == (7, None, True)
    backend.close()


def test_a_sync_that_closing_cuts_off_has_not_failed(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, NOTES)
    memory = open_memory(workspace, WORDS)
    with pytest.raises(MemoryUnavailable, match="closed during a sync"):
        memory.sync(progress=lambda _state: memory.close())
    memory = open_memory(workspace, Config(embedder="none"))
    assert memory.status()["lastError"] is None
    assert len(memory.search(SearchQuery("okapi", max_results=9)).hits) == 6
    memory.close()


def test_what_changes_during_a_long_sync_is_found_after_it(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, NOTES)
    open_backend(workspace).sync()
    backend = open_backend(workspace, Config(embedder="none", search_wait_seconds=0.1))
    (workspace / "memory/late.md").write_text("an okapi came late\n")
    with busy_index(tmp_path):
        assert "still being" in reason(backend)
        (workspace / "memory/later.md").write_text("a zebra came\n")
    backend.sync()
    assert [h.path for h in backend.search(SearchQuery("zebra")).hits] == ["memory/later.md"]
    backend.close()


def test_an_index_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = make_workspace(tmp_path, NOTES)
    words = WordVectors()
    backend = open_backend(workspace, embedders=words.registered())
    assert backend.search(SearchQuery("okapi", as_is=True)).hits == ()
    backend.search(SearchQuery("okapi"))
    (workspace / "memory/late.md").write_text("a zebra came\n")
    monkeypatch.setattr("lamella_memory_core.backend.scan_memory", lambda *_: pytest.fail("the files were looked at"))
    found = backend.search(SearchQuery("okapi zebra", max_results=9, as_is=True))
    assert (len(found.hits), found.in_step, len(words.embedded)) == (6, False, 6)


def test_a_closed_memory_takes_nothing_in(tmp_path: Path) -> None:
    backend = open_backend(make_workspace(tmp_path, NOTES), WORDS)
    backend.close()
    with pytest.raises(MemoryUnavailable, match="closed"):
        backend.sync()
    assert open_backend(tmp_path / "ws").sync().added == 6


def test_a_sync_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[SyncProgress] = []
    backend = open_backend(make_workspace(tmp_path, NOTES), embedders=WordVectors().registered())
    backend.sync(progress=told.append)
    assert [p.done for p in told if p.stage == "files"] == list(range(6))
    assert {p.total for p in told} == {6} and told[-1].stage == "vectors"
    told.clear()
    backend.sync(progress=told.append)
    assert "vectors" not in {p.stage for p in told}


# --- embedders that take their time -----------------------------------------------------------------------


def test_opening_an_embedder_has_a_time_limit(tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamella_memory_core.backend.QUESTION_SECONDS", 0.05)
    opened = []

    def factory() -> WordVectors:
        gate()
        opened.append(1)
        return WordVectors()

    offer = {"static": EmbedderRegistration("static", factory)}
    backend = open_backend(make_workspace(tmp_path, NOTES), embedders=offer)
    assert "embedder static is still being opened; only words were compared" in reason(backend)
    assert "still being opened" in reason(backend)
    gate.opened.set()
    assert backend.sync().embedded == 6
    assert (reason(backend), opened) == ("", [1])


def test_an_embedder_that_cannot_be_opened_is_tried_again(tmp_path: Path) -> None:
    answers = iter([RuntimeError("no route"), RuntimeError("no route"), WordVectors()])

    def factory() -> WordVectors:
        answer = next(answers)
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    offer = {"static": EmbedderRegistration("static", factory)}
    backend = open_backend(make_workspace(tmp_path, NOTES), embedders=offer)
    assert [reason(backend) for _ in range(3)] == ["embedder static: no route; only words were compared"] * 2 + [""]


# --- no place for an index ----------------------------------------------------------------------------------


def unwritable(folder: Path) -> Path:
    """A state folder that nobody can make, whoever runs the tests."""
    (folder / "file").write_text("in the way")
    return folder / "file" / "state"


def test_where_no_index_can_be_kept_one_is_made_for_the_run(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, NOTES)
    backend = open_sqlite(BackendContext("main", workspace, unwritable(tmp_path)), Config(embedder="none"))
    assert "no index can be kept" in reason(backend)
    assert len(backend.search(SearchQuery("okapi")).hits) == 6
    status = backend.status()
    assert "no index can be kept" in status["problem"] and status["files"] == 6
    folder = Path(status["database"]).parent
    assert folder.exists()
    backend.close()
    assert not folder.exists()


def test_a_state_folder_that_cannot_be_read_from_is_replaced_for_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path, NOTES)
    open_backend(workspace).sync()
    real = sqlite3.connect

    def connect(path: object, **options: object) -> object:
        if str(path).startswith(str(tmp_path / "state")):
            error = sqlite3.OperationalError("unable to open database file")
            error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise error
        return real(path, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(sqlite3, "connect", connect)
    backend = open_backend(workspace)
    found = backend.search(SearchQuery("okapi"))
    assert len(found.hits) == 6
    assert found.degraded is not None and "unable to open" in found.degraded.reason
    backend.close()


def test_making_an_index_that_cannot_be_kept_is_an_error(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, NOTES)
    backend = open_sqlite(BackendContext("main", workspace, unwritable(tmp_path)), Config(embedder="none"))
    with pytest.raises(MemoryUnavailable, match="cannot be used"):
        backend.sync()
