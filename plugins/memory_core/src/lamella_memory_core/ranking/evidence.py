"""What is known of all passages for one question, and the order that follows from it. Pure, on arrays.

Two ways of coming to an order: `standardised`, lamella's own, and `weighted`, which mixes the raw
scores as OpenClaw 2026.3.13 does. Both give the same kind of answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from lamella_memory_core.lexical.keywords import Keywords
from lamella_memory_core.ranking.order import (
    best_positions,
    file_fit,
    fused,
    order_values,
    shown_scores,
    standardised,
    with_neighbours,
)
from lamella_memory_core.warm.catalog import Catalog

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Flags, Floats, Numbers, Where

_MOST_CANDIDATES = 200


@frozen(slots=True, eq=False)
class _OfFile:
    """Values of files (F,), by the position of a passage."""

    values: Floats = field(repr=False)
    file: Numbers = field(repr=False)

    def __getitem__(self, position: int) -> float:
        return float(self.values[self.file[position]])


@frozen(slots=True, eq=False)
class Evidence:
    """Of N passages, each array (N,): `order`, what they are ordered by; `found`, those that are an answer
    at all; `parts`, what led to the order, by name, None for what was not compared. `shown` gives scores
    from 0 to 1: few are ever looked at."""

    order: Floats = field(repr=False)
    found: Flags = field(repr=False)
    shown: Callable[[Where], Floats] = field(repr=False)
    parts: Mapping[str, Floats | Flags | _OfFile | None] = field(repr=False)

    def explain(self, position: int) -> dict[str, float | None]:
        """The parts for one passage, for people who want to know why."""
        values = {**self.parts, "order": self.order}
        return {name: None if value is None else round(float(value[position]), 4) for name, value in values.items()}


@frozen(slots=True, eq=False)
class Question:
    """What is asked of N passages. Each (N,): `likeness`, cosines with the question or None; `named`, those
    of a day that it names; `allowed`, those that may be found. `floor`: the least score of an answer."""

    keywords: Keywords
    likeness: Floats | None
    named: Flags
    allowed: Flags
    floor: float = 0.0


def standardised_evidence(question: Question, share: float, catalog: Catalog) -> Evidence:
    """Words and meaning as z-values over all passages, `share` of the sum from meaning, with neighbours,
    files and named days."""
    import numpy as np

    keywords, named = question.keywords, question.named
    words = standardised(keywords.passages) if keywords.found else None
    meaning = None if question.likeness is None else standardised(question.likeness)
    mixed = fused(words, meaning, share)
    if mixed is None:
        mixed = np.zeros(len(catalog))
    around = with_neighbours(mixed, catalog)
    fit = file_fit(keywords, meaning, catalog)
    found = question.allowed
    if question.floor > 0:
        found = found & (shown_scores(keywords, meaning, named) >= question.floor)
    if meaning is None:
        found = found & ((keywords.passages > 0) | named)
    parts = {"words": words, "meaning": meaning, "mixed": mixed, "withNeighbours": around}
    return Evidence(
        order=order_values(around, catalog, fit, named),
        found=found,
        shown=partial(shown_scores, keywords, meaning, named),
        parts={**parts, "file": _OfFile(fit, catalog.file), "day": named},
    )


def weighted_evidence(question: Question, share: float, candidates: int) -> Evidence:
    """A share of the cosine, and the rest of x / (1 + x), x being BM25; the sum is the score.

    Only the best of each side are candidates, at most 200; what is no candidate of a side counts 0
    there. When nothing reaches the floor, candidates by words need no more than words can give.
    """
    import numpy as np

    count, strength = min(candidates, _MOST_CANDIDATES), question.keywords.passages
    by_words = _among(strength, question.allowed & (strength > 0), count)
    words = np.where(by_words, strength / (1.0 + strength), 0.0)
    either, meaning, order = by_words, None, words
    if question.likeness is not None:
        by_meaning = _among(question.likeness, question.allowed, count)
        either = by_words | by_meaning
        meaning = np.where(by_meaning, question.likeness, 0.0)
        order = share * meaning + (1.0 - share) * words
    found = either & (order >= question.floor)
    if not found.any():
        found = by_words & (order >= min(question.floor, 1.0 - share))
    return Evidence(order, found, np.clip(order, 0.0, 1.0).__getitem__, {"words": words, "meaning": meaning})


def faded(evidence: Evidence, factors: Floats) -> Evidence:
    """Positive order values times `factors` (N,): older passages come later. Scores stay as they are, so
    that a floor cannot take the only answer for its age."""
    import numpy as np

    order = np.where(evidence.order > 0, evidence.order * factors, evidence.order)
    return evolve(evidence, order=order, parts={**evidence.parts, "age": factors})


def _among(values: Floats, eligible: Flags, count: int) -> Flags:
    import numpy as np

    flags = np.zeros(len(values), dtype=np.bool_)
    flags[best_positions(values, eligible, count)] = True
    return flags
