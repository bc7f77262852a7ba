"""The `lamella` command.

Sub-commands are imported when they run, so that `--help` and shell completion stay instant.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

import click

from lamella.cli.exit_codes import report
from lamella.cli.lazy import LazyGroup
from lamella.cli.plugin_commands import load_command, origin, plugin_commands

# name: (module:attribute, help line). The help stands here so that listing it imports nothing.
COMMANDS = {
    "ask": ("lamella.cli.ask:ask", "Ask one question and print the answer."),
    "chat": ("lamella.cli.chat:chat", "Talk to the agent."),
    "config": ("lamella.cli.config:config", "Show, check and change the configuration."),
    "context": ("lamella.cli.context:context", "Show what the next request would contain."),
    "doctor": ("lamella.cli.doctor:doctor", "Find what is wrong, and mend it."),
    "export": ("lamella.cli.moving:export", "Write sessions for other programs."),
    "import": ("lamella.cli.moving:import_", "Take over what other programs have."),
    "init": ("lamella.cli.init:init", "Make a workspace from templates."),
    "mcp": ("lamella.cli.mcp:mcp", "Serve memory to other programs over the Model Context Protocol."),
    "memory": ("lamella.cli.memory:memory", "Search and keep long-term memory."),
    "plugins": ("lamella.cli.plugins:plugins", "List and check plugins."),
    "sessions": ("lamella.cli.sessions:sessions", "List, show, search, export and keep sessions in order."),
    "status": ("lamella.cli.status:status", "Show how full sessions are."),
}


class _Commands(LazyGroup):
    """All commands; their help is known without importing them. Plugins add to them, and replace none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *plugin_commands()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            return super().get_command(ctx, cmd_name)
        added = plugin_commands().get(cmd_name)
        return load_command(added) if added is not None else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])
        added = {name: entry for name, entry in plugin_commands().items() if name not in COMMANDS}
        if added:
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(name, f"From {origin(entry)}.") for name, entry in added.items()])


def _version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"lamella {version('lamella')}")
        ctx.exit()


@click.group(
    cls=_Commands,
    lazy={name: place for name, (place, _) in COMMANDS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def cli() -> None:
    """Layered context memory for LLM agents.

    State lives in ~/.lamella (LAMELLA_HOME). Exit codes: 0 done; 1 failed; 2 wrong usage or
    configuration; 3 something is not installed; 4 not found; 5 busy; 6 the model failed; 7 the
    context overflowed; 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code. Data goes to stdout as UTF-8, everything else to stderr."""
    _use_utf8()
    try:
        result: Any = cli.main(args=arguments, prog_name="lamella", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    except Exception as error:  # noqa: BLE001 - the last line of defence: everything becomes an exit code
        code = report(error)
    if arguments is None:
        sys.exit(code)
    return code


def _use_utf8() -> None:
    """Output does not depend on the locale, and standard streams that were closed lead nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for the program's whole life
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")


def _pipe_closed() -> int:
    """The reader has gone (`| head`): end quietly."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


if __name__ == "__main__":
    main()
