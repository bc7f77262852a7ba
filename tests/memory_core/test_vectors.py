import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_tables import stored
from notes import make_workspace, open_backend
from vector_words import WordVectors

from lamella.types.memory import MemoryResults, SearchQuery
from lamella_embedders.static.provider import registrations
from lamella_memory_core import Config
from lamella_memory_core import backend as backend_module
from lamella_memory_core.backend import SqliteBackend

PETS = {
    "memory/a.md": "the hound chased a ball in the garden\n",
    "memory/b.md": "taxes are due in spring\n",
    "memory/c.md": "a kitten slept on the piano\n",
    "memory/d.md": "the server was moved to another rack\n",
}


def opened(workspace: Path, words: WordVectors, state: str = "state") -> SqliteBackend:
    return open_backend(workspace, state=state, embedders=words.registered())


def ask(backend: SqliteBackend, text: str) -> MemoryResults:
    return backend.search(SearchQuery(text))


def test_what_means_the_same_is_found_without_a_common_word(tmp_path: Path) -> None:
    found = ask(opened(make_workspace(tmp_path, PETS), WordVectors()), "puppy")
    assert found.hits[0].path == "memory/a.md"
    assert found.degraded is None
    assert found.hits[0].score > found.hits[-1].score


def test_a_result_can_be_explained(tmp_path: Path) -> None:
    backend = opened(make_workspace(tmp_path, PETS), WordVectors())
    plain = ask(backend, "kitten")
    hits = backend.search(SearchQuery("kitten", explain=True)).hits
    assert [h.path for h in hits] == [h.path for h in plain.hits]
    assert "parts" not in plain.to_json()["results"][0]
    first, last = (hit.to_json()["parts"] for hit in (hits[0], hits[-1]))
    assert first["words"] > last["words"] and first["meaning"] > last["meaning"] and first["order"] > last["order"]
    assert first["mixed"] == pytest.approx((first["words"] + first["meaning"]) / 2, abs=1e-3)
    (unseen, *_) = backend.search(SearchQuery("puppy", explain=True)).hits
    assert unseen.parts is not None and unseen.parts["words"] is None


def test_words_still_count_and_raise_the_score(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PETS)
    both = ask(opened(workspace, WordVectors()), "kitten piano").hits[0]
    words = open_backend(workspace).search(SearchQuery("kitten piano")).hits[0]
    assert both.path == words.path == "memory/c.md"
    assert both.score > words.score


def test_the_offline_embedder_finds_across_languages(tmp_path: Path) -> None:
    files = {"memory/a.md": "we bought a new car\n", "memory/b.md": "my mother is a doctor\n", "memory/c.md": "rain\n"}
    backend = open_backend(make_workspace(tmp_path, files), embedders={r.name: r for r in registrations()})
    found = ask(backend, "妈妈的职业是医生")
    assert (found.hits[0].path, found.degraded) == ("memory/b.md", None)


def test_only_changed_texts_are_embedded(tmp_path: Path) -> None:
    lines = "".join(f"- entry {i} about something\n" for i in range(200))
    workspace = make_workspace(tmp_path, {"memory/a.md": lines, "memory/copy.md": lines, "MEMORY.md": "- one\n- two\n"})
    words = WordVectors()
    report = opened(workspace, words).sync()
    assert report.embedded == len(words.embedded) == len(set(words.embedded))
    words.groups.clear()
    assert opened(workspace, words).sync().embedded == 0
    (workspace / "MEMORY.md").write_text("- zero\n- one\n- two\n")
    (workspace / "memory/copy.md").rename(workspace / "memory/moved.md")
    assert opened(workspace, words).sync(force=True).embedded == 1
    assert words.embedded == ["- zero"]


def test_texts_go_in_groups_and_what_was_done_is_kept(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"MEMORY.md": "".join(f"- fact number {i}\n" for i in range(300))})
    words = WordVectors()

    class Failing(WordVectors):
        def embed_documents(self, texts: object) -> object:
            if len(self.groups) == 2:
                raise RuntimeError("quota")
            return super().embed_documents(texts)  # type: ignore[arg-type]

    report = opened(workspace, Failing()).sync()
    assert (report.embedded, report.ok, "quota" in report.degraded) == (0, True, True)
    assert opened(workspace, words).sync().embedded == 300 - 256
    assert [len(g) for g in words.groups] == [44]


def test_no_transaction_is_open_while_the_embedder_works(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PETS)

    class Writing(WordVectors):
        def embed_documents(self, texts: object) -> object:
            with sqlite3.connect(tmp_path / "state/memory.sqlite", timeout=0.05) as db:
                db.execute("UPDATE generation SET number = number + 1")
            db.close()
            return super().embed_documents(texts)  # type: ignore[arg-type]

    assert opened(workspace, Writing()).sync().embedded == 4


def test_another_embedder_never_meets_the_vectors_of_the_first(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PETS)
    a, b, c = WordVectors("a", 3), WordVectors("b", 5), WordVectors("c", 5)
    for words in (a, b, c):
        assert ask(opened(workspace, words), "puppy").degraded is None
        assert len(words.embedded) == 4
        assert {len(row[4]) for row in stored(workspace) if row[3] == words.identity} == {4 * words.dimensions}
    assert ask(opened(workspace, a), "puppy").hits
    assert len(a.embedded) == 4
    assert opened(workspace, c).status()["vectors"] == [{"identity": w.identity, "count": 4} for w in (a, b, c)]


@pytest.mark.parametrize("mode", ["raise", "raise_query", "hang", "wrong_length", "nan", "all_zero"])
def test_a_question_that_cannot_be_embedded_is_answered_by_words(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamella.memory.meaning.QUESTION_SECONDS", 0.05)
    workspace, words = make_workspace(tmp_path, PETS), WordVectors(mode=mode)
    backend = opened(workspace, words)
    found = ask(backend, "kitten")
    assert [h.path for h in found.hits] == ["memory/c.md"]
    assert found.degraded is not None and found.degraded.answered_by == "sqlite"
    assert "embedder static" in found.degraded.reason
    words.mode = "ok"
    monkeypatch.undo()
    again = ask(backend, "kitten")
    assert (again.degraded, len(again.hits)) == (None, 4)


def test_an_embedder_that_is_not_there_is_said(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PETS)
    backend = open_backend(workspace, Config())
    found = ask(backend, "kitten")
    assert [h.path for h in found.hits] == ["memory/c.md"]
    assert found.degraded is not None and "not installed" in found.degraded.reason
    status = backend.status()
    assert status["mode"] == "keyword" and "pip install lamella-embedders" in status["problem"]
    assert "not installed" in backend.sync().degraded
    off = open_backend(workspace, Config(embedder="none"))
    assert ask(off, "kitten").degraded is None
    assert "embedder is none" in off.status()["problem"]


def test_a_search_does_not_wait_for_all_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_module, "VECTOR_SECONDS", 0.0)
    import threading

    go_on = threading.Event()

    class Slow(WordVectors):
        def embed_documents(self, texts: object) -> object:
            go_on.wait(20)
            return super().embed_documents(texts)  # type: ignore[arg-type]

    backend = opened(make_workspace(tmp_path, PETS), Slow())
    found = ask(backend, "kitten")
    assert [h.path for h in found.hits] == ["memory/c.md"]
    assert found.degraded is not None and "still being made" in found.degraded.reason
    go_on.set()
    assert backend.sync().degraded == ""
    assert ask(backend, "kitten").degraded is None
    backend.close()


def test_vectors_of_another_process_are_seen(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, PETS)
    here, there = opened(workspace, WordVectors()), opened(workspace, WordVectors())
    ask(here, "puppy")
    (workspace / "memory/e.md").write_text("a puppy came to stay\n")
    there.sync()
    assert {h.path for h in ask(here, "hound").hits[:2]} == {"memory/a.md", "memory/e.md"}


edits = st.lists(
    st.tuples(
        st.sampled_from(["MEMORY.md", "memory/a.md", "memory/b.md"]),
        st.sampled_from(["", "- oak\n- elm\n", "- oak\n", "one line\n" * 120, "汉字笔记\n", "gone", "sync", "search"]),
    ),
    max_size=10,
)


@settings(deadline=None, max_examples=25)
@given(edits)
def test_any_edits_give_the_vectors_of_a_fresh_start(sequence: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_workspace(Path(folder), {"memory/z.md": "always here\n"})
        backend = opened(workspace, WordVectors(dimensions=4))
        for name, text in sequence:
            if text == "sync":
                opened(workspace, WordVectors(dimensions=4)).sync(force=name == "MEMORY.md")
            elif text == "search":
                assert ask(backend, "oak").degraded is None
            elif text == "gone":
                (workspace / name).unlink(missing_ok=True)
            else:
                (workspace / name).write_text(text)
        backend.sync()
        opened(workspace, WordVectors(dimensions=4), state="fresh").sync()
        assert stored(workspace) == stored(workspace, "fresh")
        backend.close()


BUSY = """
import sys
from pathlib import Path
from vector_words import WordVectors
from notes import open_backend
from lamella.types.memory import SearchQuery
workspace, name = Path(sys.argv[1]), sys.argv[2]
backend = open_backend(workspace, embedders=WordVectors().registered())
for i in range(8):
    (workspace / "memory" / f"{name}.md").write_text(f"{name} note {i}\\n" * (i + 1))
    found = backend.search(SearchQuery(f"{name} note {i}"))
    assert found.hits[0].path == f"memory/{name}.md", (name, i, found)
    backend.sync(force=i == 5)
"""


def test_processes_embed_and_search_at_once(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {f"memory/n{i}.md": f"number {i} of many\n" for i in range(40)})
    support = str(Path(__file__).parents[1] / "support")
    program = f"import sys; sys.path.insert(0, {support!r})\n{BUSY}"
    workers = [subprocess.Popen([sys.executable, "-c", program, str(workspace), name]) for name in ("alpha", "beta")]
    assert [w.wait() for w in workers] == [0, 0]
    opened(workspace, WordVectors()).sync()
    opened(workspace, WordVectors(), state="fresh").sync()
    assert stored(workspace) == stored(workspace, "fresh")


def test_a_killed_process_loses_no_more_than_a_group(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"MEMORY.md": "".join(f"- fact number {i}\n" for i in range(300))})
    support = str(Path(__file__).parents[1] / "support")
    program = (
        f"import os, signal, sys; sys.path.insert(0, {support!r})\n"
        "from pathlib import Path\nfrom notes import open_backend\nfrom vector_words import WordVectors\n"
        "class Dying(WordVectors):\n"
        "    def embed_documents(self, texts):\n"
        "        if self.groups: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return super().embed_documents(texts)\n"
        "open_backend(Path(sys.argv[1]), embedders=Dying().registered()).sync()\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(workspace)], check=False).returncode == -9
    words = WordVectors()
    assert opened(workspace, words).sync().embedded == 300 - 128
    opened(workspace, WordVectors(), state="fresh").sync()
    assert stored(workspace) == stored(workspace, "fresh")
