"""What each guard of the window saves, over one long simulated session.

    python bench/long_life.py [--turns 300] [--seed 7] [--png docs/explanation/long-life.png]

The session is that of tests/integration/test_long_life.py, with ten minutes between turns, so that a provider's cache
is cold at each. Prints compactions and summary calls for each set of guards; `--png` plots the tokens of the next
request (needs matplotlib).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from attrs import define, field

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from long_life import WINDOW, Died, LifeModel, open_life, request_of

KEY = "agent:main:main"
MINUTES_BETWEEN = 10
NO_PRUNING = {"mode": "off"}
NO_LIMITS = {"results": {"max_chars": 10**9}, "fit": {"enabled": False}}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "all guards": {},
    "without pruning": NO_PRUNING,
    "without limits of results": NO_LIMITS,
    "without both": {**NO_PRUNING, **NO_LIMITS},
}


@define
class Course:
    """A session turn by turn: tokens of the next request, and where it was compacted."""

    tokens: list[int] = field(factory=list)
    compacted: list[int] = field(factory=list)
    by_overflow: int = 0
    summary_calls: int = 0
    sent: int = 0  # tokens of all requests of the talk
    refused: int = 0  # turns that ended with an error


async def live(seed: int, turns: int, guards: Mapping[str, Any]) -> Course:
    model, course, clock = LifeModel(seed), Course(), time.time()
    with tempfile.TemporaryDirectory() as home, patch("time.time", lambda: clock):
        for turn in range(turns):
            clock += MINUTES_BETWEEN * 60
            model.begin(turn)
            text, _ = request_of(seed, turn, turns=turns, identifiers=40)
            try:
                async with open_life(Path(home), model, **guards) as runtime:
                    result = await runtime.ask(text)
                    entry = runtime.store.index.get(KEY) or {}
            except Died:
                continue
            course.tokens.append(entry.get("usedTokens") or 0)
            course.compacted += [len(course.tokens) - 1] * bool(result.compactions)
            course.by_overflow += bool(result.compactions) and entry.get("lastCompactionCause") == "overflow"
            course.refused += result.error is not None
            course.summary_calls += sum(purpose == "summary" for purpose, _ in model.calls)
            course.sent += entry.get("inputTokens") or 0
    return course


def plot(courses: Mapping[str, Course], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(len(courses), 1, sharex=True, sharey=True, figsize=(9, 7), layout="constrained")
    for axes, (name, course) in zip(rows, courses.items(), strict=True):
        axes.plot(course.tokens, linewidth=0.9, color="#1f5f8b")
        axes.plot(course.compacted, [course.tokens[n] for n in course.compacted], "v", color="#b5451b", markersize=4)
        axes.axhline(WINDOW * 3 / 4, linewidth=0.7, linestyle="--", color="#777777")
        axes.set_title(f"{name}: {len(course.compacted)} turns with compactions", loc="left", fontsize=9)
        axes.set_ylim(0, WINDOW)
        axes.set_ylabel("tokens", fontsize=8)
        axes.tick_params(labelsize=8)
    rows[-1].set_xlabel("turn; the dashed line is where compaction is due, marks are turns that compacted", fontsize=8)
    figure.savefig(file, dpi=110)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--turns", type=int, default=300)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--png", type=Path)
    chosen = options.parse_args()
    courses = {name: asyncio.run(live(chosen.seed, chosen.turns, guards)) for name, guards in VARIANTS.items()}
    for name, course in courses.items():
        print(
            f"{name:26} {len(course.compacted):4} compacted turns, {course.by_overflow:3} by overflow  "
            f"{course.summary_calls:4} summary calls  {course.sent:10,} tokens sent  {course.refused:3} turns refused"
        )
    if chosen.png:
        plot(courses, chosen.png)


if __name__ == "__main__":
    main()
