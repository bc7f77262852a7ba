"""`lamella plugins`: what is installed, what is on, and why something is not."""

from __future__ import annotations

import json
from typing import Any

import click

from lamella.cli.common import CommonOptions, Out, agent_options, json_option, open_runtime, print_table
from lamella.errors import LamellaError, Problem
from lamella.types.memory import ProbingMemory


@click.group()
def plugins() -> None:
    """List and check plugins."""


@plugins.command("list")
@agent_options
@json_option
def list_plugins(common: CommonOptions, as_json: bool) -> None:
    """List plugins with version, slot, hooks, settings, and why one is off or has failed."""
    runtime = open_runtime(common)
    records = runtime.catalog.records
    if as_json:
        problems = [{"key": p.path, "message": p.message, "level": p.level} for p in runtime.catalog.problems]
        Out.json({"plugins": [r.to_json() for r in records], "problems": problems})
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
    """Check that the configured plugins can be had. Exit code 0 only when all is well."""
    runtime = open_runtime(common)
    found = [*runtime.catalog.problems, *runtime.hooks.problems]
    broken = any(p.level == "error" for p in found)
    if not broken and runtime.settings.plugins.slots.memory != "none" and runtime.catalog.slot("memory"):
        try:
            memory = runtime.require_memory()
            if isinstance(memory, ProbingMemory):
                memory.probe()
        except LamellaError as error:
            found.append(Problem("memory.backend", f"{error}; {error.hint}" if error.hint else str(error)))
            broken = True
        finally:
            runtime.close()
    if as_json:
        problems = [{"key": p.path, "message": p.message, "level": p.level} for p in found]
        Out.json({"ok": not broken, "problems": problems})
        return 1 if broken else 0
    for problem in found:
        click.echo(f"{problem.level}: {problem}", err=True)
    on = [r.name for r in runtime.catalog.active]
    Out.write(f"On: {', '.join(on) or 'none'}.")
    return 1 if broken else 0
