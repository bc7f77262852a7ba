"""What holds of the arrays beside the index: they answer as FTS5 does, after any edits; what they find with
vectors is what a process without them finds; damaged, foreign and left-over files do no harm; several
processes may write at once; a process that asks once makes none."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notes import make_workspace, open_backend
from vector_words import WordVectors

from lamella.text.segment import Term, query_terms, search_text
from lamella.types.memory import MemoryHit, SearchQuery
from lamella_memory_core.backend import SqliteBackend
from lamella_memory_core.index import index as index_module
from lamella_memory_core.index.chunking import Chunking
from lamella_memory_core.index.database import Database
from lamella_memory_core.lexical.postings import build_postings
from lamella_memory_core.lexical.stems import Stems
from lamella_memory_core.lexical.words import ArrayWords, IndexedWords
from lamella_memory_core.meaning.matrix import load_block
from lamella_memory_core.warm import view as view_module
from lamella_memory_core.warm.catalog import load_catalog
from lamella_memory_core.warm.shelf import VECTORS_NAME, WORDS_NAME, Shelf
from lamella_memory_core.warm.stored import Damaged, read_arrays, write_arrays
from lamella_memory_core.warm.view import View
from lamella_memory_core.warm.warming import fill_shelf

SAID = ["running", "runs", "Café", "cafe", "naïve", "snake_case", "AB-1234", "2024-05-02", "the", "x", "Ärger"]
SAID += ["ärgerlich", "天气", "天气很好", "北", "東京タワー", "コーヒー", "한국어", "สวัสดี", "हिन्दी", "🙂", "ﬁne"]
TEXTS = st.lists(st.lists(st.sampled_from(SAID), min_size=1, max_size=12).map(" ".join), max_size=6).map("\n".join)
NAMES = ("memory/a.md", "memory/2024-05-02.md", "memory/running/天气.md", "MEMORY.md")
EDITS = st.lists(st.tuples(st.sampled_from(NAMES), st.none() | TEXTS), min_size=1, max_size=4)
QUESTION = "running café snake_case AB-1234 天气 北 東京 コーヒー 한국어 สวัสดี हिन्दी fine ärger absent"


@pytest.fixture(autouse=True)
def _small_indexes_count() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_module, "LEAST_PASSAGES", 1)
        patch.setattr(index_module, "LEAST_PASSAGES", 1)
        yield


def warm(backend: SqliteBackend, embedders: bool = False) -> SqliteBackend:
    """A backend that has searched, and waited for what that began."""
    for _ in range(2):
        backend.search(SearchQuery("anything"))
        assert backend._index._warmer.wait(60)
    return backend


def apply(workspace: Path, edits: list[tuple[str, str | None]]) -> None:
    for name, text in edits:
        if text is None:
            (workspace / name).unlink(missing_ok=True)
        else:
            make_workspace(workspace.parent, {name: text})


def all_terms() -> list[Term]:
    return [*query_terms(QUESTION), *(Term(word) for word in search_text(" ".join(SAID)).split())]


def assert_alike(database: Database, view: View, *, from_arrays: bool = True) -> None:
    """Every term has the same places and strengths in the view's words and in FTS5."""
    with database.read() as connection:
        words, catalog = view.words(connection), load_catalog(connection)
        assert isinstance(words, ArrayWords if from_arrays else IndexedWords)
        terms = all_terms()
        both = zip(words.find(connection, terms), IndexedWords(catalog).find(connection, terms), strict=True)
        for term, ((places, strength), (expected_places, expected)) in zip(terms, both, strict=True):
            order, expected_order = np.argsort(places), np.argsort(expected_places)
            assert places[order].tolist() == expected_places[expected_order].tolist(), term
            assert strength[order] == pytest.approx(expected[expected_order], rel=1e-6), term


# --- words -------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(EDITS, st.lists(EDITS, max_size=3))
def test_arrays_answer_as_the_keyword_index_does_after_any_edits(
    first: list[tuple[str, str | None]], later: list[list[tuple[str, str | None]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_module, "_SMALL_CHANGE", 1000)
        workspace = make_workspace(Path(folder), {"memory/always.md": "running water\n"})
        apply(workspace, first)
        open_backend(workspace).sync()
        state = Path(folder) / "state"
        database, view = Database(state, Chunking().identity), View(Shelf(state))
        fill_shelf(database, Shelf(state), None)
        assert_alike(database, view)
        for edits in later:
            apply(workspace, edits)
            open_backend(workspace).sync()
            assert_alike(database, view)
        database.close()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
def test_postings_count_every_mention(texts: list[tuple[str, str]]) -> None:
    rows = [(search_text(body), search_text(name)) for body, name in texts]
    stems = Stems()
    postings = build_postings(rows, stems)
    tokens = [[[t for several in stems.of(cell.split()) for t in several] for cell in row] for row in rows]
    assert postings.lengths.tolist() == [len(body) + len(name) for body, name in tokens]
    for token in {t for row in tokens for cell in row for t in cell} | {"absent", "", "\U0010ffff"}:
        found, often = postings.mentions(token)
        expected = {i: body.count(token) + name.count(token) / 2 for i, (body, name) in enumerate(tokens)}
        assert dict(zip(found.tolist(), often.tolist(), strict=True)) == {i: n for i, n in expected.items() if n}
    found, often = postings.mentions("天", prefix=True)
    begin = [sum(t.startswith("天") for t in body) + sum(t.startswith("天") for t in name) / 2 for body, name in tokens]
    assert dict(zip(found.tolist(), often.tolist(), strict=True)) == {i: n for i, n in enumerate(begin) if n}


def test_a_large_change_is_answered_by_the_keyword_index_until_arrays_are_made_anew(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {f"memory/{i}.md": f"number {i}\n" for i in range(10)})
    open_backend(workspace).sync()
    database, view = Database(tmp_path / "state", Chunking().identity), View(Shelf(tmp_path / "state"))
    fill_shelf(database, Shelf(tmp_path / "state"), None)
    assert_alike(database, view)
    make_workspace(tmp_path, {f"memory/new{i}.md": f"running {i}\n" for i in range(300)})
    open_backend(workspace).sync()
    assert_alike(database, view, from_arrays=False)
    fill_shelf(database, Shelf(tmp_path / "state"), None)
    view.forget()
    assert_alike(database, view)


# --- whole searches ----------------------------------------------------------------------------------


def asked(backend: SqliteBackend) -> list[MemoryHit]:
    questions = ("puppy in the garden", "running café", "天气 北", "AB-1234", "2 May 2024")
    return [hit for question in questions for hit in backend.search(SearchQuery(question, explain=True)).hits]


@settings(max_examples=10, deadline=None)
@given(st.lists(EDITS, min_size=1, max_size=3), st.booleans())
def test_a_warm_process_finds_what_a_new_one_finds(rounds: list[list[tuple[str, str | None]]], meaning: bool) -> None:
    embedders = WordVectors().registered() if meaning else None
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_workspace(Path(folder), {"memory/always.md": "the hound ran\n", "memory/b.md": "x\n"})
        backend = warm(open_backend(workspace, embedders=embedders))
        for edits in rounds:
            apply(workspace, edits)
            found, expected = asked(backend), asked(open_backend(workspace, state="other", embedders=embedders))
            assert [(h.citation, h.snippet) for h in found] == [(h.citation, h.snippet) for h in expected]
            assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-6)
        backend.close()


def test_a_process_that_asks_once_makes_no_files(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "alpha\n"})
    backend = open_backend(workspace, embedders=WordVectors().registered())
    backend.search(SearchQuery("alpha"))
    backend.close()
    assert not (tmp_path / "state" / WORDS_NAME).exists()
    warm(open_backend(workspace, embedders=WordVectors().registered())).close()
    assert (tmp_path / "state" / WORDS_NAME).exists() and (tmp_path / "state" / VECTORS_NAME).exists()


def test_files_of_other_vectors_and_of_an_earlier_index_are_left_out(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "the hound\n", "memory/b.md": "taxes\n"})
    warm(open_backend(workspace, embedders=WordVectors("a", 64).registered())).close()
    other = warm(open_backend(workspace, embedders=WordVectors("b", 32).registered()))
    assert other.search(SearchQuery("puppy")).hits[0].path == "memory/a.md"
    other.sync(force=True)  # a rebuild is another index, whose ids may be the same
    make_workspace(tmp_path, {"memory/a.md": "taxes\n", "memory/b.md": "the hound\n"})
    assert other.search(SearchQuery("puppy")).hits[0].path == "memory/b.md"
    other.close()


# --- vectors -----------------------------------------------------------------------------------------


class Halved(WordVectors):
    """The second half of some vectors is empty."""

    def _vector(self, text: str) -> np.ndarray:
        vector = super()._vector(text)
        if "whole" not in text:
            vector[self.dimensions // 2 :] = 0.0
        return vector


@pytest.mark.parametrize("question", ["garden", "whole garden"])
def test_empty_halves_are_not_kept_and_change_nothing(tmp_path: Path, question: str) -> None:
    texts = ("garden", "whole piano", "rain", "whole rack")
    words = Halved(dimensions=15)
    open_backend(
        make_workspace(tmp_path, {f"memory/{i}.md": text for i, text in enumerate(texts)}), embedders=words.registered()
    ).sync()
    database = Database(tmp_path / "state", Chunking().identity)
    with database.read() as connection:
        block = load_block(connection, words.identity, 15, 4, load_catalog(connection).positions)
    assert (block.left.shape, block.right.shape, sorted(block.right_rows.tolist())) == ((4, 7), (2, 8), [1, 3])
    asked_for = words.embed_query(question)
    assert block.products(asked_for) == pytest.approx(words.embed_documents(texts) @ asked_for, abs=1e-6)
    database.close()


# --- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [WORDS_NAME, VECTORS_NAME])
@pytest.mark.parametrize("damage", ["truncated", "empty", "changed", "foreign", "folder"])
def test_a_damaged_file_is_left_out_and_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, damage: str
) -> None:
    workspace = make_workspace(tmp_path, {f"memory/{i}.md": f"number {i} hound\n" for i in range(9)})
    warm(open_backend(workspace, embedders=WordVectors().registered())).close()
    path = tmp_path / "state" / name
    whole = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    else:
        middle = len(whole) // 2
        changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        path.write_bytes({"truncated": whole[:-1], "empty": b"", "changed": changed, "foreign": b"x" * 99}[damage])
    backend = open_backend(workspace, embedders=WordVectors().registered())
    assert backend.search(SearchQuery("number 3")).hits[0].path == "memory/3.md"
    assert f"{path} is left out" in caplog.text
    warm(backend)
    assert backend.search(SearchQuery("number 3")).hits[0].path == "memory/3.md"
    backend.close()
    if damage != "folder":
        assert read_arrays(path) is not None


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"memory/a.md": "alpha\n"})
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nimport numpy as np\n"
        "from lamella_memory_core.warm.stored import write_arrays\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_arrays(Path(sys.argv[1]), {}, {'a': np.arange(9)})\n"
    )
    (tmp_path / "state").mkdir()
    path = tmp_path / "state" / WORDS_NAME
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == -9
    left = [p.name for p in path.parent.iterdir() if p.name.endswith(".tmp")]
    assert len(left) == 1 and WORDS_NAME in left[0]
    warm(open_backend(workspace)).close()
    assert [p.name for p in path.parent.iterdir() if p.name.endswith(".tmp")] == []


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "some"
    arrays = {"a": np.arange(5, dtype=np.uint32), "b": np.zeros((0, 3), dtype=np.float32), "c": np.eye(3)[:, ::2]}
    write_arrays(path, {"of": "x"}, arrays)
    stored = read_arrays(path)
    assert stored is not None and stored.facts == {"of": "x"}
    for name, array in arrays.items():
        assert stored.arrays[name].dtype == array.dtype
        assert stored.arrays[name].tolist() == array.tolist()
    with pytest.raises(ValueError, match="read-only"):
        stored.arrays["a"][0] = 1
    assert read_arrays(tmp_path / "none") is None
    with pytest.raises(Damaged, match=re.escape(str(tmp_path))):
        read_arrays(tmp_path)


WRITER = """
import sys
from pathlib import Path
from notes import make_workspace, open_backend
from lamella.types.memory import SearchQuery
from lamella_memory_core.index import index
from lamella_memory_core.warm import view
from vector_words import WordVectors
view.LEAST_PASSAGES = index.LEAST_PASSAGES = 1
view._SMALL_CHANGE = 2
folder, name = Path(sys.argv[1]), sys.argv[2]
backend = open_backend(folder / "ws", embedders=WordVectors().registered())
for i in range(8):
    make_workspace(folder, {f"memory/{name}{i}.md": f"{name} wrote number{i}\\n"})
    backend.sync()  # a search alone would go on without, where the machine is slow
    found = backend.search(SearchQuery(f"{name} number{i}", as_is=True))
    assert found.hits[0].path == f"memory/{name}{i}.md", found
    assert backend._index._warmer.wait(60)
backend.close()
"""


def test_processes_make_files_at_once(tmp_path: Path) -> None:
    make_workspace(tmp_path, {"memory/a.md": "alpha\n"})
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1] / 'support')!r})\n{WRITER}"
    workers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name]) for name in ("one", "two")]
    assert [w.wait() for w in workers] == [0, 0]
    database, view = Database(tmp_path / "state", Chunking().identity), View(Shelf(tmp_path / "state"))
    assert_alike(database, view)
    database.close()
