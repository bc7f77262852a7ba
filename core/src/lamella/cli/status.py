"""`lamella status`: how full each session is, from sessions.json alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lamella.cli.common import (
    CommonOptions,
    Out,
    agent_options,
    json_option,
    local_minute,
    open_runtime,
    print_table,
    warn,
)
from lamella.config.schema import MemorySection
from lamella.memory.cooling import read_cooling, shown
from lamella.sessions.status import SessionStatus, session_status
from lamella.text.width import clip
from lamella.types.memory import Degraded

if TYPE_CHECKING:
    from lamella.plugins.catalog import PluginRecord
    from lamella.runtime import Runtime
    from lamella.sessions.store import Located


@click.command()
@click.argument("key", required=False, default="")
@agent_options
@json_option
def status(common: CommonOptions, key: str, as_json: bool) -> None:
    """Show how full sessions are: of one KEY, or of all.

    share: ok below 70 % of the window, watch to 80 %, high above.
    """
    runtime = open_runtime(common)
    rows = session_rows(runtime)
    if key:
        rows = [runtime.store.require(runtime.key(key))]
    backend = memory_backend(runtime) if as_json or key else {}  # a table does not show it
    states = [session_status(row, runtime.settings, backend) for row in rows]
    if as_json:
        Out.json([s.to_json() for s in states])
    elif key:
        Out.write(status_text(states[0], runtime.agent.timezone))
    elif not states:
        Out.write(f"No sessions in {runtime.store.folder}.")
    else:
        print_table([_row(s) for s in states], ["KEY", "USED", "WINDOW", "SHARE", "COMPACTED", "MODEL"])
    if not as_json and not key:
        _say_what_is_due(runtime)


def _say_what_is_due(runtime: Runtime) -> None:
    """What session.maintenance would put aside or remove, if it is not done by itself."""
    from lamella.cli.session_upkeep import planned, summary
    from lamella.sessions.maintenance import Limits

    found = planned(runtime, Limits.of(runtime.settings.session.maintenance))
    if found.steps:
        Out.write(f"\nDue for maintenance: {summary(found)} `lamella sessions prune` shows them.")


def session_rows(runtime: Runtime) -> list[Located]:
    """All sessions, newest first; what is damaged or left out is told on stderr."""
    loaded = runtime.store.index.load()
    if loaded.damage:
        warn(f"warning: {loaded.damage.message}; shown is what could be recovered")
    for key, why in runtime.store.left_out(loaded.sessions).items():
        warn(f"warning: {key} is left out: {why}")
    return runtime.store.rows(loaded.sessions)


def memory_backend(runtime: Runtime) -> dict[str, Any]:
    """The memory that is chosen, and who answers searches (None: nobody), without opening anything."""
    slot = runtime.settings.plugins.slots.memory
    plugin = runtime.catalog.slot("memory")
    if slot != "memory-core":
        return {"slot": slot, "backend": None, "answers": plugin.name if plugin else None, "fallback": None}
    backend = runtime.settings.memory.backend
    why = _why_another_answers(runtime, plugin, backend) if plugin is not None else None
    there = plugin is not None and backend in runtime.memory_backends
    answers = why.answered_by if why is not None else backend if there else None
    return {"slot": slot, "backend": backend, "answers": answers, "fallback": shown(why, backend) if why else None}


def _why_another_answers(runtime: Runtime, plugin: PluginRecord, backend: str) -> Degraded | None:
    """Why the backend that is chosen does not answer, as far as that is known without asking it."""
    own = MemorySection().backend
    if backend == own or own not in runtime.memory_backends or plugin.config.get("fallback") == "none":
        return None
    if backend not in runtime.memory_backends:
        return Degraded(f"memory backend {backend!r} is not installed", own)
    cooling = read_cooling(runtime.state_dir, backend)
    return cooling.degraded() if cooling is not None else None


def _row(state: SessionStatus) -> list[str]:
    used = f"{state.used_tokens}" if state.used_tokens is not None else "?"
    share = f"{state.share:.0%} {state.level}" if state.share is not None else "?"
    return [state.key, used, str(state.window_tokens or "?"), share, str(state.compaction_count), clip(state.model, 40)]


def status_text(state: SessionStatus, timezone: str = "") -> str:
    """A session's status for a person: one line for each field that is known."""
    fields: dict[str, Any] = {k: v for k, v in state.to_json().items() if v not in (None, "", {}, [])}
    for name in ("updatedAt", "memoryFlushAt"):
        if name in fields:
            fields[name] = local_minute(fields[name], timezone)
    fields["compactions"] = "; ".join(
        f"turn {c.turn}: {c.before} became {c.after} ({c.cause}, memory: {c.flush})" for c in state.compactions[-3:]
    )
    fields["findings"] = "; ".join(finding.message for finding in state.findings)
    if isinstance(why := fields.get("memory", {}).get("fallback"), dict):
        fields["memory"] = {**fields["memory"], "fallback": why["reason"]}
    fields["fresh"] = "yes" if state.fresh else "no, an estimate"
    for name in ("totals", "memory"):
        parts = [(key, value) for key, value in fields.get(name, {}).items() if (key, value) != ("fallback", None)]
        fields[name] = ", ".join(f"{key} {value if value is not None else 'nobody'}" for key, value in parts)
    return "\n".join(f"{name}: {value}" for name, value in fields.items() if value != "")
