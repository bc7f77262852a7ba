"""The context of a leaf: what a model would see of a branch, before repair and budgets.

With a compaction on the branch: its summary, the kept suffix from `firstKeptEntryId` on, and what
follows. Without one: everything. Bookkeeping entries yield nothing.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import define, evolve, field, frozen

from lamella.sessions.lines import Lines
from lamella.text.days import parse_iso_ms
from lamella.types.entries import Compaction, Entry, custom_content
from lamella.types.message_json import parse_content
from lamella.types.messages import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Put the cycle collector off while many objects are made that all stay: it would walk them
    again and again and double the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@frozen(slots=True)
class ModelState:
    """Model and thinking level in force at a leaf; provider and model are None before any."""

    provider: str | None = None
    model_id: str | None = None
    thinking_level: str = "off"


@frozen(slots=True)
class Projected:
    """An entry that the model sees, and its messages (one, or none after an edit)."""

    entry: Entry
    messages: tuple[Message, ...]


@frozen(slots=True)
class Context:
    """What a branch gives a model. Messages are decoded when they are first read."""

    lines: Lines = field(repr=False)
    positions: tuple[int, ...]
    compaction: int | None
    state: ModelState

    @cached_property
    def items(self) -> tuple[Projected, ...]:
        """All entries in the order in which the model sees them, one for each of `positions`."""
        with _no_collection():
            return tuple(project(self.lines, self.positions, self.compaction))

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        return tuple(m for item in self.items for m in item.messages)


@define(slots=True)
class StateSearch:
    """Model and thinking level, looked for from a leaf upwards: the first of each that is met counts.

    A failed reply counts as a use of its model.
    """

    model: tuple[str, str] | None = None
    level: str | None = None

    @property
    def done(self) -> bool:
        return self.model is not None and self.level is not None

    def look(self, lines: Lines, position: int) -> None:
        """Take what one entry says; it is decoded only when it may say something that is missing."""
        kind = lines.heads[position].type
        if kind == "thinking_level_change" and self.level is None:
            self.level = lines.entry(position).text("thinkingLevel") or "off"
        elif kind in ("model_change", "message") and self.model is None:
            self.model = _model_in(lines.entry(position))

    def result(self, above: ModelState | None = None) -> ModelState:
        """What was found; what was not is as `above` the entries that were looked at."""
        above = above or ModelState()
        provider, model_id = self.model or (above.provider, above.model_id)
        return ModelState(provider, model_id, self.level or above.thinking_level)


def _model_in(entry: Entry) -> tuple[str, str] | None:
    if entry.type == "model_change":
        return entry.text("provider"), entry.text("modelId")
    if entry.role == "assistant":
        raw = entry.fields["message"]
        return str(raw.get("provider") or ""), str(raw.get("model") or "")
    return None


def latest_compaction(lines: Lines, path: Sequence[int]) -> int | None:
    """Index into `path` of its last compaction."""
    for i in range(len(path) - 1, -1, -1):
        if lines.heads[path[i]].type == "compaction":
            return i
    return None


def visible_positions(lines: Lines, path: Sequence[int]) -> tuple[tuple[int, ...], int | None]:
    """Positions that count for the context, and the position of the compaction in force.

    The compaction comes first, then the kept suffix, then what follows. When the first kept entry
    is not on the branch before the compaction, nothing before it is kept.
    """
    at = latest_compaction(lines, path)
    if at is None:
        return tuple(path), None
    first_kept = Compaction.of(lines.entry(path[at])).first_kept_entry_id
    start = at
    if first_kept != lines.heads[path[at]].id:  # its own id: nothing before it is kept
        start = next((i for i in range(at) if lines.heads[path[i]].id == first_kept), at)
    return (path[at], *path[start:at], *path[at + 1 :]), path[at]


def state_of(lines: Lines, path: Sequence[int]) -> ModelState:
    """The last model and thinking level on a branch."""
    search = StateSearch()
    for position in reversed(path):
        search.look(lines, position)
        if search.done:
            break
    return search.result()


def build_context(lines: Lines, path: Sequence[int], state: ModelState | None = None) -> Context:
    """The context of a branch (positions, root first)."""
    positions, compaction = visible_positions(lines, path)
    return Context(lines, positions, compaction, state or state_of(lines, path))


def entry_messages(entry: Entry) -> tuple[Message, ...]:
    """The messages of one entry that is no compaction: at most one."""
    match entry.type:
        case "message":
            message = entry.message
            return (message,) if message is not None else ()
        case "custom_message":
            return (
                CustomMessage(
                    entry.text("customType"),
                    custom_content(entry),
                    entry.fields.get("display") is not False,
                    entry.fields.get("details"),
                    parse_iso_ms(entry.timestamp),
                ),
            )
        case "branch_summary" if entry.text("summary"):
            when = parse_iso_ms(entry.timestamp)
            return (BranchSummaryMessage(entry.text("summary"), entry.text("fromId"), when),)
        case _:
            return ()


def summary_message(entry: Entry) -> CompactionSummaryMessage:
    """The message that stands for a compaction."""
    compaction = Compaction.of(entry)
    return CompactionSummaryMessage(compaction.summary, compaction.tokens_before, parse_iso_ms(entry.timestamp))


def project(lines: Lines, positions: Sequence[int], compaction: int | None) -> list[Projected]:
    """Messages per entry, in order. Only the compaction in force yields its summary.

    `context_edit` entries (written by newer Pi) replace or leave out their target's content.
    """
    edits = _edits(lines, positions)
    projected = []
    for position in positions:
        entry = lines.entry(position)
        if position == compaction:
            messages: tuple[Message, ...] = (summary_message(entry),)
        elif _is_system(entry):
            messages = ()
        else:
            messages = entry_messages(entry)
        if entry.id in edits:
            messages = tuple(_edited(m, edits[entry.id]) for m in messages if edits[entry.id] is not None)
        projected.append(Projected(entry, messages))
    return projected


def _is_system(entry: Entry) -> bool:
    # Newer Pi stores its system prompt as messages; lamella builds its own for every request.
    return entry.type == "message" and entry.role == "system"


def _edits(lines: Lines, positions: Sequence[int]) -> dict[str, Any]:
    edits: dict[str, Any] = {}
    for position in positions:
        if lines.heads[position].type == "context_edit":
            entry = lines.entry(position)
            edits[entry.text("targetId")] = entry.fields.get("replacement")
    return edits


def _edited(message: Message, replacement: Any) -> Message:
    if not isinstance(replacement, Mapping):
        return message
    content = parse_content(replacement.get("content"))
    match message:
        case UserMessage():
            return UserMessage(content, message.timestamp, message.extra)
        case AssistantMessage():
            blocks = parse_content([{"type": "text", "text": content}]) if isinstance(content, str) else content
            return _with_content(message, blocks)
        case ToolResultMessage() | CustomMessage():
            return _with_content(message, content)
        case _:
            return message


def _with_content(message: Message, content: Any) -> Message:
    return evolve(message, content=content)
