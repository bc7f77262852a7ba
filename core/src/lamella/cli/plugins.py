"""`lamella plugins`: what is installed, what is on, and why something is not."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from lamella.cli.common import CommonOptions, Out, agent_options, json_option, open_runtime, print_table
from lamella.cli.lazy import LazyGroup
from lamella.errors import LamellaError, Problem
from lamella.types.memory import ProbingMemory

if TYPE_CHECKING:
    from lamella.runtime import Runtime

# Notices that tell of something that a plugin registers and cannot have.
_TAKEN = ("name_taken", "tool_skipped")


@click.group(cls=LazyGroup, lazy={"new": "lamella.cli.plugins_new:new"})
def plugins() -> None:
    """List, check and begin plugins."""


@plugins.command("list")
@agent_options
@json_option
def list_plugins(common: CommonOptions, as_json: bool) -> None:
    """List plugins with version, slot, hooks, settings, and why one is off or has failed."""
    runtime = open_runtime(common)
    records = runtime.catalog.records
    if as_json:
        Out.json({"plugins": [r.to_json() for r in records], "problems": _as_json(runtime.catalog.problems)})
        return
    rows = [[r.name, r.version or "-", r.state, r.slot or "-", ", ".join(r.hooks) or "-", _remark(r)] for r in records]
    print_table(rows, ["NAME", "VERSION", "STATE", "SLOT", "HOOKS", "REMARK"])
    settings = [
        [f"plugins.config.{r.name}.{key}", json.dumps(value, ensure_ascii=False)]
        for r in records
        for key, value in r.config.items()
    ]
    if settings:
        Out.write("")
        print_table(settings, ["SETTING", "VALUE"])
    for problem in runtime.catalog.problems:
        click.echo(f"{problem.level}: {problem}", err=True)


def _as_json(problems: Iterable[Problem]) -> list[dict[str, str]]:
    return [{"key": p.path, "message": p.message, "level": p.level} for p in problems]


def _remark(record: Any) -> str:
    if record.reason:
        return str(record.reason)
    if record.builtin:
        return "built in"
    return f"from {record.distribution}" if record.distribution else "given by the program"


@plugins.command("check")
@agent_options
@json_option
def check(common: CommonOptions, as_json: bool) -> int:
    """Check that the configured plugins can be had, and what they register. Exit code 0 only when all is well."""
    runtime = open_runtime(common)
    found = [*runtime.catalog.problems, *runtime.hooks.problems]
    loaded = not any(p.level == "error" for p in found)
    try:
        found += _registration_problems(runtime)
        found += _command_problems(runtime)
        found += _memory_problems(runtime) if loaded else []
    finally:
        runtime.close()
    broken = any(p.level == "error" for p in found)
    if as_json:
        Out.json({"ok": not broken, "problems": _as_json(found)})
        return 1 if broken else 0
    for problem in found:
        click.echo(f"{problem.level}: {problem}", err=True)
    on = [r.name for r in runtime.catalog.active]
    Out.write(f"On: {', '.join(on) or 'none'}.")
    return 1 if broken else 0


def _memory_problems(runtime: Runtime) -> list[Problem]:
    """Why the memory that was chosen cannot be had. One that failed before is asked now."""
    if runtime.settings.plugins.slots.memory == "none" or runtime.catalog.slot("memory") is None:
        return []
    try:
        memory = runtime.require_memory()
        if isinstance(memory, ProbingMemory):
            memory.probe()
    except LamellaError as error:
        return [Problem("memory.backend", f"{error}; {error.hint}" if error.hint else str(error))]
    return []


def _registration_problems(runtime: Runtime) -> list[Problem]:
    """What goes wrong when plugins register: faults by plugin and hook, and names that are taken."""
    from lamella.types.events import Notice, PluginFault

    found: list[Problem] = []

    def hear(event: object) -> None:
        if isinstance(event, PluginFault) and event.hook != "open_memory":
            found.append(Problem(f"plugin {event.plugin}", f"{event.hook}: {event.error}"))
        elif isinstance(event, Notice) and event.code in _TAKEN:
            found.append(Problem("", event.message))

    runtime.listeners.append(hear)
    for part in ("memory_backends", "embedders", "tools", "commands", "providers", "estimate"):
        try:
            getattr(runtime, part)
        except LamellaError as error:  # of the configuration, such as an estimator that nobody offers
            found.append(Problem("", str(error)))
    runtime.listeners.remove(hear)
    return found


def _command_problems(runtime: Runtime) -> list[Problem]:
    """Commands that plugins add to `lamella` and that cannot be had: the name is taken, or the import fails."""
    from importlib.metadata import entry_points

    from lamella.cli.main import COMMANDS
    from lamella.cli.plugin_commands import GROUP, load_command, origin, plugin_commands
    from lamella.plugins.threads import OutOfTime, describe, run_with_limit

    chosen = plugin_commands()
    seconds = runtime.settings.plugins.load_timeout_seconds
    found = []
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, origin(e))):
        first = chosen[entry.name]
        owner = "lamella" if entry.name in COMMANDS else origin(first)
        if owner != origin(entry):
            found.append(Problem("", f"command {entry.name!r} of {origin(entry)}: the name is taken by {owner}"))
            continue
        try:
            run_with_limit(functools.partial(load_command, entry), seconds)
        except OutOfTime:
            found.append(
                Problem("", f"command {entry.name!r} of {origin(entry)}: was not imported within {seconds:g} s")
            )
        except LamellaError as error:
            found.append(Problem("", str(error)))
        except Exception as error:  # noqa: BLE001 - an import of others may raise anything
            found.append(Problem("", f"command {entry.name!r} of {origin(entry)}: {describe(error)}"))
    return found
