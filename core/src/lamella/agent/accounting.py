"""What a turn cost, in the fields of sessions.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lamella.types.messages import (
    AssistantMessage,
    Message,
    Usage,
    text_of,
)


def reply_text(reply: AssistantMessage | None) -> str:
    """The text of a reply, its blocks joined by line feeds."""
    return text_of(reply.content, "\n").strip() if reply is not None else ""


def total_usage(messages: Sequence[Message]) -> Usage:
    """The usage of all calls of a run together."""
    total = Usage()
    for message in messages:
        if isinstance(message, AssistantMessage) and message.usage is not None:
            total = total + message.usage
    return total


def last_usage(messages: Sequence[Message]) -> Usage | None:
    """What the last call that succeeded reported; None when none did."""
    for message in reversed(messages):
        if isinstance(message, AssistantMessage) and not message.failed and message.usage is not None:
            return message.usage if message.usage.context_tokens else None
    return None


def counters(messages: Sequence[Message], *, compacted: bool) -> dict[str, Any]:
    """Token fields with OpenClaw's meanings.

    `inputTokens` and `outputTokens` are run totals, the cache fields the last call's, and
    `totalTokens` the prompt of the last call: a gauge, never a sum. After a compaction it is
    unknown until the next reply.
    """
    usage, last = total_usage(messages), last_usage(messages)
    fresh = last is not None and not compacted
    return {
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cacheRead": last.cache_read if last else None,
        "cacheWrite": last.cache_write if last else None,
        "totalTokens": last.prompt_tokens if last is not None and fresh else None,
        "totalTokensFresh": fresh,
    }
