"""Commands that plugins add to `lamella`, found through the entry-point group `lamella.commands`.

Listing them imports nothing, and one that cannot be imported fails only where it is called.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from lamella.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "lamella.commands"

log = logging.getLogger(__name__)


def plugin_commands() -> dict[str, EntryPoint]:
    """What is on offer, by the command's name. Of two with one name the first by distribution counts."""
    from importlib.metadata import entry_points

    found = entry_points(group=GROUP)
    named: dict[str, EntryPoint] = {}
    for entry in sorted(found, key=lambda e: (e.name, origin(e), e.value)):
        first = named.setdefault(entry.name, entry)
        if (first.value, origin(first)) != (entry.value, origin(entry)):
            log.warning("command %s of %s is left out: %s has one", entry.name, origin(entry), origin(first))
    return named


def load_command(entry: EntryPoint) -> click.Command:
    """The command. Raises `PluginError` when it cannot be imported, or is no click command."""
    try:
        command = entry.load()
    except (Exception, SystemExit) as error:
        log.warning("command %s cannot be imported", entry.name, exc_info=True)
        reason = f"cannot be imported: {type(error).__name__}: {error}"
        raise _broken(entry, reason) from error
    if not isinstance(command, click.Command):
        raise _broken(entry, f"{entry.value} is {type(command).__name__}, expected a click command")
    return command


def origin(entry: EntryPoint) -> str:
    """The distribution that brings a command."""
    return entry.dist.name if entry.dist is not None else entry.module


def _broken(entry: EntryPoint, reason: str) -> PluginError:
    return PluginError(
        f"command {entry.name!r} of {origin(entry)} {reason}", hint=f"pip install --upgrade {origin(entry)}"
    )
