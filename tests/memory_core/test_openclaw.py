"""What OpenClaw 2026.3.13 recorded on the golden workspace: its passages, and scores of its raw fusion.

Its texts are those of the copy in tests/data, except where a test says otherwise. The cosines and BM25
values in the record were computed from them; the results are what it answered.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from notes import DATA, make_workspace, open_backend

from lamella.types.memory import SearchQuery
from lamella_memory_core import Config
from lamella_memory_core.index.openclaw import openclaw_chunks
from lamella_memory_core.lexical.keywords import Keywords
from lamella_memory_core.ranking.evidence import Question, weighted_evidence

RECORD: dict[str, Any] = json.loads((DATA / "openclaw-2026.3.13.json").read_text("utf-8"))
GOLDEN = DATA / "golden" / "ws"
# Made of parts of one long line, between which it puts line ends; the last one is cut at 8,000 bytes too.
LONG_LINES = ("memory/longline.md", "memory/emoji.md", "memory/longcjk.md")
OTHER_TEXT = ("MEMORY.md", "memory/crlf.md", "memory/.hidden.md", "memory/projects/lamella.md")


def cut(name: str) -> list[tuple[int, int, str]]:
    chunks = openclaw_chunks((GOLDEN / name).read_bytes().decode())
    return [(c.start_line, c.end_line, hashlib.sha256(c.text.encode()).hexdigest()) for c in chunks]


def recorded(name: str) -> list[tuple[int, int, str]]:
    return [(first, last, digest) for path, first, last, digest in RECORD["passages"] if path == name]


def same_text() -> list[str]:
    names = dict.fromkeys(path for path, *_ in RECORD["passages"])
    return [name for name in names if name not in LONG_LINES + OTHER_TEXT and not name.startswith("..")]


@pytest.mark.parametrize("name", same_text())
def test_files_are_cut_as_recorded(name: str) -> None:
    assert cut(name) == recorded(name)


@pytest.mark.parametrize("name", LONG_LINES)
def test_long_lines_are_cut_at_the_same_lines(name: str) -> None:
    assert list(dict.fromkeys(row[:2] for row in cut(name))) == list(dict.fromkeys(row[:2] for row in recorded(name)))


@given(
    st.lists(st.sampled_from(["", "a line", "word " * 40, "🦊" * 50, "第一条记录" * 12]), max_size=20).map("\n".join),
    st.integers(8, 40),
    st.integers(0, 20),
)
def test_passages_are_slices_that_cover_what_is_written(source: str, size: int, overlap: int) -> None:
    chunks = openclaw_chunks(source, size=size, overlap=overlap)
    assert all(chunk.text == source[chunk.start : chunk.end] for chunk in chunks)
    assert all(chunk.start_line == source.count("\n", 0, chunk.start) + 1 for chunk in chunks)
    covered = {i for chunk in chunks for i in range(chunk.start, chunk.end)}
    assert all(i in covered for i, character in enumerate(source) if not character.isspace())
    assert [c.end for c in chunks] == sorted({c.end for c in chunks})


@pytest.mark.parametrize("search", RECORD["searches"], ids=lambda s: s["query"])
def test_raw_fusion_gives_the_recorded_results(search: dict[str, Any]) -> None:
    words = np.array([value or 0.0 for value in search["bm25"]])
    question = Question(
        Keywords(words, np.zeros(1), 1.0),
        np.array(search["cosines"]),
        named=np.zeros(len(words), dtype=bool),
        allowed=np.ones(len(words), dtype=bool),
        floor=0.35,
    )
    evidence = weighted_evidence(question, 0.7, candidates=24)
    found = sorted(np.flatnonzero(evidence.found).tolist(), key=lambda i: -evidence.order[i])[:6]
    assert [(i, pytest.approx(evidence.shown(i), abs=1e-4)) for i in found] == [tuple(r) for r in search["results"]]


def test_the_settings_together_search_as_openclaw_does(tmp_path: Path) -> None:
    """One long note is one passage of 400 tokens; what is said about a result are the raw parts of its score."""
    text = "".join(f"- item {i} about the okapi and its food\n" for i in range(40))
    workspace = make_workspace(tmp_path, {"memory/a.md": text, "memory/b.md": "- a zebra\n"})
    config = Config(
        embedder="none", fusion="weighted", chunk_rule="openclaw", chunk_tokens=400, chunk_overlap=80, snippet_chars=700
    )
    (hit,) = open_backend(workspace, config).search(SearchQuery("okapi", explain=True)).hits
    assert len(hit.snippet) <= 700
    assert hit.parts is not None
    assert set(hit.parts) == {"words", "meaning", "order"}
    assert hit.score == pytest.approx(hit.parts["words"], abs=1e-4)
