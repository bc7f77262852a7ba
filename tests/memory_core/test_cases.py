"""Faults that were reported of programs like this one, each under its number, with the files it was reported with."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from memory_tools import payload, tools
from notes import DATA, copy_case, make_workspace, memory_context, open_backend, open_memory

from lamella.errors import LamellaError, MemoryPathError
from lamella.memory.reading import read_memory
from lamella.memory.writer import MemoryWriter
from lamella.text.chunk import chunk_text, token_estimate
from lamella.types.memory import BackendContext, BackendRegistration, EmbedderRegistration, Provenance, SearchQuery
from lamella_memory_core import Config
from lamella_memory_core.backend import SqliteBackend, open_sqlite
from lamella_memory_core.service import Memory


class Rules:
    """An embedder whose vectors a function gives."""

    def __init__(self, identity: str, dimensions: int, vector: Callable[[str], Sequence[float]]) -> None:
        self.identity = identity
        self.dimensions = dimensions
        self.vector = vector
        self.embedded: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.embedded += texts
        return np.array([self.vector(text) for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return np.array(self.vector(text), dtype=np.float32)

    def on_offer(self) -> dict[str, EmbedderRegistration]:
        return {"static": EmbedderRegistration("static", lambda: self)}


def paths(backend: SqliteBackend, words: str, **query: Any) -> list[str]:
    return [hit.path for hit in backend.search(SearchQuery(words, max_results=20, **query)).hits]


def tables(workspace: Path, state: str = "state") -> dict[str, list[tuple[Any, ...]]]:
    """What an index holds, without what differs between two that were made at different times."""
    connection = sqlite3.connect(workspace.parent / state / "memory.sqlite")
    queries = {
        "files": "SELECT path, source, size, hash FROM files ORDER BY path",
        "chunks": "SELECT path, start_line, end_line, start_char, end_char, chunks.hash, text"
        " FROM chunks JOIN files ON files.id = file_id ORDER BY path, start_char",
        "words": "SELECT path, body, name FROM chunks_fts JOIN chunks ON chunks.id = chunks_fts.rowid"
        " JOIN files ON files.id = file_id ORDER BY path, start_char",
        "vectors": "SELECT vectors.hash, vector FROM vectors ORDER BY vectors.hash",
    }
    try:
        return {name: connection.execute(query).fetchall() for name, query in queries.items()}
    finally:
        connection.close()


def letters(text: str) -> list[float]:
    vector = np.array([text.lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz"], dtype=float) + 0.01
    return list(vector / np.linalg.norm(vector))


# --- K77: what is deleted, renamed or emptied stays in the index ---------------------------------------------


def test_k77_the_index_follows_every_kind_of_change(tmp_path: Path) -> None:
    workspace = Path(shutil.copytree(DATA / "K77" / "before", tmp_path / "ws"))
    words = Rules("letters", 26, letters)
    backend = open_backend(workspace, embedders=words.on_offer())
    backend.sync()
    shutil.rmtree(workspace)
    shutil.copytree(DATA / "K77" / "after", workspace)
    words.embedded.clear()
    backend.sync()
    assert not any("saffron" in text for text in words.embedded)  # only the file's name is new
    keywords = open_backend(workspace)
    expected = {
        "marmalade": [],
        "lantern": ["memory/2026-05-09.md"],
        "saffron": ["memory/baking.md"],
        "quinoa": [],
        "Bluefin": [],
        "Goldfin": ["MEMORY.md"],
        "kestrel": ["memory/2026-05-10.md"],
    }
    assert {word: paths(keywords, word) for word in expected} == expected
    open_backend(workspace, state="fresh", embedders=words.on_offer()).sync()
    kept, fresh = tables(workspace), tables(workspace, "fresh")
    assert set(fresh.pop("vectors")) <= set(kept.pop("vectors"))
    assert kept == fresh


# --- K79: links ----------------------------------------------------------------------------------------------


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    workspace = make_workspace(
        tmp_path, {"memory/inside.md": "- inside note zebra\n", "shared/otter.md": "- shared note otter\n"}
    )
    (tmp_path / "outside/notes").mkdir(parents=True)
    (tmp_path / "outside/secret.md").write_text("- outside secret walrus\n")
    (tmp_path / "outside/notes/vault.md").write_text("- outside vault heron\n")
    (workspace / "memory/sub").mkdir()
    for name, target in {
        "memory/link_inside.md": "../shared/otter.md",
        "memory/link_outside.md": "../../outside/secret.md",
        "memory/linkdir_outside": "../../outside/notes",
        "memory/broken.md": "nowhere.md",
        "memory/sub/loop": "..",
        "vault": "../outside/notes",
    }.items():
        (workspace / name).symlink_to(target)
    (workspace / "memory/zz.md").write_text("- another note with a second name\n")
    os.link(workspace / "memory/zz.md", workspace / "memory/hard.md")
    return workspace


def test_k79_links_are_skipped_counted_and_lead_nowhere(linked: Path) -> None:
    backend = open_backend(linked)
    report = backend.sync()
    assert report.ok
    assert {p.path for p in report.skipped} == {
        "memory/link_inside.md", "memory/link_outside.md", "memory/linkdir_outside", "memory/broken.md",
        "memory/sub/loop", "memory/hard.md", "memory/zz.md",
    }  # fmt: skip
    assert paths(backend, "zebra") == ["memory/inside.md"]
    assert paths(backend, "walrus heron") == []
    for name in ("memory/link_outside.md", "memory/linkdir_outside/vault.md", "memory/sub/loop/inside.md"):
        with pytest.raises(MemoryPathError):
            read_memory(linked, name)


def test_k79_a_configured_root_that_is_a_link_is_said(linked: Path) -> None:
    memory = open_memory(linked, Config(extra_paths=("vault",)))
    assert ("vault", "a symbolic link") in {(p.path, p.reason) for p in memory.sync().skipped}
    assert memory.search(SearchQuery("heron")).hits == ()
    memory.close()


# --- K80: long lines -----------------------------------------------------------------------------------------

SIZES = [(400, 80), (128, 32), (64, 8), (64, 63), (64, 64), (32, 200), (8, 0)]


@pytest.mark.parametrize("name", ["longline.md", "min.md", "zh.md", "list.md"])
@pytest.mark.parametrize(("size", "overlap"), SIZES)
def test_k80_chunks_keep_to_their_size(name: str, size: int, overlap: int) -> None:
    text = (DATA / "K80" / "ws/memory" / name).read_bytes().decode()
    chunks = chunk_text(text, size=size, overlap=overlap)
    assert len(chunks) < 20_000
    covered = 0
    for chunk in chunks:
        assert token_estimate(chunk.text) <= size
        assert text[chunk.start : chunk.end] == chunk.text
        assert text.count("\n", 0, chunk.start) + 1 == chunk.start_line
        assert not text[covered : chunk.start].strip()
        covered = max(covered, chunk.end)
    assert not text[covered:].strip()


# --- K83: a rebuild that fails -------------------------------------------------------------------------------


def test_k83_a_failed_rebuild_leaves_the_old_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = copy_case("K83", tmp_path)
    backend = open_backend(workspace)
    backend.sync()
    before = tables(workspace)
    (workspace / "memory/n5.md").write_text("- note 5 about topic6\n")

    def full(*_: object) -> None:
        raise LamellaError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("lamella_memory_core.index.changes._insert_chunks", full)
        with pytest.raises(LamellaError, match="disk full"):
            backend.sync(force=True)
    assert tables(workspace) == before
    assert paths(open_backend(workspace), "topic1")[0] == "memory/n1.md"
    backend.sync(force=True)
    assert not [p for p in (tmp_path / "state").rglob("*") if "tmp" in p.name or "reindex" in p.name]
    assert paths(backend, "topic6")[0] == "memory/n5.md"


def test_k83_an_embedder_that_fails_is_said_and_words_answer(tmp_path: Path) -> None:
    workspace = copy_case("K83", tmp_path)

    def moody(text: str) -> Sequence[float]:
        if "topic3" in text:
            raise RuntimeError("no more today")
        return letters(text)

    backend = open_backend(workspace, embedders=Rules("moody", 26, moody).on_offer())
    assert "no more today" in backend.sync(force=True).degraded
    assert paths(backend, "topic1")[0] == "memory/n1.md"


@pytest.mark.parametrize("content", ["", "999999999", '{"pid": 1}'])
def test_k83_a_lock_file_of_nobody_holds_nothing_up(tmp_path: Path, content: str) -> None:
    workspace = copy_case("K83", tmp_path)
    locks = tmp_path / "state/locks"
    locks.mkdir(parents=True)
    (locks / "memory-index.lock").write_text(content)
    assert paths(open_backend(workspace), "topic1")[0] == "memory/n1.md"


# --- K84: line ends ------------------------------------------------------------------------------------------


def test_k84_a_change_keeps_every_other_byte(tmp_path: Path) -> None:
    workspace = copy_case("K84", tmp_path)
    note, mixed = workspace / "memory/2026-05-10.md", workspace / "memory/mixed.md"
    note.write_bytes(note.read_bytes().replace(b"\n", b"\r\n"))
    mixed.write_bytes(b"- first lf\n- second crlf\r\n- third lf\n")
    writer = MemoryWriter(workspace, tmp_path / "state", "UTC")
    before = mixed.read_bytes()
    writer.append("memory/mixed.md", "- fourth", Provenance("test"))
    assert mixed.read_bytes() == before + b"- fourth\n"
    (hit,) = open_backend(workspace).search(SearchQuery("own line two", max_results=1)).hits
    assert hit.start_line <= 8 <= hit.end_line
    old = note.read_bytes()
    new = old.decode().replace("\r\n", "\n").replace("- own line one\n", "")
    writer.replace("memory/2026-05-10.md", new, writer.hash_of("memory/2026-05-10.md"), Provenance("test"))
    assert note.read_bytes() == old.replace(b"- own line one\r\n", b"")


# --- K85: no embedder ----------------------------------------------------------------------------------------


def test_k85_words_alone_are_enough_and_vectors_come_and_go(tmp_path: Path) -> None:
    workspace = copy_case("K85", tmp_path)
    words = Rules("letters", 26, letters)

    def answers(backend: SqliteBackend) -> list[str]:
        return [paths(backend, question)[0] for question in ("keypad", "F7", "游泳馆")]

    expected = ["MEMORY.md", "memory/2026-05-10.md", "MEMORY.md"]
    keywords = open_backend(workspace)
    assert keywords.sync().added == 2
    index = tables(workspace)
    assert len(index["words"]) == len(index["chunks"]) >= 2 and index["vectors"] == []
    assert keywords.status()["mode"] == "keyword"
    assert answers(keywords) == expected
    hybrid = open_backend(workspace, embedders=words.on_offer())
    assert hybrid.sync().embedded == len({row[5] for row in index["chunks"]})
    assert answers(hybrid) == expected
    again = open_backend(workspace)
    assert again.sync().unchanged == 2
    assert answers(again) == expected
    assert tables(workspace)["chunks"] == index["chunks"]


# --- K89: exact words and thresholds -------------------------------------------------------------------------


def garden(text: str) -> list[float]:
    if "garden" in text:
        return [1.0, 0.0, 0.0]
    return [0.0, 1.0, 0.0] if text in ("ZX-48213", "qqqq-nothing") else [0.0, 0.0, 1.0]


def test_k89_an_exact_word_is_found_when_meaning_says_nothing(tmp_path: Path) -> None:
    memory = open_hybrid(copy_case("K89", tmp_path), Rules("garden", 3, garden))
    search = tools(memory)["memory_search"]
    assert payload(search, query="ZX-48213")["results"][0]["path"] == "MEMORY.md"
    assert payload(search, query="qqqq-nothing")["results"] == []
    strict = [hit["path"] for hit in payload(search, query="ZX-48213", minScore=0.9)["results"]]
    assert strict in ([], ["MEMORY.md"])
    memory.close()


def open_hybrid(workspace: Path, words: Rules) -> Memory:
    context = memory_context(workspace)
    registered = BackendRegistration("sqlite", lambda given: open_sqlite(given, Config()))
    return Memory(evolve(context, backends={"sqlite": registered}, embedders=words.on_offer()), Config())


# --- K105: another model -------------------------------------------------------------------------------------


def test_k105_vectors_of_two_models_never_meet(tmp_path: Path) -> None:
    workspace = copy_case("K105", tmp_path)
    a = Rules("fake-a", 3, lambda _text: [0.0, 0.0, 1.0])
    b = Rules("fake-b", 5, lambda _text: [0.0, 0.0, 0.0, 0.0, 1.0])
    c = Rules("fake-c", 5, lambda _text: [1.0, 0.0, 0.0, 0.0, 0.0])
    for words in (a, b, c):
        backend = open_backend(workspace, embedders=words.on_offer())
        assert set(paths(backend, "barometer")) == {"MEMORY.md", "memory/2026-05-10.md"}
        assert len(words.embedded) == len({row[5] for row in tables(workspace)["chunks"]})
        used = backend.status()["vectors"]
        assert {"identity": words.identity, "count": len(words.embedded)} in used
    counted = len(a.embedded)
    open_backend(workspace, embedders=a.on_offer()).sync()
    assert len(a.embedded) == counted


# --- K106: a question that cannot be embedded ----------------------------------------------------------------


@pytest.mark.parametrize(
    "vector", [None, [1.0, 0.0], [float("nan")] * 3, [0.0, 0.0, 0.0]], ids=["raise", "wrong_length", "nan", "all_zero"]
)
def test_k106_words_answer_and_the_answer_says_so(tmp_path: Path, vector: list[float] | None) -> None:
    sick = [False]

    def embed(text: str) -> Sequence[float]:
        if not sick[0] or text not in ("sundial", "nothing-like-it"):
            return [0.0, 0.0, 1.0]
        if vector is None:
            raise RuntimeError("timed out")
        return vector

    memory = open_hybrid(copy_case("K106", tmp_path), Rules("fake", 3, embed))
    search = tools(memory)["memory_search"]
    memory.sync()
    sick[0] = True
    found = payload(search, query="sundial")
    assert {hit["path"] for hit in found["results"]} == {"MEMORY.md", "memory/2026-05-10.md"}
    assert found["degraded"]["reason"] in found["warning"]
    assert "warning" in payload(search, query="nothing-like-it")
    sick[0] = False
    healthy = payload(search, query="sundial")
    assert "warning" not in healthy and "degraded" not in healthy
    assert healthy["mode"] == "hybrid"
    memory.close()


# --- K146: secrets -------------------------------------------------------------------------------------------

TEXTS = json.loads((DATA.parent / "cases/K146/texts.json").read_text("utf-8"))


@pytest.mark.parametrize("source", ["transcript", "note"])
def test_k146_secrets_reach_neither_index_nor_embedder(tmp_path: Path, source: str) -> None:
    said = [str(case["text"]) for case in TEXTS]
    workspace = make_workspace(tmp_path, {"memory/a.md": "".join(f"- {text}\n" for text in said if source == "note")})
    notes = (workspace / "memory/a.md").read_bytes()
    entries = [{"type": "message", "id": "m", "message": {"role": "user", "content": text}} for text in said]
    (tmp_path / "sessions").mkdir()
    if source == "transcript":
        (tmp_path / "sessions/a.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    words = Rules("letters", 26, letters)
    config = Config(session_memory=True, redact_notes=True)
    backend = open_sqlite(
        BackendContext("main", workspace, tmp_path / "state", words.on_offer(), transcripts=tmp_path / "sessions"),
        config,
    )
    backend.sync()
    indexed = json.dumps(tables(workspace)["chunks"], ensure_ascii=False)
    sent = "\n".join(words.embedded)
    backend.close()
    stored = b"".join(p.read_bytes() for p in (tmp_path / "state").rglob("*") if p.is_file())
    for case in TEXTS:
        if case["secret"]:
            assert case["secret"] not in indexed and case["secret"] not in sent
            assert case["secret"].encode() not in stored
        else:
            assert case["text"] in indexed
    assert (workspace / "memory/a.md").read_bytes() == notes


def test_k146_notes_are_indexed_as_they_are_unless_configured(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, {"MEMORY.md": "- wifi password: tr0ub4dor\n"})
    (hit,) = open_backend(workspace).search(SearchQuery("wifi")).hits
    assert hit.snippet == "- wifi password: tr0ub4dor"
    (hit,) = open_backend(workspace, Config(embedder="none", redact_notes=True)).search(SearchQuery("wifi")).hits
    assert hit.snippet == "- wifi password: ***"
    assert read_memory(workspace, "MEMORY.md").text == "- wifi password: tr0ub4dor"


# --- K149: MEMORY.md and memory.md ---------------------------------------------------------------------------


def test_k149_one_of_two_spellings_counts_everywhere(tmp_path: Path) -> None:
    both = Path(shutil.copytree(DATA / "K149" / "both", tmp_path / "both/ws"))
    backend = open_backend(both)
    assert paths(backend, "quokka") == ["MEMORY.md"]
    assert paths(backend, "wombat") == []
    with pytest.raises(MemoryPathError):
        read_memory(both, "memory.md")
    lower = Path(shutil.copytree(DATA / "K149" / "lower_only", tmp_path / "lower/ws"))
    assert paths(open_backend(lower), "wombat") == ["memory.md"]
    assert read_memory(lower, "MEMORY.md").path == "memory.md"


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_k149_an_alias_is_no_second_file(tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    workspace = Path(shutil.copytree(DATA / "K149" / "upper_only", tmp_path / "ws"))
    target = Path("MEMORY.md") if make is Path.symlink_to else workspace / "MEMORY.md"
    make(workspace / "memory.md", target)
    assert len(paths(open_backend(workspace), "quokka")) <= 1


# --- golden: what both recorded versions of OpenClaw often missed --------------------------------------------

ANSWERS = {
    "exact_id": "MEMORY.md", "error_code": "memory/2026-11-29.md", "ip": "memory/network.md",
    "vlan": "memory/network.md", "path": "memory/network.md", "stem": "memory/network.md", "zh_pref": "MEMORY.md",
    "zh_phrase": "MEMORY.md", "zh_phrase2": "MEMORY.md", "zh_word": "MEMORY.md", "zh_mixed": "MEMORY.md",
    "zh_mixed_glued": "MEMORY.md", "zh_question": "memory/2026-11-28.md", "zh_db": "memory/2026-11-29.md",
    "zh_pool": "memory/2026-11-29.md", "zh_password": "memory/network.md", "ja": "memory/projects/lamina.md",
    "ko": "memory/projects/lamina.md", "ru": "memory/projects/lamina.md", "long_line_word": "memory/longline.md",
    "extra_file": "../extra/team.md", "extra_dir": "../extra/sub/guide.md", "standup": "memory/2026-11-29.md",
}  # fmt: skip
QUERIES = {q["id"]: q["query"] for q in json.loads((DATA / "golden" / "queries.json").read_text("utf-8"))}


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    folder = tmp_path_factory.mktemp("golden")
    workspace = copy_case("golden", folder)
    shutil.copytree(DATA / "golden/extra", folder / "extra")
    return open_memory(workspace, Config(extra_paths=("../extra",), watch=False))


@pytest.mark.parametrize("name", ANSWERS)
def test_golden_right_answers_are_among_the_first_three(golden: Memory, name: str) -> None:
    hits = golden.search(SearchQuery(QUERIES[name], today="2026-11-30")).hits
    assert ANSWERS[name] in [hit.path for hit in hits[:3]]
