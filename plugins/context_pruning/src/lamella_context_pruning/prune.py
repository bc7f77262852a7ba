"""Pruning old tool results: trim them, then clear the oldest. Pure; the rules are OpenClaw's (2026.3).

Never touched: everything before the first user message, the last replies and what follows the first
of them, and whatever is not a tool result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from lamella.text.unicode import character_start
from lamella.types.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultMessage,
    UserMessage,
)
from lamella_context_pruning.config import Config
from lamella_context_pruning.draft import Draft, Placed
from lamella_context_pruning.globs import allowed
from lamella_context_pruning.sizes import UNITS_PER_TOKEN

IMAGE_REMOVED = "[image removed during context pruning]"
TRIM, CLEAR = "soft_trim", "hard_clear"

Replacement: TypeAlias = Literal["trimmed", "cleared"]
# What a result is known by for the rest of a session: its call's id and its time. Ids alone may repeat.
Key: TypeAlias = tuple[str, float | None]


def key_of(result: ToolResultMessage) -> Key:
    return result.tool_call_id, result.timestamp


def prune(draft: Draft, window: int, config: Config) -> dict[Key, Replacement]:
    """Trim and clear old results for a window in tokens; which results got what."""
    candidates = _candidates(draft, config)
    if not candidates:
        return {}
    room = window * UNITS_PER_TOKEN
    used = sum(draft.sizes)
    if used < config.soft_trim_ratio * room:
        draft.remark(
            "pruning_ratio",
            f"{used / room:.0%} of the window is used; trimming begins at {config.soft_trim_ratio:.0%}",
        )
        return {}
    before = sum(draft.sizes[i] for i, _ in candidates)
    _soft_trim(draft, candidates, config)
    _hard_clear(draft, candidates, before, room, config)
    return {
        key_of(result): "cleared" if draft.notes[i].rule == CLEAR else "trimmed"
        for i, result in candidates
        if draft.notes[i].action != "kept"
    }


def again(draft: Draft, replaced: Mapping[Key, Replacement], config: Config) -> None:
    """Do to the same results what was done to them before."""
    for i, result in draft.results():
        match replaced.get(key_of(result)):
            case "cleared":
                draft.replace(i, cleared(result, config), "cleared", CLEAR)
            case "trimmed" if (trimmed := soft_trimmed(result, config)) is not result:
                draft.replace(i, trimmed, "trimmed", TRIM)


def _candidates(draft: Draft, config: Config) -> list[Placed]:
    """The results that may be pruned; why others may not is noted."""
    stop = protected_from(draft.original, config.keep_last_assistants)
    if stop is None:
        draft.remark("pruning_few_replies", f"there are fewer than {config.keep_last_assistants} replies")
        return []
    start = first_user(draft.original)
    if start is None:
        draft.remark("pruning_no_user", "nobody has said anything yet")
        return []
    verdicts: dict[str, bool] = {}
    found = []
    for i, result in draft.results():
        name = result.tool_name
        if name not in verdicts:
            verdicts[name] = allowed(name, config.tools.allow, config.tools.deny)
        if i < start:
            draft.keep(i, "before_first_user")
        elif i >= stop:
            draft.keep(i, "protected_tail")
        elif not verdicts[name]:
            draft.keep(i, "tool_not_prunable")
        elif config.images == "skip" and _has_image(result):
            draft.keep(i, "has_images")
        else:
            found.append((i, result))
    if not found:
        draft.remark("pruning_nothing_old", "there is no old tool result that may be pruned")
    return found


def first_user(messages: Sequence[Message]) -> int | None:
    """Place of the first user message."""
    return next((i for i, m in enumerate(messages) if isinstance(m, UserMessage)), None)


def protected_from(messages: Sequence[Message], replies: int) -> int | None:
    """Place of the `replies`-th last reply; the end for 0, None when there are fewer."""
    if replies <= 0:
        return len(messages)
    left = replies
    for i in range(len(messages) - 1, -1, -1):
        if isinstance(messages[i], AssistantMessage):
            left -= 1
            if not left:
                return i
    return None


def _soft_trim(draft: Draft, candidates: Sequence[Placed], config: Config) -> None:
    for i, result in candidates:
        trimmed = soft_trimmed(result, config)
        if trimmed is result:
            draft.keep(i, "short_enough")
        else:
            draft.replace(i, trimmed, "trimmed", TRIM)


def _hard_clear(draft: Draft, candidates: Sequence[Placed], before: int, room: int, config: Config) -> None:
    used = sum(draft.sizes)
    if used < config.hard_clear_ratio * room:
        return
    if not config.hard_clear.enabled:
        draft.remark("pruning_clear_off", "hard_clear.enabled is false")
        return
    prunable = before if config.count_before_trim else sum(draft.sizes[i] for i, _ in candidates)
    if prunable < config.min_prunable_tool_chars:
        draft.remark(
            "pruning_minimum",
            f"{prunable} characters could be cleared; clearing begins at {config.min_prunable_tool_chars}",
        )
        return
    for i, result in candidates:
        if used < config.hard_clear_ratio * room:
            return
        used -= draft.sizes[i]
        draft.replace(i, cleared(result, config), "cleared", CLEAR)
        used += draft.sizes[i]


def soft_trimmed(result: ToolResultMessage, config: Config) -> ToolResultMessage:
    """Head and tail of a result's text, images replaced; the same object when nothing changes."""
    limits = config.soft_trim
    text = _joined(result)
    if len(text) <= limits.max_chars or limits.head_chars + limits.tail_chars >= len(text):
        return _with_text(result, text) if _has_image(result) else result
    head = text[: character_start(text, limits.head_chars)]
    tail = text[character_start(text, len(text) - limits.tail_chars) :] if limits.tail_chars else ""
    note = (
        f"[Tool result trimmed: kept first {limits.head_chars} chars and last {limits.tail_chars} chars "
        f"of {len(text)} chars.]"
    )
    return _with_text(result, f"{head}\n...\n{tail}\n\n{note}")


def cleared(result: ToolResultMessage, config: Config) -> ToolResultMessage:
    """A result with the placeholder as its content."""
    return _with_text(result, config.placeholder)


def _with_text(result: ToolResultMessage, text: str) -> ToolResultMessage:
    content = text if isinstance(result.content, str) else (TextBlock(text),)
    # `evolve` takes three times as long, and there are hundreds of results.
    return ToolResultMessage(
        result.tool_call_id,
        result.tool_name,
        content,
        result.is_error,
        result.details,
        result.timestamp,
        result.extra,
    )


def _joined(result: ToolResultMessage) -> str:
    if isinstance(result.content, str):
        return result.content
    return "\n".join(t for b in result.content if (t := _text_in(b)) is not None)


def _text_in(block: Block) -> str | None:
    if isinstance(block, TextBlock):
        return block.text
    return IMAGE_REMOVED if isinstance(block, ImageBlock) else None


def _has_image(result: ToolResultMessage) -> bool:
    return not isinstance(result.content, str) and any(isinstance(b, ImageBlock) for b in result.content)
