"""How to see the missing part of a shortened result: the lines that `read` shows it with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lamella.text.shorten import Cut, Tell, older_mark
from lamella.types.messages import AssistantMessage, Message, ToolCall, ToolResultMessage

_LINES = re.compile(r": lines (\d+)-(\d+);")
# What `read` says behind the lines that it shows.
_NOTE = re.compile(r"\n\n\[[^\n]*\]\Z")


def calls_of(messages: Sequence[Message]) -> dict[int, ToolCall]:
    """The call that each tool result answers, by the result's place."""
    calls: dict[str, ToolCall] = {}
    answered: dict[int, ToolCall] = {}
    for i, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            calls.update((call.id, call) for call in message.tool_calls)
        elif isinstance(message, ToolResultMessage) and message.tool_call_id in calls:
            answered[i] = calls[message.tool_call_id]
    return answered


def tell_how(call: ToolCall | None) -> Tell:
    """What the mark of a shortened result says beside how much is missing."""
    if call is None or call.name != "read":
        return lambda _text, _cut: ""
    offset = call.arguments.get("offset")
    first = offset if isinstance(offset, int) and offset > 0 else 1
    return lambda text, cut: _tell_lines(text, cut, first)


def _tell_lines(text: str, cut: Cut, first: int) -> str:
    start, end = missing_lines(text, cut, first)
    return f": lines {start}-{end}; read with offset={start} and limit={end - start + 1} shows them"


def missing_lines(text: str, cut: Cut, first: int) -> tuple[int, int]:
    """The first and the last line of a file that a cut leaves out, wholly or in part.

    `first` is the number of the text's first line.
    """
    start = first + text.count("\n", 0, cut.head)
    if cut.head < cut.tail and text[cut.head] == "\n":
        start += 1  # the line in front of the cut is whole
    note = _NOTE.search(text)
    stop = min(cut.tail, note.start()) if note else cut.tail
    mark = older_mark(text)
    if mark is not None and (lines := _LINES.search(mark[0])):
        end = int(lines[2]) + 1 + text.count("\n", mark.end(), max(stop, mark.end()))
        start = min(start, int(lines[1]))
    else:
        end = first + text.count("\n", 0, stop)
    if stop and text[stop - 1] == "\n":
        end -= 1  # the tail begins with a line
    return start, max(start, end)
