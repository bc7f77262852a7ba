"""Recall before a turn: how often the right memory comes, and how often one comes that has nothing to do with it.

    python bench/long_term/recall.py RETRIEVAL [--embedder static] [--threshold 0.38]

RETRIEVAL is the folder of judged sets, which holds zh/memorybank-en.open.json and others. Each user of
memorybank (English, and Chinese) has a table with the turns that answer his questions. Related: his own
questions. Unrelated: questions of cmrc (encyclopaedia), and of the other users. Users and questions are halved; the
threshold is chosen on one half (5 % of its unrelated prompts get something), figures are of the other.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen
from common import User, opened, questions, users

from lamella_memory_lancedb import Config
from lamella_memory_lancedb.search.finding import Hit
from lamella_memory_lancedb.service import Memories
from lamella_memory_lancedb.store.memory import Origin

LIMIT = 3
SETS = {"English": "zh/memorybank-en.open.json", "Chinese": "zh/memorybank-zh.open.json"}
Measure = Callable[[Hit], float]
MEASURES: dict[str, Measure] = {
    "cosine": lambda hit: hit.evidence.cosine or 0.0,
    "words": lambda hit: hit.evidence.words,
    "strength": lambda hit: hit.strength,
}


@frozen
class Asked:
    """A prompt's hits in a user's table. `right` is empty for an unrelated prompt."""

    kind: str
    half: int
    hits: tuple[Hit, ...]
    right: frozenset[str]

    def best(self, measure: Measure) -> float:
        """The measure of the right memory if it is among the first, else of the best one when none is right."""
        first = sorted(map(measure, self.hits), reverse=True)[:LIMIT]
        if not self.right:
            return first[0] if first else -1.0
        ranked = sorted(self.hits, key=measure, reverse=True)[:LIMIT]
        return max((measure(hit) for hit in ranked if hit.memory.text in self.right), default=-1.0)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("retrieval", type=Path)
    arguments.add_argument("--embedder", default="static")
    arguments.add_argument("--threshold", type=float, default=Config().recall_threshold)
    arguments.add_argument("--language", choices=[*SETS, "both"], default="both")
    given = arguments.parse_args()
    config = Config(embedder=given.embedder)
    general = questions(given.retrieval / "zh/cmrc.open.json")
    asked: list[Asked] = []
    for language, name in SETS.items():
        if given.language in (language, "both"):
            asked += ask_all(list(users(given.retrieval / name)), general, config)
    report(asked, given.threshold)


def ask_all(people: Sequence[User], general: Sequence[str], config: Config) -> list[Asked]:
    asked: list[Asked] = []
    for number, user in enumerate(people):
        with tempfile.TemporaryDirectory() as folder:
            memories = opened(Path(folder), config)
            for text in user.memories:
                memories.keeper.keep(text, Origin("main", "bench"))
            others = [question for other in people if other is not user for question, _gold in other.questions]
            half = number % 2
            asked += [ask(memories, "related", half, question, gold) for question, gold in user.questions]
            asked += [ask(memories, "other users", half, question) for question in others]
            asked += [ask(memories, "encyclopaedia", half, question) for question in general[half::2]]
            memories.close()
    return asked


def ask(memories: Memories, kind: str, half: int, question: str, right: frozenset[str] = frozenset()) -> Asked:
    return Asked(kind, half, memories.find(question, 10).hits, right)


def report(asked: Sequence[Asked], threshold: float) -> None:
    for name, measure in MEASURES.items():
        tuned = float(np.quantile([a.best(measure) for a in asked if not a.right and a.half == 0], 0.95))
        show(f"{name}, tuned", asked, measure, tuned)
    show("as configured", asked, MEASURES["strength"], threshold)


def show(title: str, asked: Sequence[Asked], measure: Measure, threshold: float) -> None:
    def share(half: int, *kinds: str) -> float:
        values = [a.best(measure) for a in asked if a.half == half and a.kind in kinds]
        return float(np.mean([value >= threshold for value in values]))

    print(f"{title} ({threshold:.3f})")
    for half, which in ((0, "tuning half"), (1, "other half ")):
        clean = 1 - share(half, "other users", "encyclopaedia")
        print(
            f"  {which}: right memory {share(half, 'related'):.1%}, nothing for the unrelated {clean:.1%} "
            f"(encyclopaedia {1 - share(half, 'encyclopaedia'):.1%}, other users {1 - share(half, 'other users'):.1%})"
        )


if __name__ == "__main__":
    main()
