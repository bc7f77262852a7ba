"""`lamella import` and `lamella export`: moving in from other programs, and out again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamella.cli.common import Out, json_option, warn
from lamella.sessions.keys import DEFAULT_AGENT

if TYPE_CHECKING:
    from lamella.moving.plan import Plan
    from lamella.moving.target import Target

_folder = click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
_dry_run = click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
_config = click.option(
    "--config", type=click.Path(path_type=Path, dir_okay=False), help="Config file instead of config.toml."
)
_agent = click.option("--agent", default=DEFAULT_AGENT, show_default=True, help="Agent id that gets the sessions.")
_in_place = click.option(
    "--in-place", is_flag=True, help="Work in the folder itself instead of a copy: turns append to its files."
)


@click.group("import")
def import_() -> None:
    """Take over settings, workspaces and sessions of other programs."""


@import_.command("openclaw")
@_folder
@_dry_run
@_in_place
@click.option("--follow", is_flag=True, help="Also take over workspaces and sessions that lie outside DIR.")
@_config
@json_option
def import_openclaw(
    folder: Path | None, dry_run: bool, in_place: bool, follow: bool, config: Path | None, as_json: bool
) -> None:
    """Move in from OpenClaw. DIR is its state folder (default: ~/.openclaw)."""
    from lamella.moving.openclaw import plan_openclaw

    place = _place(folder, "~/.openclaw")
    _run(lambda target: plan_openclaw(place, target, follow=follow, in_place=in_place), config, dry_run, as_json)


@import_.command("pi")
@_folder
@_dry_run
@_in_place
@_agent
@_config
@json_option
def import_pi(
    folder: Path | None, dry_run: bool, in_place: bool, agent: str, config: Path | None, as_json: bool
) -> None:
    """Move in from the Pi coding agent. DIR is its agent folder (default: ~/.pi/agent), or one of sessions."""
    from lamella.moving.pi import plan_pi
    from lamella.sessions.keys import check_agent_id

    place = _place(folder, "~/.pi/agent")
    _run(lambda target: plan_pi(place, target, check_agent_id(agent), in_place=in_place), config, dry_run, as_json)


@import_.command("claude-code")
@_folder
@_dry_run
@_agent
@_config
@json_option
def import_claude_code(folder: Path | None, dry_run: bool, agent: str, config: Path | None, as_json: bool) -> None:
    """Move in from Claude Code. DIR is its folder (default: ~/.claude), or one of transcripts."""
    from lamella.moving.claude_code import plan_claude_code
    from lamella.sessions.keys import check_agent_id

    place = _place(folder, "~/.claude")
    _run(lambda target: plan_claude_code(place, target, check_agent_id(agent)), config, dry_run, as_json)


@click.group()
def export() -> None:
    """Write sessions for other programs."""


@export.command("openclaw")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@_dry_run
@click.option("--agent", default=DEFAULT_AGENT, show_default=True, help="Agent id whose sessions are written.")
@_config
@json_option
def export_openclaw(folder: Path, dry_run: bool, agent: str, config: Path | None, as_json: bool) -> None:
    """Write an agent's sessions into DIR, a state folder of OpenClaw 2026.3. Pi opens the transcripts too."""
    from lamella.moving.export import plan_export
    from lamella.paths import expand
    from lamella.sessions.keys import check_agent_id

    _run(lambda target: plan_export(expand(folder), target, check_agent_id(agent)), config, dry_run, as_json)


def _place(folder: Path | None, default: str) -> Path:
    """The folder to read. Raises `UsageError` when it is not there."""
    from lamella.errors import UsageError
    from lamella.paths import expand

    place = expand(folder if folder is not None else default)
    if not place.is_dir():
        raise UsageError(f"{place} is no folder", hint="Name the folder of the other program: lamella import ... DIR")
    return place


def _run(make: Callable[[Target], Plan], config: Path | None, dry_run: bool, as_json: bool) -> None:
    from lamella.moving.plan import carry_out
    from lamella.moving.report import report_text
    from lamella.moving.target import Target

    target = Target.open(config)
    report = carry_out(make(target), target, dry_run=dry_run)
    shown: Any = report.to_json() if as_json else report_text(report)
    (Out.json if as_json else Out.write)(shown)
    if report.in_place:
        what = "Turns would append" if dry_run else "Turns append"
        warn(f"In place: {what} to the files in {report.folder} from now on.")
