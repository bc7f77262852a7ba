"""What most commands share: options, output, and the runtime behind them."""

from __future__ import annotations

import functools
import json
import logging
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import frozen

from lamella.text.width import printable

if TYPE_CHECKING:
    from lamella.runtime import Runtime

R = TypeVar("R")

# The name of the handlers that `set_up_logging` makes.
_LOG = "lamella-cli"

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class NumberRange(click.FloatRange):
    """A range that nan, which compares with nothing, is outside of."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"expected a number, found {value!r}", param, ctx)
        return number


@frozen(slots=True)
class CommonOptions:
    """The options that every command about an agent has."""

    workspace: Path | None
    agent: str
    config: Path | None
    verbose: bool
    no_plugin: tuple[str, ...]


def agent_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add --workspace, --agent, --config, --no-plugin and -v; the command gets `common`."""

    @click.option("--workspace", type=click.Path(path_type=Path), help="Folder of the agent.")
    @click.option("--agent", default="main", show_default=True, help="Agent id.")
    @click.option(
        "--config", type=click.Path(path_type=Path, dir_okay=False), help="Config file instead of config.toml."
    )
    @click.option("--no-plugin", multiple=True, metavar="NAME", help="Leave a plugin out. May be repeated.")
    @click.option("-v", "--verbose", is_flag=True, help="Log to stderr and to the state folder.")
    @functools.wraps(command)
    def wrapped(
        workspace: Path | None,
        agent: str,
        config: Path | None,
        no_plugin: tuple[str, ...],
        verbose: bool,
        **rest: Any,
    ) -> R:
        set_up_logging(verbose)
        return command(CommonOptions(workspace, agent, config, verbose, no_plugin), **rest)

    return wrapped


def open_runtime(
    common: CommonOptions,
    *,
    model: str = "",
    system_prompt: str = "",
    confirm: Any = None,
    need_workspace: bool = False,
    settings: dict[str, Any] | None = None,
    say_problems: bool = True,
) -> Runtime:
    """The runtime for a command. What plugins print goes to stderr from here on.

    A workspace that was named must exist with `need_workspace`; `say_problems` warns of odd keys in
    the configuration.
    """
    from lamella.runtime import Runtime

    Out.claim()
    runtime = Runtime.open(
        workspace=common.workspace,
        agent=common.agent,
        model=model,
        system_prompt=argument_text(system_prompt),
        config=common.config,
        settings=settings,
        without_plugins=common.no_plugin,
        confirm=confirm,
    )
    if say_problems:
        say_config_problems(runtime)
    if need_workspace:
        runtime.require_workspace()
    return runtime


def say_config_problems(runtime: Runtime) -> None:
    """What a run only warns of, such as unknown keys."""
    for problem in runtime.config.problems:
        warn(f"{problem.level}: {problem}")


class Out:
    """Stdout as it was before plugins were loaded: the only way to print data."""

    stream: Any = None

    @classmethod
    def claim(cls) -> None:
        """Keep stdout for data and send all other printing to stderr."""
        if cls.stream is None:
            cls.stream = sys.stdout
            sys.stdout = sys.stderr

    @classmethod
    def write(cls, text: str, *, newline: bool = True) -> None:
        stream = cls.stream or sys.stdout
        text = printable(text) if stream.isatty() else text
        stream.write(text + ("\n" if newline else ""))
        stream.flush()

    @classmethod
    def json(cls, value: Any) -> None:
        """One JSON document on one line for pipes, indented on a terminal."""
        stream = cls.stream or sys.stdout
        indent = 2 if stream.isatty() else None
        cls.write(json.dumps(value, ensure_ascii=False, indent=indent))

    @classmethod
    def json_line(cls, value: Any) -> None:
        """One JSON document on one line."""
        cls.write(json.dumps(value, ensure_ascii=False))

    @classmethod
    def is_terminal(cls) -> bool:
        return bool((cls.stream or sys.stdout).isatty())


def argument_text(text: str) -> str:
    """Text from the command line as UTF-8, whatever the locale made of it; what is not becomes U+FFFD."""
    return os.fsencode(text).decode("utf-8", "replace")


def warn(text: str) -> None:
    """A line on stderr."""
    click.echo(printable(text), err=True)


def set_up_logging(verbose: bool) -> None:
    """With -v, log to stderr and to a rotating file in the state folder: all that lamella and its plugins
    say, and warnings of other libraries. Else warnings stay silent, since what concerns the user is told
    as notices."""
    root = logging.getLogger()  # plugins log under names of their own
    for handler in [h for h in root.handlers if h.name == _LOG]:
        root.removeHandler(handler)
        handler.close()
    handlers = _log_handlers() if verbose else [logging.NullHandler()]
    for handler in handlers:
        handler.name = _LOG
        root.addHandler(handler)
    if verbose:
        root.setLevel(logging.DEBUG)


def _log_handlers() -> list[logging.Handler]:
    from logging.handlers import RotatingFileHandler

    from lamella.paths import Paths

    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    file = Paths.from_environment().log_file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(RotatingFileHandler(file, maxBytes=2_000_000, backupCount=2, encoding="utf-8"))
    except OSError as error:
        warn(f"warning: no log file: {error}")
    form = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in handlers:
        handler.setFormatter(form)
        handler.addFilter(_is_logged)
    return handlers


def _is_logged(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING or record.name.startswith("lamella")


def print_table(rows: list[list[str]], headings: list[str]) -> None:
    """A table on stdout: drawn by rich at a terminal, plain columns in a pipe."""
    if not Out.is_terminal():
        Out.write(table(rows, headings))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        drawn.add_column(heading, overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))
    Console(file=Out.stream or sys.stdout).print(drawn)


def table(rows: list[list[str]], headings: list[str]) -> str:
    """Columns as wide as their content, for people and pipes alike."""
    from lamella.text.width import pad, width

    columns = [[h, *(r[i] for r in rows)] for i, h in enumerate(headings)]
    widths = [max(width(cell) for cell in column) for column in columns]
    lines = []
    for row in [headings, *rows]:
        lines.append("  ".join(pad(cell, w) for cell, w in zip(row, widths, strict=True)).rstrip())
    return "\n".join(lines)


def local_minute(milliseconds: int | None, timezone: str) -> str:
    """A time for people, to the minute, in the user's zone; `?` for none, and for one that no calendar has."""
    from datetime import UTC, datetime

    from lamella.text.days import zone

    if milliseconds is None:
        return "?"
    users = zone(timezone)
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone(users)
    except (ValueError, OverflowError, OSError):
        return "?"
    return moment.strftime("%Y-%m-%d %H:%M")


def since_ms(text: str, timezone: str) -> int:
    """The value of `--since`, an ISO day or time, in Unix milliseconds; one without a zone is in the user's.

    Raises `UsageError`.
    """
    from datetime import datetime

    from lamella.errors import UsageError
    from lamella.text.days import zone

    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            own = zone(timezone)
            moment = moment.replace(tzinfo=own) if own else moment.astimezone()
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise UsageError(f"--since {text!r}: expected a day or time such as 2026-05-10 or 2026-05-10T14:00") from None
