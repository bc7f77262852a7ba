"""`lamella memory watch`: the index follows the files until it is told to stop."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

import click

from lamella.cli.common import CommonOptions, Out, agent_options, json_option, local_minute, open_runtime
from lamella.cli.memory_text import report_text
from lamella.errors import MemoryUnavailable
from lamella.types.memory import WatchEvent, WatchingMemory


@click.command("watch")
@agent_options
@json_option
def watch(common: CommonOptions, as_json: bool) -> None:
    """Keep the index up to date until Ctrl-C or a termination signal, and print each sync.

    Exit code 0 after either. With --json each sync is one JSON line.
    """
    runtime = open_runtime(common, need_workspace=True)
    timezone = runtime.agent.timezone

    def told(event: WatchEvent) -> None:
        if as_json:
            Out.json_line(event.to_json())
        else:
            Out.write(event_text(event, timezone))

    try:
        memory = runtime.require_memory()
        if not isinstance(memory, WatchingMemory):
            raise MemoryUnavailable("this memory cannot follow its files", hint="`lamella memory index` syncs once.")
        with stopped_by_signals() as stopped:
            memory.watch(told, stopped)
    finally:
        runtime.close()


def event_text(event: WatchEvent, timezone: str = "") -> str:
    """A sync in one line: when, why, and what came of it."""
    report = event.report
    outcome = report_text(report) if report is not None else f"failed: {event.error}"
    problem = f" {report.problem}" if report is not None and report.problem else ""
    return f"{local_minute(event.at, timezone)} {event.reason}: {outcome}{problem}"


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that is set by Ctrl-C and by a termination signal, in place of what these do otherwise."""
    stopped = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda _number, _frame: stopped.set())
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
