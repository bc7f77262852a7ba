"""How well ranked passages answer judged questions. Pure; all figures are fractions of 1.

A passage covers a group of places when it overlaps one of them. recall: the share of groups covered;
hit: whether any is; mrr: one over the rank of the first passage that covers a group; ndcg: each group
counts once, at the rank where it is covered first; r@4000c: the share of groups whose lines begin to
be read within the first 4,000 characters, passages read in order, no line twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lamella.memory.judged import Lines, Question

DEPTH = 10
CHARACTERS = 4000
FIGURES = ("recall@1", "recall@5", "hit@5", "mrr", "ndcg@10", "r@4000c")


def score_question(question: Question, ranked: Sequence[Lines], files: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The figures of one question. `files`: the lines of each file, without line ends."""
    ranks = [_rank(group, ranked[:DEPTH]) for group in question.gold]
    groups, first = len(ranks), min(ranks)
    return {
        "recall@1": sum(rank <= 1 for rank in ranks) / groups,
        "recall@5": sum(rank <= 5 for rank in ranks) / groups,
        "hit@5": float(first <= 5),
        "mrr": 1.0 / first,
        "ndcg@10": _ndcg(ranks),
        "r@4000c": _read_within(CHARACTERS, question, ranked[:DEPTH], files) / groups,
    }


def mean_figures(scored: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means over questions, of which there must be one."""
    return {name: sum(figures[name] for figures in scored) / len(scored) for name in FIGURES}


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of all values do not exceed."""
    return sorted(values)[max(0, math.ceil(percent / 100 * len(values)) - 1)]


def lines_of(text: str) -> list[str]:
    """A file's lines as they are counted; what follows the last line end is a line if there is anything."""
    lines = text.split("\n")
    return lines[:-1] if text.endswith("\n") else lines


def _rank(group: Sequence[Lines], ranked: Sequence[Lines]) -> float:
    covering = (rank for rank, found in enumerate(ranked, 1) if any(found.overlaps(place) for place in group))
    return next(covering, math.inf)


def _ndcg(ranks: Sequence[float]) -> float:
    gain = sum(1.0 / math.log2(1.0 + rank) for rank in ranks if rank <= DEPTH)
    ideal = sum(1.0 / math.log2(1.0 + rank) for rank in range(1, min(len(ranks), DEPTH) + 1))
    return min(1.0, gain / ideal)


def _read_within(limit: int, question: Question, ranked: Sequence[Lines], files: Mapping[str, Sequence[str]]) -> int:
    read: set[tuple[str, int]] = set()
    reached: set[int] = set()
    used = 0
    for found in ranked:
        lines = files.get(found.path, ())
        for number in range(max(found.first, 1), min(found.last, len(lines)) + 1):
            if (found.path, number) in read:
                continue
            read.add((found.path, number))
            used += len(lines[number - 1]) + 1
            if used > limit:
                return len(reached)
            line = Lines(found.path, number, number)
            reached.update(i for i, group in enumerate(question.gold) if any(line.overlaps(place) for place in group))
    return len(reached)
