"""From candidates to results: words and meaning added up, neighbours joined. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from lamella.text.lexical import lexical_scores
from lamella.types.memory import MemoryHit
from lamella_memory_lancedb.notes.passages import Passage

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles
    from lamella_memory_lancedb.notes.table import Candidate

_HALF = 0.5
# What the whole file adds to its passages at most, as a part of what the best passage counts.
_FILE_SHARE = 0.3


@frozen(slots=True)
class Meaning:
    """What a question means: its vector of unit length, and the likeness (0 to 1) of texts that have nothing to
    do with each other. `share`: the part of the order that meaning has; words have the rest."""

    vector: Singles = field(eq=False, repr=False)
    background: float = 0.0
    share: float = 0.5


@define(slots=True)
class _Run:
    """Passages of one file without a gap, as one. `worth`: what results are ordered by; `score` is in 0..1."""

    passage: Passage
    score: float
    worth: float
    parts: dict[str, float | None]

    def absorbs(self, other: Passage, most: int) -> bool:
        """Whether it has the other passage now: it lay within, or they touch and are short enough together."""
        own = self.passage
        if own.path != other.path:
            return False
        if own.start_line <= other.start_line and other.end_line <= own.end_line:
            return True
        first, last = sorted((own, other), key=lambda passage: passage.start)
        beside = last.start <= first.end or last.number == first.number + 1
        if not beside or max(first.end, last.end) - first.start > most:
            return False
        self.passage = _joined(first, last)
        return True


def ranked(
    question: str, candidates: Sequence[Candidate], meaning: Meaning | None, snippet_chars: int, *, explain: bool
) -> list[MemoryHit]:
    """Passages that answer a question, best first; neighbours are joined up to `snippet_chars`.

    Odds for a passage add up. By words they are its share of what the question itself says, over a half;
    by meaning they grow with the likeness beyond that of texts that have nothing to do with each other. In the
    order, passages of files that say more of the question come before others as good.
    """
    *words, itself = lexical_scores(question, [*(c.passage.text for c in candidates), question])
    weights = (1.0, 1.0) if meaning is None else (2 * (1 - meaning.share), 2 * meaning.share)
    runs = []
    for candidate, strength in zip(candidates, words, strict=True):
        likeness = None if meaning is None else _likeness(candidate, meaning)
        by_words = strength / (_HALF * itself) if itself else 0.0
        by_meaning = 0.0 if likeness is None else likeness / (1.0 - likeness)
        odds = by_words + by_meaning
        parts = {"words": round(by_words, 4), "meaning": None if likeness is None else round(likeness, 4)}
        worth = weights[0] * by_words + weights[1] * by_meaning
        if odds > 0:
            runs.append(_Run(candidate.passage, odds / (1.0 + odds), worth, parts))
    best = max((run.worth for run in runs), default=0.0)
    fits = _file_fits(question, candidates)
    for run in runs:
        run.worth += _FILE_SHARE * best * fits[run.passage.path]
    runs.sort(key=lambda run: (-run.worth, run.passage.path, run.passage.number))
    return _hits(_chosen(runs, snippet_chars), snippet_chars, explain)


def _likeness(candidate: Candidate, meaning: Meaning) -> float:
    """From 0 for texts that have nothing to do with each other to nearly 1 for the same text."""
    if candidate.vector is None:
        return 0.0
    above = (float(candidate.vector @ meaning.vector) - meaning.background) / (1.0 - meaning.background)
    return min(max(above, 0.0), 0.99)


def _file_fits(question: str, candidates: Sequence[Candidate]) -> dict[str, float]:
    """How well the candidates of each file together fit, by their words: 1 for the best file."""
    texts: dict[str, list[str]] = {}
    for candidate in candidates:
        texts.setdefault(candidate.passage.path, []).append(candidate.passage.text)
    fits = lexical_scores(question, ["\n".join(of_file) for of_file in texts.values()])
    best = max(fits, default=0.0)
    return {path: fit / best if best else 0.0 for path, fit in zip(texts, fits, strict=True)}


def _chosen(runs: Sequence[_Run], most: int) -> list[_Run]:
    """The runs, those that touch a better one in it."""
    chosen: list[_Run] = []
    for run in runs:
        if not any(other.absorbs(run.passage, most) for other in chosen):
            chosen.append(run)
    return chosen


def _hits(runs: Sequence[_Run], most: int, explain: bool) -> list[MemoryHit]:
    """A passage never scores less than those after it: what puts it before them is a reason to trust it too."""
    scores = list(accumulate(reversed([run.score for run in runs]), max))[::-1]
    return [
        MemoryHit(p.path, p.start_line, p.end_line, score, p.text[:most], p.source, run.parts if explain else None)
        for run, score in zip(runs, scores, strict=True)
        for p in (run.passage,)
    ]


def _joined(first: Passage, last: Passage) -> Passage:
    if last.end <= first.end:
        return first
    gap = "\n" if first.end_line < last.start_line else ""  # there is nothing but blank space between them
    text = first.text + (last.text[first.end - last.start :] if last.start < first.end else gap + last.text)
    return evolve(first, number=last.number, end=last.end, end_line=last.end_line, text=text)
