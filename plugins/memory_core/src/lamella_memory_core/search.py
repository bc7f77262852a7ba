"""Keyword search in the index."""

from __future__ import annotations

import re

from sqlalchemy import Connection, func, select

from lamella.text.segment import Term, query_terms
from lamella.types.memory import MemoryHit, SearchQuery
from lamella_memory_core.ranking import Passage, best_rows, scores, without_repeats
from lamella_memory_core.schema import chunks, files
from lamella_memory_core.snippet import make_snippet

# A word in the file's name counts half of one in the text.
_MATCH = "SELECT rowid, bm25(chunks_fts, 1.0, 0.5) FROM chunks_fts WHERE chunks_fts MATCH ?"
# Passages are left out when a better one holds them, so a few more than wanted are ranked.
_CANDIDATES_PER_RESULT = 4
_FILE_NAME = re.compile(r"(?:\./|\bmemory/)*([\w./-]*\w)\.md\b")


def keyword_search(connection: Connection, query: SearchQuery, *, snippet_chars: int) -> tuple[MemoryHit, ...]:
    """The best passages that have any of the question's words, best first; none for no words."""
    terms = query_terms(_FILE_NAME.sub(r"\1", query.text))
    total = connection.execute(select(func.count()).select_from(chunks)).scalar_one()
    if not terms or not total:
        return ()
    found = [matches(connection, term) for term in terms]
    scored = {row: score for row, score in scores(found, total).items() if score >= query.min_score}
    rows = best_rows(scored, query.max_results * _CANDIDATES_PER_RESULT)
    passages = without_repeats(_passages(connection, rows, scored, query.sources), query.max_results)
    words = [term.text for term in terms if term.kind != "phrase"]
    return tuple(_hit(passage, words, snippet_chars) for passage in passages)


def matches(connection: Connection, term: Term) -> dict[int, float]:
    """bm25() of every chunk that has the term, by chunk id; negative, lower is better."""
    found = connection.exec_driver_sql(_MATCH, (fts_expression(term),))
    return {row[0]: row[1] for row in found}


def fts_expression(term: Term) -> str:
    """A term in the language of FTS5: quoted, so that nothing in it has a meaning."""
    quoted = '"' + term.text.replace('"', '""') + '"'
    return f"{quoted} *" if term.kind == "prefix" else quoted


def _passages(
    connection: Connection, rows: list[int], scored: dict[int, float], sources: tuple[str, ...]
) -> list[Passage]:
    """The passages of these rows, in their order; only from `sources`, if any are named."""
    wanted = (
        select(chunks.c.id, files.c.path, chunks.c.start_line, chunks.c.end_line, chunks.c.text)
        .join(files, files.c.id == chunks.c.file_id)
        .where(chunks.c.id.in_(rows))
    )
    if sources:
        wanted = wanted.where(files.c.source.in_(sources))
    found = {
        row: Passage(path, start, end, text, scored[row]) for row, path, start, end, text in connection.execute(wanted)
    }
    passages = [found[row] for row in rows if row in found]
    return sorted(passages, key=lambda p: (-p.score, p.path, p.start_line))


def _hit(passage: Passage, words: list[str], limit: int) -> MemoryHit:
    shown = make_snippet(passage.text, passage.start_line, words, limit)
    return MemoryHit(passage.path, shown.start_line, shown.end_line, passage.score, shown.text)
