"""A search of the index: from a question to passages with places and scores."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from lamella.text.segment import query_terms
from lamella.types.memory import MemoryHit, SearchQuery
from lamella_memory_core.catalog import Catalog
from lamella_memory_core.dates import named_spans
from lamella_memory_core.keywords import Keywords, keyword_strengths
from lamella_memory_core.passages import Passage, Piece, Sizes, joined
from lamella_memory_core.ranking import (
    best_positions,
    file_fit,
    fused,
    order_values,
    shown_scores,
    standardised,
    with_neighbours,
)
from lamella_memory_core.snippet import make_snippet

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Flags, Floats, Numbers

# So many hits are looked at for each passage that is wanted, since hits of one place become one.
_HITS_PER_PASSAGE = 3
_LEAST_HITS = 30
_BESIDE = 4
LEAST_CHARS = 600
_FILE_NAME = re.compile(r"(?:\./|\bmemory/)*([\w./-]*\w)\.md\b")


@frozen(slots=True)
class Style:
    """How passages are chosen and shown. `dense_share`: the part of the order that meaning has."""

    passage_chars: int = 1200
    dense_share: float = 0.5


@frozen(slots=True, eq=False)
class Evidence:
    """What is known of all N passages: z-values of words and meaning (None: not compared), both mixed,
    the same with a share of their neighbours, how well their files fit, whether their day is named, and
    what they are ordered by. Each (N,)."""

    words: Floats | None
    meaning: Floats | None
    mixed: Floats
    around: Floats
    file: Floats
    named: Flags
    order: Floats

    def parts(self, position: int) -> dict[str, float | None]:
        """The evidence for one passage, for people who want to know why."""
        values = {
            "words": self.words,
            "meaning": self.meaning,
            "mixed": self.mixed,
            "withNeighbours": self.around,
            "file": self.file,
            "day": self.named,
            "order": self.order,
        }
        return {name: None if value is None else round(float(value[position]), 4) for name, value in values.items()}


def search_index(
    connection: sqlite3.Connection, catalog: Catalog, query: SearchQuery, style: Style, likeness: Floats | None = None
) -> tuple[MemoryHit, ...]:
    """The best passages, best first.

    `likeness` (N,): cosine of every passage with the question, when there are vectors. Without it only
    passages with a word of the question, or of a day that it names, can be found.
    """
    if not len(catalog):
        return ()
    terms = query_terms(_FILE_NAME.sub(r"\1", query.text))
    keywords = keyword_strengths(connection, terms, catalog)
    evidence = _evidence(catalog, query, style, keywords, likeness)
    shown = shown_scores(keywords, evidence.meaning, evidence.named)
    hits = _best(catalog, query, keywords, evidence, shown)
    sizes = Sizes(style.passage_chars, min(style.passage_chars, LEAST_CHARS))
    passages = joined(hits.tolist(), _pieces(connection, catalog, hits, evidence.order), sizes, query.max_results)
    scores = _scores(passages, shown)
    words = [term.text for term in terms if term.kind != "phrase"]
    found = [
        _hit(catalog, passage, score, words, style.passage_chars)
        for passage, score in zip(passages, scores, strict=True)
    ]
    if query.explain:
        found = [evolve(hit, parts=evidence.parts(p.positions[0])) for hit, p in zip(found, passages, strict=True)]
    return tuple(found)


def _evidence(
    catalog: Catalog, query: SearchQuery, style: Style, keywords: Keywords, likeness: Floats | None
) -> Evidence:
    import numpy as np

    words = standardised(keywords.passages) if keywords.found else None
    meaning = None if likeness is None else standardised(likeness)
    mixed = fused(words, meaning, style.dense_share)
    if mixed is None:
        mixed = np.zeros(len(catalog))
    around = with_neighbours(mixed, catalog)
    fit = file_fit(keywords, meaning, catalog)
    named = _named(catalog, query)
    return Evidence(words, meaning, mixed, around, fit[catalog.file], named, order_values(around, catalog, fit, named))


def _best(catalog: Catalog, query: SearchQuery, keywords: Keywords, evidence: Evidence, shown: Floats) -> Numbers:
    """Positions of the best hits, some more than are wanted. The floor is for hits, so that nothing below
    it is joined to a passage either."""
    import numpy as np

    if evidence.meaning is None:
        eligible = (keywords.passages > 0) | evidence.named
    else:
        eligible = np.ones(len(catalog), dtype=np.bool_)
    eligible &= shown >= query.min_score
    if query.sources:
        wanted = np.array([source in query.sources for source in catalog.sources])
        eligible &= wanted[catalog.file]
    if query.exclude:
        allowed = np.array([path not in query.exclude for path in catalog.paths])
        eligible &= allowed[catalog.file]
    return best_positions(evidence.order, eligible, max(_LEAST_HITS, _HITS_PER_PASSAGE * query.max_results))


def _named(catalog: Catalog, query: SearchQuery) -> Flags:
    """Which passages are of a day that the question names."""
    import numpy as np

    years = {day.year for day in catalog.days if day}
    today = date.fromisoformat(query.today) if query.today else date.today()
    spans = named_spans(query.text, today, years)
    of_day = [day is not None and any(day in span for span in spans) for day in catalog.days]
    return np.array(of_day, dtype=np.bool_)[catalog.file]


def _pieces(connection: sqlite3.Connection, catalog: Catalog, hits: Numbers, worth: Floats) -> dict[int, Piece]:
    """The pieces at these positions and beside them."""
    near = {hit + step for hit in hits.tolist() for step in range(-_BESIDE, _BESIDE + 1)}
    positions = sorted(position for position in near if 0 <= position < len(catalog))
    ids = catalog.ids[positions].tolist()
    rows = connection.execute(
        "SELECT id, start_line, end_line, start_char, end_char, text FROM chunks"
        f" WHERE id IN ({', '.join('?' * len(ids))})",
        ids,
    )
    places = dict(zip(ids, positions, strict=True))
    return {
        place: Piece(place, int(catalog.file[place]), first, last, start, end, text, float(worth[place]))
        for number, first, last, start, end, text in rows
        for place in (places[number],)
    }


def _scores(passages: Sequence[Passage], shown: Floats) -> list[float]:
    """A passage has the score of its best piece, and never less than the passages after it: what puts
    it before them, such as its file, is a reason to trust it too."""
    scores: list[float] = []
    for passage in reversed(passages):
        own = float(shown[list(passage.positions)].max())
        scores.append(max(own, scores[-1]) if scores else own)
    return scores[::-1]


def _hit(catalog: Catalog, passage: Passage, score: float, words: list[str], limit: int) -> MemoryHit:
    snippet = make_snippet(passage.text, passage.start_line, words, limit)
    path, source = catalog.paths[passage.file], catalog.sources[passage.file]
    return MemoryHit(path, snippet.start_line, snippet.end_line, score, snippet.text, source)
