"""`lamella memory`: the agent's long-term memory, through whatever plugin fills the slot."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lamella.cli.common import (
    CommonOptions,
    NumberRange,
    Out,
    agent_options,
    argument_text,
    json_option,
    open_runtime,
    warn,
)
from lamella.cli.lazy import LazyGroup
from lamella.cli.memory_text import report_text, results_text, status_text
from lamella.cli.progress import progress_bar
from lamella.types.memory import Provenance, SearchQuery

if TYPE_CHECKING:
    from lamella.runtime import Runtime
    from lamella.types.memory import MemoryService

_ELSEWHERE = {
    "eval": "lamella.cli.memory_eval:evaluate",
    "log": "lamella.cli.memory_journal:log",
    "undo": "lamella.cli.memory_journal:undo",
    "watch": "lamella.cli.memory_watch:watch",
    "why": "lamella.cli.memory_journal:why",
}


@click.group(cls=LazyGroup, lazy=_ELSEWHERE)
def memory() -> None:
    """Search and keep long-term memory."""


@memory.command("index")
@agent_options
@click.option("--force", is_flag=True, help="Rebuild the index from nothing.")
@json_option
def index(common: CommonOptions, force: bool, as_json: bool) -> int:
    """Bring the index up to date. Exit code 1 when a file could not be read, or the chosen backend failed."""
    runtime = open_runtime(common, need_workspace=True)
    with _open_memory(runtime) as service, progress_bar(wanted=not as_json) as advance:
        report = service.sync(force=force, progress=lambda p: advance(p.stage, p.done, p.total))
    if as_json:
        Out.json(report.to_json())
    else:
        Out.write(report_text(report))
        for problem in report.failed:
            warn(f"failed: {problem.path}: {problem.reason}")
        for problem in report.skipped:
            warn(f"left out: {problem.path}: {problem.reason}")
        if report.degraded:
            warn(f"note: {report.degraded}; passages without vectors are found by their words")
        if report.problem:
            warn(f"failed: {report.problem}")
    return 0 if report.ok and not report.problem else 1


@memory.command("search")
@click.argument("query", required=False)
@agent_options
@click.option("-n", "--max-results", type=click.IntRange(1, 100), default=6, show_default=True)
@click.option("--min-score", type=NumberRange(0, 1), default=0.2, show_default=True)
@click.option("--batch", is_flag=True, help="Read queries from standard input, one a line; print one JSON line each.")
@click.option("--explain", is_flag=True, help="Show what led to each result's place.")
@json_option
def search(
    common: CommonOptions,
    query: str | None,
    max_results: int,
    min_score: float,
    batch: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Search memory for QUERY."""
    if batch and query is not None:
        raise click.UsageError("--batch reads queries from standard input; leave QUERY out")
    if not batch and (query is None or not query.strip()):
        raise click.UsageError("a query is needed (or --batch)")
    runtime = open_runtime(common, need_workspace=True)
    if not batch:
        _without_threads()
    with _open_memory(runtime) as service:
        if batch:
            for line in sys.stdin:
                found = service.search(SearchQuery(line.strip(), max_results, min_score, explain=explain))
                Out.json_line({"query": line.strip(), **found.to_json()})
            return
        found = service.search(SearchQuery(argument_text(str(query)), max_results, min_score, explain=explain))
    if as_json:
        Out.json(found.to_json())
    else:
        Out.write(results_text(found, runtime.agent.timezone))


@memory.command("get")
@click.argument("path")
@agent_options
@click.option("--from", "start", type=click.IntRange(1), default=1, show_default=True, help="First line.")
@click.option("--lines", type=click.IntRange(1), help="How many lines.")
@json_option
def get(common: CommonOptions, path: str, start: int, lines: int | None, as_json: bool) -> int:
    """Print a memory file, or some of its lines. Exit code 4 when it does not exist."""
    runtime = open_runtime(common, need_workspace=True)
    with _open_memory(runtime) as service:
        found = service.read(path, start_line=start, lines=lines)
    if as_json:
        Out.json(found.to_json())
    elif found.status == "ok":
        Out.write(found.text, newline=not found.text.endswith("\n"))
    else:
        click.echo(f"{found.path}: {found.status}", err=True)
    return 4 if found.status == "missing" else 0


@memory.command("add")
@click.argument("text")
@agent_options
@click.option("--path", metavar="FILE", help="Memory file (default: today's note).")
@json_option
def add(common: CommonOptions, text: str, path: str | None, as_json: bool) -> None:
    """Add TEXT to memory. TEXT - reads it from standard input."""
    text = sys.stdin.read() if text == "-" else argument_text(text)
    if not text.strip():
        raise click.UsageError("the text is empty")
    runtime = open_runtime(common, need_workspace=True)
    _without_threads()
    with _open_memory(runtime) as service:
        written = service.append(text, path=path, provenance=Provenance("cli", trigger="user"))
    if as_json:
        Out.json(written.to_json())
    else:
        Out.write(f"Added to {written.path}, lines {written.start_line}-{written.end_line}.")


@memory.command("status")
@agent_options
@json_option
def status(common: CommonOptions, as_json: bool) -> None:
    """Show the state of memory: backend, index, what is out of date, what is off and how to turn it on."""
    runtime = open_runtime(common)
    _without_threads()
    with _open_memory(runtime) as service:
        facts = service.status()
    if as_json:
        Out.json(facts)
    else:
        Out.write(status_text(facts, runtime.agent.timezone))


def _without_threads() -> None:
    """Keep OpenBLAS, which comes with numpy, from starting threads: for one answer they cost more than they give.

    What the user has set stays.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@contextlib.contextmanager
def _open_memory(runtime: Runtime) -> Iterator[MemoryService]:
    """The memory service of a runtime for a block; the runtime is closed behind it."""
    try:
        yield runtime.require_memory()
    finally:
        runtime.close()
