"""A search of the index: from a question to passages with places and scores."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import accumulate
from typing import TYPE_CHECKING

from attrs import evolve

from lamella.text.segment import query_terms
from lamella.types.memory import EmbedderTraits, MemoryHit, SearchQuery
from lamella_memory_core.catalog import Catalog
from lamella_memory_core.choices import WEIGHTED
from lamella_memory_core.dates import named_spans
from lamella_memory_core.diversity import diversified
from lamella_memory_core.evidence import (
    Evidence,
    Question,
    faded,
    standardised_evidence,
    weighted_evidence,
)
from lamella_memory_core.keywords import Keywords, keyword_strengths
from lamella_memory_core.passages import Passage, Piece, Sizes, joined
from lamella_memory_core.ranking import age_factors, best_positions
from lamella_memory_core.shares import OPENCLAW_SHARE, dense_share
from lamella_memory_core.snippet import make_snippet
from lamella_memory_core.style import Style
from lamella_memory_core.words import Words

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Flags, Floats, Numbers

# So many hits are looked at for each passage that is wanted, since hits of one place become one.
_HITS_PER_PASSAGE = 3
_LEAST_HITS = 30
_BESIDE = 4
LEAST_CHARS = 600
_FILE_NAME = re.compile(r"(?:\./|\bmemory/)*([\w./-]*\w)\.md\b")


def search_index(
    connection: sqlite3.Connection,
    catalog: Catalog,
    words: Words,
    query: SearchQuery,
    style: Style,
    likeness: Floats | None = None,
    traits: EmbedderTraits | None = None,
) -> tuple[MemoryHit, ...]:
    """The best passages, best first. `words` finds the question's terms in the catalog's passages.

    `likeness` (N,): cosine of every passage with the question, when there are vectors. Without it only
    passages with a word of the question, or of a day that it names, can be found. `traits`: of the
    embedder that made them.
    """
    if not len(catalog):
        return ()
    terms = query_terms(_FILE_NAME.sub(r"\1", query.text))
    keywords = keyword_strengths(connection, terms, catalog, words)
    question = _question(catalog, query, keywords, likeness)
    evidence = _evidence(catalog, query, style, question, traits or EmbedderTraits())
    hits = best_positions(evidence.order, evidence.found, max(_LEAST_HITS, _HITS_PER_PASSAGE * query.max_results))
    pieces = _pieces(connection, catalog, hits, evidence.order)
    alike = _apart(hits.tolist(), pieces, style) if style.mmr_lambda < 1 else {}
    sizes = Sizes(style.passage_chars, min(style.passage_chars, LEAST_CHARS))
    passages = joined(list(alike) or hits.tolist(), pieces, sizes, query.max_results)
    scores = [float(evidence.shown[list(passage.positions)].max()) for passage in passages]
    if style.mmr_lambda == 1:
        scores = _falling(scores)
    shown = [term.text for term in terms if term.kind != "phrase"]
    found = [
        _hit(catalog, passage, score, shown, style.passage_chars)
        for passage, score in zip(passages, scores, strict=True)
    ]
    if query.explain:
        found = [
            evolve(hit, parts=_parts(evidence, alike, p.positions[0])) for hit, p in zip(found, passages, strict=True)
        ]
    return tuple(found)


def _question(catalog: Catalog, query: SearchQuery, keywords: Keywords, likeness: Floats | None) -> Question:
    named = _named(catalog, query.text, _today(query))
    return Question(keywords, likeness, named, _allowed(catalog, query), query.min_score)


def _evidence(
    catalog: Catalog, query: SearchQuery, style: Style, question: Question, traits: EmbedderTraits
) -> Evidence:
    if style.fusion == WEIGHTED:
        share = OPENCLAW_SHARE if style.dense_share is None else style.dense_share
        evidence = weighted_evidence(question, share, style.candidates * query.max_results)
    else:
        share = dense_share(style.dense_share, traits, query.text)
        evidence = standardised_evidence(question, share, catalog)
    if not style.half_life_days:
        return evidence
    factors = age_factors(catalog.days, _today(query), style.half_life_days)
    return faded(evidence, factors[catalog.file])


def _today(query: SearchQuery) -> date:
    return date.fromisoformat(query.today) if query.today else date.today()


def _allowed(catalog: Catalog, query: SearchQuery) -> Flags:
    """Which passages may be found by this query."""
    import numpy as np

    if not query.exclude and not query.sources:
        return np.ones(len(catalog), dtype=np.bool_)
    files = [
        path not in query.exclude and (not query.sources or source in query.sources)
        for path, source in zip(catalog.paths, catalog.sources, strict=True)
    ]
    return np.array(files, dtype=np.bool_)[catalog.file]


def _apart(hits: Sequence[int], pieces: Mapping[int, Piece], style: Style) -> dict[int, float]:
    """Hits in an order that puts unlike ones first, each with its likeness to those before it."""
    texts, values = [pieces[hit].text for hit in hits], [pieces[hit].worth for hit in hits]
    return {hits[i]: alike for i, alike in diversified(texts, values, style.mmr_lambda).items()}


def _parts(evidence: Evidence, alike: Mapping[int, float], position: int) -> dict[str, float | None]:
    parts = evidence.explain(position)
    return {**parts, "alike": round(alike[position], 4)} if alike else parts


def _named(catalog: Catalog, question: str, today: date) -> Flags:
    """Which passages are of a day that the question names."""
    import numpy as np

    spans = named_spans(question, today, catalog.years)
    if not spans:
        return np.zeros(len(catalog), dtype=np.bool_)
    of_day = [day is not None and any(day in span for span in spans) for day in catalog.days]
    return np.array(of_day, dtype=np.bool_)[catalog.file]


def _pieces(connection: sqlite3.Connection, catalog: Catalog, hits: Numbers, worth: Floats) -> dict[int, Piece]:
    """The pieces at these positions and beside them."""
    near = {hit + step for hit in hits.tolist() for step in range(-_BESIDE, _BESIDE + 1)}
    positions = sorted(position for position in near if 0 <= position < len(catalog))
    ids, files, values = (array[positions].tolist() for array in (catalog.ids, catalog.file, worth))
    rows = connection.execute(
        "SELECT id, start_line, end_line, start_char, end_char, text FROM chunks"
        f" WHERE id IN ({', '.join('?' * len(ids))})",
        ids,
    )
    known = {
        number: (place, file, value) for number, place, file, value in zip(ids, positions, files, values, strict=True)
    }
    pieces = {}
    for number, first, last, start, end, text in rows:
        place, file, value = known[number]
        pieces[place] = Piece(place, file, first, last, start, end, text, value)
    return pieces


def _falling(scores: Sequence[float]) -> list[float]:
    """Each score, and never less than those after it: what puts a passage before them, such as its file,
    is a reason to trust it too."""
    return list(accumulate(reversed(scores), max))[::-1]


def _hit(catalog: Catalog, passage: Passage, score: float, words: list[str], limit: int) -> MemoryHit:
    snippet = make_snippet(passage.text, passage.start_line, words, limit)
    path, source = catalog.paths[passage.file], catalog.sources[passage.file]
    return MemoryHit(path, snippet.start_line, snippet.end_line, score, snippet.text, source)
