"""Judged questions over workspaces of Markdown notes, and how well a ranking answers them.

The file format is that of `lamella memory eval`: a JSON document with workspaces, each with files
and queries; a query's gold is a list of groups, a group a list of [path, first line, last line]. A
ranking should cover every group; any range of a group covers it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from lamella.text.chunk import chunk_text

DEPTH = 10


@frozen(slots=True)
class Passage:
    path: str
    start_line: int
    end_line: int
    text: str


@frozen(slots=True)
class Question:
    """`gold`: for each group the positions of the passages that cover it."""

    text: str
    gold: tuple[frozenset[int], ...]


@frozen(slots=True)
class Workspace:
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]


@frozen(slots=True)
class Figures:
    """Means over `n` questions, as fractions of 1."""

    n: int
    recall_at_5: float
    mrr: float


def workspaces(path: Path, limit: int | None = None) -> Iterator[Workspace]:
    """The workspaces of a data file, cut into chunks; at most `limit` of them."""
    document = json.loads(path.read_text(encoding="utf-8"))
    for raw in document["workspaces"][:limit]:
        passages = tuple(
            Passage(name, chunk.start_line, chunk.end_line, chunk.text)
            for name, text in sorted(raw["files"].items())
            for chunk in chunk_text(text)
        )
        questions = tuple(Question(q["query"], _gold(q["gold"], passages)) for q in raw["queries"])
        yield Workspace(passages, questions)


def score(ranked: Sequence[tuple[Question, Sequence[int]]]) -> Figures:
    """`ranked`: questions with the positions of their best passages, best first."""
    recalls, reciprocals = [], []
    for question, order in ranked:
        ranks = [_first_rank(group, order) for group in question.gold]
        recalls.append(sum(rank <= 5 for rank in ranks) / len(ranks))
        reciprocals.append(1.0 / min(ranks))
    n = len(ranked)
    return Figures(n, sum(recalls) / n, sum(reciprocals) / n)


def _first_rank(group: frozenset[int], order: Sequence[int]) -> float:
    return next((rank for rank, position in enumerate(order[:DEPTH], 1) if position in group), math.inf)


def _gold(groups: list[list[list[Any]]], passages: Sequence[Passage]) -> tuple[frozenset[int], ...]:
    return tuple(
        frozenset(k for k, p in enumerate(passages) if any(_overlaps(p, *wanted) for wanted in group))
        for group in groups
    )


def _overlaps(passage: Passage, path: str, first: int, last: int) -> bool:
    return passage.path == path and passage.start_line <= last and passage.end_line >= first
