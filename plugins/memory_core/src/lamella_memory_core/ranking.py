"""How well a passage answers a question, from 0 to 1, by words alone.

For each term the index tells which passages have it and how strongly. A term weighs by its rarity;
a passage's share is the weighted mean of its terms' strengths, with absent terms counting nothing.
The strength is BM25's: about 1 for one mention in a passage of usual length, at most 2.2. So the
order is that of one BM25 search for any of the terms, and a score means the same among 2 notes as
among 20,000: 0.67 for a passage that has every term once, 0.5 for one that has half of what the
question says, towards 0 for a passing common word, never 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

_HALF_SHARE = 0.5
# What FTS5 takes for the rarity of a term that is in half of the rows or more.
_FTS5_LEAST_RARITY = 1e-6


@frozen(slots=True)
class Passage:
    """A candidate: what it is called, its lines, its text and its score."""

    path: str
    start_line: int
    end_line: int
    text: str
    score: float


def rarity(having: int, total: int) -> float:
    """The weight of a term that `having` of `total` rows have; never 0, and most for 0 or 1 rows."""
    having = max(having, 1)
    return math.log1p((max(total - having, 0) + 0.5) / (having + 0.5))


def strengths(bm25: Mapping[int, float], total: int) -> dict[int, float]:
    """One term's strength in each row that has it, from FTS5's bm25() of a search for that term alone.

    FTS5 gives minus rarity times strength, with a rarity of its own that is useless in small indexes.
    """
    having = len(bm25)
    own = math.log((total - having + 0.5) / (having + 0.5)) if total >= having else 0.0
    own = own if own > 0 else _FTS5_LEAST_RARITY
    return {row: -value / own for row, value in bm25.items()}


def scores(terms: Sequence[Mapping[int, float]], total: int) -> dict[int, float]:
    """Score in (0, 1) of each row that has any of the terms. `terms`: bm25() by row, for each term."""
    weights = [rarity(len(t), total) for t in terms]
    shares: dict[int, float] = {}
    for weight, term in zip(weights, terms, strict=True):
        for row, strength in strengths(term, total).items():
            shares[row] = shares.get(row, 0.0) + weight * strength
    whole = sum(weights)
    return {row: share / (share + _HALF_SHARE * whole) for row, share in shares.items()}


def best_rows(scored: Mapping[int, float], count: int) -> list[int]:
    """The rows with the highest scores, best first; equal ones by row."""
    return sorted(scored, key=lambda row: (-scored[row], row))[:count]


def without_repeats(passages: Iterable[Passage], count: int) -> list[Passage]:
    """The first `count` passages, leaving out those whose lines lie within a better one's."""
    chosen: list[Passage] = []
    for passage in passages:
        if len(chosen) == count:
            break
        if not any(_within(passage, other) for other in chosen):
            chosen.append(passage)
    return chosen


def _within(inner: Passage, outer: Passage) -> bool:
    return inner.path == outer.path and outer.start_line <= inner.start_line and inner.end_line <= outer.end_line
