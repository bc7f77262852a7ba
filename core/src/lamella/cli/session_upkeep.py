"""`lamella sessions prune`, `archive`, `restore`, `rm`: each shows what it would do, and does it with --yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click
from attrs import evolve

from lamella.cli.common import CommonOptions, Out, agent_options, json_option, open_runtime, print_table, warn
from lamella.config.units import parse_duration, parse_size
from lamella.sessions.maintenance import Action, Limits, Plan, Step, plan
from lamella.text.truncate import format_size

if TYPE_CHECKING:
    from lamella.runtime import Runtime
    from lamella.sessions.upkeep import Done

T = TypeVar("T")

yes_option = click.option("--yes", is_flag=True, help="Do it. Without this, it is only shown.")
NOT_DONE = "Nothing was changed; --yes does it."


def _parsed(parse: Callable[[str], T]) -> Callable[[click.Context, click.Parameter, str | None], T | None]:
    """A callback of an option whose value is written as in the configuration."""

    def convert(_context: click.Context, _parameter: click.Parameter, value: str | None) -> T | None:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{value!r}: {error}") from None

    return convert


def _milliseconds(text: str) -> float:
    return parse_duration(text, unit="d") * 1000


@click.command()
@agent_options
@click.option(
    "--older-than", callback=_parsed(_milliseconds), metavar="TIME", help="Sessions not used for so long: 30d, 12h."
)
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Most sessions.")
@click.option(
    "--max-bytes", callback=_parsed(parse_size), metavar="SIZE", help="Most bytes of the sessions folder: 500mb."
)
@click.option("--protect", multiple=True, metavar="KEY", help="A session that stays. May be repeated.")
@yes_option
@json_option
def prune(
    common: CommonOptions,
    older_than: float | None,
    keep: int | None,
    max_bytes: int | None,
    protect: tuple[str, ...],
    yes: bool,
    as_json: bool,
) -> int:
    """Put old sessions aside and remove old archives, as session.maintenance says; options replace its limits.

    The agent's main session stays, and those that are running.
    """
    runtime = open_runtime(common)
    limits = Limits.of(runtime.settings.session.maintenance)
    if older_than is not None:
        limits = evolve(limits, unused_ms=older_than)
    if keep is not None:
        limits = evolve(limits, entries=keep)
    if max_bytes is not None:
        limits = limits.with_bytes(max_bytes)
    return _run(runtime, planned(runtime, limits, protect), yes, as_json)


def planned(runtime: Runtime, limits: Limits, protect: Sequence[str] = ()) -> Plan:
    """What limits ask for; the main session is protected."""
    from lamella.sessions.upkeep import take_inventory

    keys = {runtime.key(key).text for key in ("", *protect)}
    return plan(take_inventory(runtime.store, keys), limits)


@click.command()
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@agent_options
@yes_option
@json_option
def archive(common: CommonOptions, keys: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Put sessions aside: their keys go, their transcripts become archives that `restore` brings back."""
    runtime = open_runtime(common)
    return _run(runtime, Plan(tuple(_step_for(runtime, key, "archive") for key in keys)), yes, as_json)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="KEY|ARCHIVE...")
@agent_options
@yes_option
@json_option
def rm(common: CommonOptions, names: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Remove sessions with their transcripts, or archives, for good."""
    from lamella.sessions.upkeep import find_stored

    runtime = open_runtime(common)
    steps = []
    for name in names:
        if ".jsonl" in name:
            path = find_stored(runtime.store, name)
            steps.append(Step("delete", "asked for", file=path.name, size=path.stat().st_size))
        else:
            steps.append(_step_for(runtime, name, "remove"))
    return _run(runtime, Plan(tuple(steps)), yes, as_json)


def _step_for(runtime: Runtime, key: str, action: Action) -> Step:
    located = runtime.store.require(runtime.key(key))
    size = located.path.stat().st_size if located.exists and action == "remove" else 0
    file = located.path.name if located.exists else ""
    return Step(action, "asked for", located.key, file, size, located.entry.get("updatedAt"))


@click.command()
@click.argument("archive", metavar="ARCHIVE|KEY|ID")
@agent_options
@click.option("--key", default="", help="The session key that it becomes; else the one it had.")
@yes_option
@json_option
def restore(common: CommonOptions, archive: str, key: str, yes: bool, as_json: bool) -> None:
    """Bring a session back that was put aside; of a KEY or ID, the newest.

    What its key has now is put aside in turn. Bytes stay what they are.
    """
    from lamella.sessions import upkeep

    runtime = open_runtime(common)
    source = upkeep.find_stored(runtime.store, archive)
    found = upkeep.plan_restore(runtime.store, source, runtime.key(key).text if key else "")
    replaced = upkeep.restore(runtime.store, found) if yes else None
    if as_json:
        Out.json(
            {
                "done": yes,
                "key": found.key,
                "archive": found.source.name,
                "file": found.target.name,
                "replaced": replaced.name if replaced else None,
            }
        )
        return
    Out.write(f"{source.name} {'is' if yes else 'would become'} {found.target.name}, session {found.key or '(none)'}.")
    if replaced is not None:
        Out.write(f"What was there is {replaced.name} now.")
    elif not yes:
        if found.present is not None:
            Out.write(f"The session that {found.key} has now would be put aside.")
        Out.write(NOT_DONE)


def _run(runtime: Runtime, wanted: Plan, yes: bool, as_json: bool) -> int:
    """Show a plan, or carry it out and show what became of it. Exit code 1 when something could not be done."""
    from lamella.sessions.upkeep import Done, carry_out

    before = _session_ids(runtime)
    done = carry_out(runtime.store, wanted.steps) if yes else [Done(step) for step in wanted.steps]
    _forget_prompts(runtime, before - _session_ids(runtime))
    if as_json:
        sizes = {"bytesBefore": wanted.before, "bytesAfter": wanted.after, "aboveLimit": wanted.missed}
        Out.json({"done": yes, "steps": [d.to_json() for d in done], **sizes})
    else:
        _show(done, wanted, yes)
    return 1 if any(d.problem for d in done) else 0


def _session_ids(runtime: Runtime) -> set[str]:
    return {str(row.entry.get("sessionId")) for row in runtime.store.rows()}


def _forget_prompts(runtime: Runtime, gone: set[str]) -> None:
    """Remove what was kept of the prompts of sessions that are gone; it is derived."""
    folder = runtime.state_dir / "prompts"
    for file in folder.iterdir() if gone and folder.is_dir() else ():
        if any(file.name.startswith(f"{session_id}.") for session_id in gone):
            file.unlink(missing_ok=True)


def _show(done: Sequence[Done], wanted: Plan, yes: bool) -> None:
    if not done:
        Out.write("Nothing to do.")
        return
    rows = [[d.step.action, d.step.key or d.step.file, format_size(d.step.size), d.problem or _note(d)] for d in done]
    print_table(rows, ["ACTION", "WHAT", "FREES", "WHY"])
    if not yes:
        Out.write(f"{summary(wanted)} {NOT_DONE}")
    if wanted.missed:
        warn("warning: the folder stays above its limit: all that is left is in use or protected")


def _note(done: Done) -> str:
    return f"{done.step.why} ({done.archive})" if done.archive else done.step.why


def summary(wanted: Plan) -> str:
    """How many sessions and files a plan concerns, in a sentence."""
    sessions = sum(bool(step.key) for step in wanted.steps)
    freed = sum(step.size for step in wanted.steps)
    return f"{sessions} sessions and {len(wanted.steps) - sessions} files, {format_size(freed)}."
