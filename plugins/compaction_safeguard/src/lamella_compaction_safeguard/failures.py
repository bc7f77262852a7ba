"""Failed tool calls, so that they are not tried again in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from lamella.types.messages import Message, ToolResultMessage, text_of
from lamella_compaction_safeguard.clip import clipped, one_line

HEADING = "## Tool Failures"
MAX_SHOWN = 8
MAX_TEXT = 240


@frozen(slots=True)
class Failure:
    """One failed call: its id, and what is said of it in one line."""

    call_id: str
    line: str


@frozen(slots=True)
class Failures:
    """Failures to show, and how many more there were."""

    shown: tuple[Failure, ...] = ()
    left_out: int = 0


def tool_failures(messages: Iterable[Message], carried: Failures = Failures()) -> Failures:
    """The failures of these messages, then earlier ones, each call once, the first 8 to show."""
    found: dict[str, Failure] = {}
    for message in messages:
        if isinstance(message, ToolResultMessage) and message.is_error and message.tool_call_id.strip():
            found.setdefault(message.tool_call_id, Failure(message.tool_call_id, _line(message)))
    for failure in carried.shown:
        found.setdefault(failure.call_id, failure)
    every = tuple(found.values())
    return Failures(every[:MAX_SHOWN], max(len(every) - MAX_SHOWN, 0) + carried.left_out)


def failure_section(failures: Failures, max_chars: int = 4000) -> str:
    """The section of a summary; empty without failures. What does not fit is counted."""
    lines, room = [], max_chars - len(HEADING)
    for failure in failures.shown:
        room -= len(failure.line) + 3
        if room < 0:
            break
        lines.append(f"- {failure.line}")
    more = len(failures.shown) - len(lines) + failures.left_out
    if more:
        lines.append(f"- ...and {more} more")
    return "\n".join([HEADING, *lines]) if lines else ""


def _line(message: ToolResultMessage) -> str:
    facts = _facts(message.details)
    name = message.tool_name.strip() or "tool"
    text = one_line(text_of(message.content, "\n"))
    text = text if len(text) <= MAX_TEXT else clipped(text, MAX_TEXT - 3)
    return f"{name}{facts}: {text or ('failed' if facts else 'failed (no output)')}"


def _facts(details: Any) -> str:
    if not isinstance(details, Mapping):
        return ""
    status, code = details.get("status"), details.get("exitCode")
    known = []
    if isinstance(status, str) and status.strip():
        known.append(f"status={one_line(status)[:40]}")
    if isinstance(code, (int, float)) and not isinstance(code, bool):
        known.append(f"exitCode={code:g}")
    return f" ({' '.join(known)})" if known else ""
