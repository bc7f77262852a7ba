"""A search of the index: from a question to passages with places and scores."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import accumulate
from typing import TYPE_CHECKING

from lamella.text.segment import query_terms
from lamella.types.memory import EmbedderTraits, MemoryHit, SearchQuery
from lamella_memory_core.choices import WEIGHTED
from lamella_memory_core.lexical.keywords import Keywords, keyword_strengths
from lamella_memory_core.lexical.words import Words
from lamella_memory_core.ranking.dates import named_spans
from lamella_memory_core.ranking.diversity import diversified
from lamella_memory_core.ranking.evidence import Evidence, Question, faded, standardised_evidence, weighted_evidence
from lamella_memory_core.ranking.order import age_factors, best_positions
from lamella_memory_core.ranking.passages import Passage, Piece, Sizes, joined
from lamella_memory_core.ranking.shares import OPENCLAW_SHARE, dense_share
from lamella_memory_core.ranking.snippet import Snippet, make_snippet
from lamella_memory_core.ranking.stored import StoredPieces
from lamella_memory_core.ranking.style import Style
from lamella_memory_core.warm.catalog import Catalog

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Flags, Floats, Where

# So many hits are looked at for each passage that is wanted, since hits of one place become one.
_HITS_PER_PASSAGE = 3
_LEAST_HITS = 30
LEAST_CHARS = 600
_FILE_NAME = re.compile(r"(?<![\w./-])(?:\./|\bmemory/)*+([\w./-]*\w)\.md\b")


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
    passages, alike = _passages(connection, catalog, query, style, evidence)
    scores = _scores(passages, evidence.shown, style)
    wanted = [term.text for term in terms if term.kind != "phrase"]
    return tuple(
        _hit(
            catalog,
            passage,
            score,
            make_snippet(passage.text, passage.start_line, wanted, style.passage_chars),
            _parts(evidence, alike, passage.positions[0]) if query.explain else None,
        )
        for passage, score in zip(passages, scores, strict=True)
    )


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
    excluded = frozenset(query.exclude)
    files = [
        path not in excluded and (not query.sources or source in query.sources)
        for path, source in zip(catalog.paths, catalog.sources, strict=True)
    ]
    return np.array(files, dtype=np.bool_)[catalog.file]


def _passages(
    connection: sqlite3.Connection, catalog: Catalog, query: SearchQuery, style: Style, evidence: Evidence
) -> tuple[list[Passage], dict[int, float]]:
    """What is to be shown, best first; and, when unlike ones are to come first, the likeness of each hit
    to those before it."""
    count = max(_LEAST_HITS, _HITS_PER_PASSAGE * query.max_results)
    hits = best_positions(evidence.order, evidence.found, count).tolist()
    pieces = StoredPieces(connection, catalog, evidence.order, hits, query.max_results)
    alike: dict[int, float] = {}
    if style.mmr_lambda < 1:
        alike = _apart(hits, pieces, style.mmr_lambda)
        hits = list(alike)
    sizes = Sizes(style.passage_chars, min(style.passage_chars, LEAST_CHARS))
    return joined(hits, pieces, sizes, query.max_results), alike


def _apart(hits: Sequence[int], pieces: Mapping[int, Piece], relevance_share: float) -> dict[int, float]:
    """Hits in an order that puts unlike ones first, each with its likeness to those before it."""
    texts, values = [pieces[hit].text for hit in hits], [pieces[hit].worth for hit in hits]
    return {hits[i]: alike for i, alike in diversified(texts, values, relevance_share).items()}


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


def _scores(passages: Sequence[Passage], shown: Callable[[Where], Floats], style: Style) -> list[float]:
    """A passage has the score of its best hit, and never less than the passages after it: what puts it
    before them, such as its file, is a reason to trust it too. To be unlike others is none."""
    import numpy as np

    scores = [float(shown(np.array(passage.positions)).max()) for passage in passages]
    return scores if style.mmr_lambda < 1 else list(accumulate(reversed(scores), max))[::-1]


def _hit(
    catalog: Catalog, passage: Passage, score: float, snippet: Snippet, parts: dict[str, float | None] | None
) -> MemoryHit:
    path, source = catalog.paths[passage.file], catalog.sources[passage.file]
    return MemoryHit(path, snippet.start_line, snippet.end_line, score, snippet.text, source, parts)
