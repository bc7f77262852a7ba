"""The backend `lancedb`: what it reads and embeds again, what it does without an embedder, several processes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from inside import lamella
from memories import GivenVectors

from lamella.errors import MemoryUnavailable
from lamella.testing import registered_backend
from lamella.types.memory import BackendContext, MemoryBackend, SearchQuery
from lamella_memory_lancedb.notes import LanceDBBackend
from lamella_memory_lancedb.notes import following as following_module
from lamella_memory_lancedb.notes.following import take_in

NOTES = {
    "MEMORY.md": "# Facts\n\n- The staging server is called bluebird.\n- Ada prefers tea.\n",
    "memory/one.md": "The okapi eats figs.\n",
    "memory/zh.md": "# 笔记\n\n周末去爬山，带上水和面包。\n",
}


class Slow(GivenVectors):
    """Answers nothing but questions until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Any:
        if len(texts) > 20:
            self.let_go.wait(60)
        return super().embed_documents(texts)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for name, text in NOTES.items():
        write(folder, name, text)
    return folder


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def opened(workspace: Path, made: GivenVectors | None = None, seconds: float | None = None, **config: Any) -> Any:
    """The backend on a workspace, its state beside it."""
    registration = registered_backend(LanceDBBackend, **config)
    embedders = (made or GivenVectors()).registered()
    context = BackendContext("main", workspace, workspace.with_name("state"), embedders, search_seconds=seconds)
    return registration.factory(context)


def paths(backend: MemoryBackend, text: str, **fields: Any) -> list[str]:
    return [hit.path for hit in backend.search(SearchQuery(text, **fields)).hits]


def texts(embedder: GivenVectors) -> list[str]:
    """What was embedded since the last time, without what tells the likeness of unrelated texts."""
    from lamella_memory_lancedb.search import background

    made = [text for text in embedder.calls if text not in (*background._QUESTIONS, *background._NOTES)]
    embedder.calls.clear()
    return made


# --- only what changed ----------------------------------------------------------------------------------------


def test_only_changed_files_are_read_and_only_new_texts_embedded(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(following_module, "take_in", lambda f, c: read.append(f.name) or take_in(f, c))
    monkeypatch.setattr("lamella_memory_lancedb.notes.passages._SETTLED_NS", -1)
    embedder = GivenVectors()
    backend = opened(workspace, embedder)
    assert (backend.sync().embedded, sorted(read)) == (5, sorted(NOTES))
    assert len(texts(embedder)) == 5
    read.clear()
    assert backend.sync().unchanged == 3 and read == []

    write(workspace, "MEMORY.md", NOTES["MEMORY.md"] + "- The gate closes at eight.\n")
    report = backend.sync()
    assert (report.updated, report.embedded, report.chunks) == (1, 1, 6)
    assert read == ["MEMORY.md"] and texts(embedder) == ["- The gate closes at eight."]

    (workspace / "memory/one.md").rename(workspace / "memory/two.md")
    report = opened(workspace, embedder).sync()
    assert (report.added, report.removed, report.embedded) == (1, 1, 0)
    assert paths(backend, "okapi figs")[0] == "memory/two.md"
    assert "memory/one.md" not in paths(backend, "okapi figs", max_results=50)


def test_a_file_with_a_new_time_and_the_same_text_is_unchanged(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamella_memory_lancedb.notes.passages._SETTLED_NS", -1)
    embedder = GivenVectors()
    backend = opened(workspace, embedder)
    backend.sync()
    texts(embedder)
    write(workspace, "memory/one.md", NOTES["memory/one.md"])
    report = backend.sync()
    assert (report.updated, report.unchanged, report.embedded) == (0, 3, 0)
    before = backend.status()["tableVersion"]
    assert backend.sync().unchanged == 3 and backend.status()["tableVersion"] == before
    assert paths(backend, "okapi")[0] == "memory/one.md"


# --- meaning --------------------------------------------------------------------------------------------------


def test_meaning_finds_what_words_do_not(workspace: Path) -> None:
    question = "animals and their fruit"
    near = [1.0] + [0.0] * 63
    backend = opened(workspace, GivenVectors({"The okapi eats figs.": near, question: near}))
    (best, *_) = backend.search(SearchQuery(question, explain=True)).hits
    assert best.path == "memory/one.md" and best.score > 0.9
    assert best.parts == {"words": 0.0, "meaning": 0.99}
    assert paths(opened(workspace, embedder="none"), question) == []


def test_without_an_embedder_words_answer_and_vectors_come_later(workspace: Path) -> None:
    embedder = GivenVectors()
    embedder.fails = True
    backend = opened(workspace, embedder)
    found = backend.search(SearchQuery("okapi figs"))
    assert [hit.path for hit in found.hits] == ["memory/one.md"]
    assert (found.mode, found.degraded is not None) == ("keyword", True)
    assert "no such service" in found.degraded.reason
    assert backend.status()["withoutVector"] == 5
    write(workspace, "memory/new.md", "The zebra drinks milk.\n")
    assert "no such service" in backend.sync().degraded
    embedder.fails = False
    report = backend.sync()
    assert (report.embedded, report.degraded, report.updated) == (6, "", 0)
    assert backend.search(SearchQuery("okapi figs")).degraded is None
    assert backend.status()["withoutVector"] == 0


def test_an_embedder_that_is_not_installed_is_named(workspace: Path) -> None:
    backend = opened(workspace, embedder="remote")
    found = backend.search(SearchQuery("okapi"))
    assert found.hits[0].path == "memory/one.md"
    assert "embedder 'remote' is not installed" in found.degraded.reason
    assert "embedder 'remote' is not installed" in backend.status()["problem"]


def test_another_embedder_makes_the_table_anew(workspace: Path) -> None:
    opened(workspace, GivenVectors(model="a")).sync()
    other = opened(workspace, GivenVectors(model="b", dimensions=32))
    found = other.search(SearchQuery("okapi figs"))
    assert (found.degraded, found.model, found.hits[0].path) == (None, "given/b/32", "memory/one.md")
    report = opened(workspace, GivenVectors(model="c")).sync()
    assert (report.rebuilt, report.unchanged, report.embedded) == ("its vectors were not of given/c/64", 3, 5)
    cut = opened(workspace, GivenVectors(model="c"), chunk_tokens=16).sync()
    assert (cut.rebuilt, cut.added) == ("it was made otherwise, or for another workspace", 3)


def test_words_answer_while_a_slow_embedder_works(workspace: Path) -> None:
    lines = "\n\n".join(f"- entry {number} of a list" for number in range(300))
    write(workspace, "MEMORY.md", lines)
    embedder = Slow()
    backend = opened(workspace, embedder, seconds=0.5)
    while not backend.status()["chunks"]:  # before that, nothing can be answered
        with contextlib.suppress(MemoryUnavailable):
            backend.search(SearchQuery("okapi figs"))
    found = backend.search(SearchQuery("okapi figs"))
    assert found.hits[0].path == "memory/one.md" and not found.in_step
    assert "still being brought up to date" in found.degraded.reason
    embedder.let_go.set()
    backend._looking.wait(60)
    assert backend.sync().degraded == "" and backend.status()["withoutVector"] == 0
    assert backend.search(SearchQuery("okapi figs")).degraded is None


def test_many_passages_have_an_index_of_vectors(workspace: Path) -> None:
    write(workspace, "MEMORY.md", "\n\n".join(f"- box {n} is on shelf {n * 7}" for n in range(1100)))
    backend = opened(workspace, GivenVectors(dimensions=16), index_rows=1000)
    assert backend.sync().embedded == 1102
    table = backend._index.table._database.table("passages")
    assert {name for index in table.list_indices() for name in index.columns} == {"words", "vector"}
    (best, *_) = backend.search(SearchQuery("- box 77 is on shelf 539")).hits
    assert "box 77 is on shelf 539" in best.snippet


# --- results --------------------------------------------------------------------------------------------------


def test_neighbours_are_joined_up_to_the_size_of_a_snippet(workspace: Path) -> None:
    sentences = [f"The okapi of day {number} ate figs near the river and slept." for number in range(40)]
    write(workspace, "memory/long.md", "\n".join(sentences) + "\n")
    backend = opened(workspace, embedder="none", snippet_chars=800)
    hits = [h for h in backend.search(SearchQuery("okapi river", max_results=20)).hits if h.path == "memory/long.md"]
    taken: set[int] = set()
    for hit in hits:
        shown = sentences[hit.start_line - 1 : hit.end_line]
        assert hit.snippet == "\n".join(shown) and len(hit.snippet) <= 800
        taken |= set(range(hit.start_line, hit.end_line + 1))
    assert taken == set(range(1, 41))
    assert len(hits) < 8  # about twelve passages


def test_a_single_character_is_found(workspace: Path) -> None:
    assert paths(opened(workspace, embedder="none"), "水") == ["memory/zh.md"]
    assert paths(opened(workspace, embedder="none"), "火") == []


def test_status_tells_what_there_is(workspace: Path) -> None:
    backend = opened(workspace)
    assert (backend.status()["files"], backend.status()["tableVersion"]) == (0, 0)
    backend.sync()
    status = backend.status()
    assert (status["files"], status["chunks"], status["mode"], status["model"]) == (3, 5, "hybrid", "given/a/64")


def test_a_probe_tells_whether_the_table_can_be_read(workspace: Path) -> None:
    backend = opened(workspace)
    backend.probe()
    backend.sync()
    backend.close()
    for file in workspace.with_name("state").rglob("*.manifest"):
        file.write_bytes(b"damaged")
    with pytest.raises(MemoryUnavailable, match="cannot be used"):
        opened(workspace).probe()
    assert opened(workspace).sync().chunks == 5  # what is derived is made again
    opened(workspace).probe()


# --- several processes ----------------------------------------------------------------------------------------

WORKER = """
import sys
from pathlib import Path
sys.path.insert(0, {support!r})
from memories import GivenVectors
from lamella.testing import registered_backend
from lamella.types.memory import BackendContext, SearchQuery
from lamella_memory_lancedb.notes import LanceDBBackend

workspace, name, rounds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
context = BackendContext("main", workspace, workspace.with_name("state"), GivenVectors().registered())
backend = registered_backend(LanceDBBackend).factory(context)
for number in range(rounds):
    (workspace / "memory" / f"{{name}}-{{number}}.md").write_text(f"The gnu {{name}}x{{number}} eats grass.\\n")
    backend.sync(force=number == rounds // 2)
    found = backend.search(SearchQuery(f"gnu {{name}}x{{number}}"))
    assert found.hits[0].path == f"memory/{{name}}-{{number}}.md", found
    print(number, flush=True)
"""


def worker(workspace: Path, name: str, rounds: int) -> subprocess.Popen[str]:
    code = WORKER.format(support=str(Path(__file__).parents[1] / "support"))
    return subprocess.Popen(
        [sys.executable, "-c", code, str(workspace), name, str(rounds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_several_processes_sync_and_search_at_once(workspace: Path) -> None:
    workers = [worker(workspace, name, 12) for name in ("one", "two", "three")]
    said = [each.communicate(timeout=300) for each in workers]
    assert [each.returncode for each in workers] == [0, 0, 0], [err[-2000:] for _out, err in said]
    backend = opened(workspace)
    report = backend.sync()
    assert (report.seen, report.unchanged, report.chunks) == (39, 39, 41)
    assert backend.status()["withoutVector"] == 0
    rows = backend._index.table._rows("number > 0")
    assert len({(row["path"], row["number"]) for row in rows}) == len(rows) == 41


@pytest.mark.slow
def test_a_killed_sync_leaves_a_table_that_works(workspace: Path) -> None:
    for attempt in range(5):
        each = worker(workspace, f"w{attempt}", 100)
        assert each.stdout is not None
        for _ in range(1 + 2 * attempt):
            each.stdout.readline()
        each.kill()
        each.communicate()
        backend = opened(workspace)
        assert paths(backend, "okapi figs")[0] == "memory/one.md"
        report = backend.sync()
        assert report.ok and report.unchanged == report.seen == len(list(workspace.rglob("*.md")))
        assert backend.status()["withoutVector"] == 0


# --- behind memory-core ---------------------------------------------------------------------------------------


def test_memory_core_asks_it_and_sqlite_answers_when_it_cannot(workspace: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    lamella("config", "set", "memory.backend", "lancedb", home=home, check=True)
    run = lambda *a: lamella("memory", *a, "--json", "--workspace", workspace, home=home, check=True).json  # noqa: E731
    found = run("search", "what is the staging server called?")
    assert (found["backend"], found["mode"], found["degraded"]) == ("lancedb", "hybrid", None)
    assert found["results"][0]["path"] == "MEMORY.md" and "bluebird" in found["results"][0]["snippet"]
    assert run("index")["unchanged"] == 3
    assert run("status")["chunks"] == 5
    before = {p: p.read_bytes() for p in workspace.rglob("*.md")}
    table = home / "agents" / "main" / "lancedb-notes" / "passages.lance"
    for file in table.rglob("*"):
        if file.is_file():
            file.write_bytes(b"damaged")
    assert run("index", "--force")["chunks"] == 5
    assert run("search", "okapi figs")["backend"] == "lancedb"
    for folder in (table, table.parent):
        for file in sorted(folder.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
    table.parent.rmdir()
    table.parent.write_text("no folder")
    found = run("search", "okapi figs")
    assert (found["backend"], found["results"][0]["path"]) == ("sqlite", "memory/one.md")
    assert "lancedb" in found["degraded"]["reason"]
    assert {p: p.read_bytes() for p in workspace.rglob("*.md")} == before


def test_a_backend_that_is_not_installed_is_named_by_its_distribution() -> None:
    from lamella.memory.installing import distribution_of

    assert distribution_of("lancedb") == "'lamella-memory-lancedb[notes]'"
    assert distribution_of("sqlite") == "lamella-memory-core"
    assert distribution_of("acme") == "lamella-acme-backend"


def test_nothing_heavy_is_loaded_to_register_it() -> None:
    code = (
        "import sys; from lamella_memory_lancedb.notes import LanceDBBackend; from lamella.testing import *; "
        "registered_backend(LanceDBBackend); print({'numpy', 'pyarrow', 'lancedb'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"
