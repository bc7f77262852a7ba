"""`lamella memory eval`: how well memory search answers questions whose answers are known."""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from lamella.cli.common import CommonOptions, NumberRange, Out, agent_options, json_option, print_table
from lamella.cli.progress import Advance, progress_bar
from lamella.memory.judged import JudgedWorkspace, Lines, read_judged
from lamella.memory.scoring import DEPTH, FIGURES, lines_of, mean_figures, percentile, score_question
from lamella.types.memory import MemoryService, SearchQuery

COLUMNS = ("n", *FIGURES, "p50_ms", "p95_ms")


@frozen(slots=True)
class Answered:
    """One question's figures, and how long its search took."""

    type: str
    figures: dict[str, float]
    milliseconds: float


@click.command("eval")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@agent_options
@click.option("--min-score", type=NumberRange(0, 1), default=0.0, show_default=True, help="Least score of a result.")
@json_option
def evaluate(common: CommonOptions, files: tuple[Path, ...], min_score: float, as_json: bool) -> None:
    """Measure memory search on judged questions.

    Each workspace of FILES is built in a scratch folder and asked on its own day, 10 results a question.
    Settings and plugins are those of the agent; its notes and its index are not touched.
    """
    judged = [workspace for file in files for workspace in read_judged(file)]
    Out.claim()
    total = sum(len(workspace.questions) for workspace in judged)
    answered: list[Answered] = []
    with progress_bar(wanted=not as_json) as advance:
        for workspace in judged:
            for answer in _answers(common, workspace, min_score, advance):
                answered.append(answer)
                advance("questions", len(answered), total)
    report = report_of(answered)
    if as_json:
        Out.json(report)
    else:
        kinds = {"overall": report["overall"], **report["by_type"]}
        print_table([[kind, *map(_cell, row.values())] for kind, row in kinds.items()], ["", *COLUMNS])


def report_of(answered: Sequence[Answered]) -> dict[str, Any]:
    """`overall`, and `by_type` in order of the types' names."""
    by_type: dict[str, list[Answered]] = defaultdict(list)
    for answer in answered:
        by_type[answer.type].append(answer)
    return {"overall": _row(answered), "by_type": {kind: _row(by_type[kind]) for kind in sorted(by_type)}}


def _row(answered: Sequence[Answered]) -> dict[str, float]:
    figures = mean_figures([a.figures for a in answered])
    times = [a.milliseconds for a in answered]
    return {
        "n": len(answered),
        **{name: round(value, 6) for name, value in figures.items()},
        "p50_ms": round(percentile(times, 50), 3),
        "p95_ms": round(percentile(times, 95), 3),
    }


def _cell(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _answers(common: CommonOptions, judged: JudgedWorkspace, min_score: float, advance: Advance) -> Iterator[Answered]:
    lines = {path: lines_of(text) for path, text in judged.files.items()}
    with _scratch_memory(common, judged) as memory:
        memory.sync(progress=lambda p: advance(f"{judged.id}: {p.stage}", p.done, p.total))
        for question in judged.questions:
            query = SearchQuery(question.text, DEPTH, min_score, judged.now)
            started = time.perf_counter()
            hits = memory.search(query).hits
            milliseconds = (time.perf_counter() - started) * 1000
            ranked = [Lines(hit.path, hit.start_line, hit.end_line) for hit in hits]
            yield Answered(question.type, score_question(question, ranked, lines), milliseconds)


@contextmanager
def _scratch_memory(common: CommonOptions, judged: JudgedWorkspace) -> Iterator[MemoryService]:
    """A memory over a copy of the notes, with the agent's settings and a state folder of its own."""
    from lamella.paths import Paths
    from lamella.runtime import Runtime

    usual = Paths.from_environment().config_file
    with tempfile.TemporaryDirectory(prefix="lamella-eval-") as folder:
        workspace = Path(folder) / "workspace"
        for name, text in judged.files.items():
            path = workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        runtime = Runtime.open(
            workspace=workspace,
            agent=common.agent,
            config=common.config or (usual if usual.exists() else None),
            without_plugins=common.no_plugin,
            environ={**os.environ, "LAMELLA_HOME": str(Path(folder) / "home")},
        )
        try:
            yield runtime.require_memory()
        finally:
            runtime.close()
