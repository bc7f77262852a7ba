"""Which stored results are too long for a window, and what takes their place. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lamella.types.entries import Compaction, Entry
from lamella.types.messages import Message, ToolResultMessage
from lamella_context_pruning.persist import shortened
from lamella_context_pruning.reread import calls_of


def replacements(branch: Sequence[Entry], limit: int) -> dict[str, ToolResultMessage]:
    """Shorter results by entry id, for those in the context that have more than `limit` units."""
    shown = [(entry, message) for entry in in_context(branch) if (message := entry.message) is not None]
    messages: list[Message] = [message for _, message in shown]
    calls = calls_of(messages)
    found = {}
    for i, (entry, message) in enumerate(shown):
        if isinstance(message, ToolResultMessage):
            shorter = shortened(message, limit, calls.get(i))
            if shorter is not message:
                found[entry.id] = shorter
    return found


def in_context(branch: Sequence[Entry]) -> Sequence[Entry]:
    """The entries of a branch (root first) that its last compaction left in the context."""
    at = next((i for i in range(len(branch) - 1, -1, -1) if branch[i].type == "compaction"), None)
    if at is None:
        return branch
    first_kept = Compaction.of(branch[at]).first_kept_entry_id
    return branch[next((i for i in range(at) if branch[i].id == first_kept), at) :]
