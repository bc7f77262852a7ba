"""`lamella status`: how full each session is, from sessions.json alone."""

from __future__ import annotations

from typing import Any

import click

from lamella.cli.common import CommonOptions, Out, agent_options, json_option, open_runtime, print_table
from lamella.sessions.status import SessionStatus, session_status
from lamella.text.width import clip


@click.command()
@click.argument("key", required=False, default="")
@agent_options
@json_option
def status(common: CommonOptions, key: str, as_json: bool) -> None:
    """Show how full sessions are: of one KEY, or of all.

    share: ok below 70 % of the window, watch to 80 %, high above.
    """
    runtime = open_runtime(common)
    rows = [runtime.store.require(runtime.key(key))] if key else runtime.store.rows()
    backend = memory_backend(runtime)
    states = [session_status(row, runtime.settings, backend) for row in rows]
    if as_json:
        Out.json([s.to_json() for s in states])
    elif key:
        Out.write(status_text(states[0]))
    elif not states:
        Out.write(f"No sessions in {runtime.store.folder}.")
    else:
        print_table([_row(s) for s in states], ["KEY", "USED", "WINDOW", "SHARE", "COMPACTED", "MODEL"])


def memory_backend(runtime: Any) -> dict[str, Any]:
    """Who answers memory searches, without opening anything."""
    slot = runtime.settings.plugins.slots.memory
    return {"slot": slot, "backend": runtime.settings.memory.backend if slot == "memory-core" else None}


def _row(state: SessionStatus) -> list[str]:
    used = f"{state.used_tokens}" if state.used_tokens is not None else "?"
    share = f"{state.share:.0%} {state.level}" if state.share is not None else "?"
    return [state.key, used, str(state.window_tokens or "?"), share, str(state.compaction_count), clip(state.model, 40)]


def status_text(state: SessionStatus) -> str:
    """A session's status for a person."""
    rows = [(name, value) for name, value in state.to_json().items() if value not in (None, "", {}, [])]
    return "\n".join(f"{name}: {value}" for name, value in rows)
