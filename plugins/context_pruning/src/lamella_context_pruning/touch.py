"""When the provider's cache was last used, and what was pruned then: kept in the transcript.

The entry is OpenClaw's, so that either program goes on where the other stopped; `pruned` is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamella.types.messages import AssistantMessage, Message, number_or_none
from lamella_context_pruning.prune import Key, Replacement

MARKER = "openclaw.cache-ttl"


def last_touch(messages: Sequence[Message], marker: Any) -> float | None:
    """The later of the marker's time and that of the last reply, in Unix milliseconds; None before any.

    Every reply has used the cache, also those of a run that ended before its marker was written. A
    reply without a time was written by another program, and counts as long ago.
    """
    replied = next(
        (m.timestamp or 0.0 for m in reversed(messages) if isinstance(m, AssistantMessage) and not m.failed), None
    )
    marked = number_or_none(marker.get("timestamp")) if isinstance(marker, Mapping) else None
    return max((t for t in (replied, marked) if t is not None), default=None)


def marker_data(now: float, provider: str, model: str, pruned: Mapping[Key, Replacement]) -> dict[str, Any]:
    """The entry's data."""
    data: dict[str, Any] = {"timestamp": int(now), "provider": provider, "modelId": model}
    if pruned:
        data["pruned"] = [[call_id, time, what] for (call_id, time), what in pruned.items()]
    return data


def pruned_of(marker: Any) -> dict[Key, Replacement]:
    """What was pruned when the marker was written; entries that are not understood count as nothing."""
    rows = marker.get("pruned") if isinstance(marker, Mapping) else None
    found: dict[Key, Replacement] = {}
    for row in rows if isinstance(rows, (list, tuple)) else ():
        match row:
            case [str(call_id), (int() | float() | None) as time, "trimmed" | "cleared" as what]:
                found[call_id, time] = what
    return found
