"""How to see the missing part of a shortened result: the lines that `read` shows it with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lamella.text.shorten import Cut, Tell, older_mark
from lamella.types.messages import AssistantMessage, Message, ToolCall, ToolResultMessage

_LINES = re.compile(r": lines (\d+)-(\d+);")
# What `read` says behind the lines that it shows; no mark of ours.
_NOTE = re.compile(r"\n\n\[(?!\.\.\. \d)[^\n]*\]\Z")


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
    if not text[cut.head : _end(text, cut)].strip("\n"):
        return ""  # nothing of the file is missing
    start, end = missing_lines(text, cut, first)
    return f": lines {start}-{end}; read with offset={start} and limit={end - start + 1} shows them"


def missing_lines(text: str, cut: Cut, first: int) -> tuple[int, int]:
    """The first and the last line of a file that a cut leaves out, wholly or in part.

    `first` is the number of the text's first line.
    """
    start = first + text.count("\n", 0, cut.head)
    if text[cut.head] == "\n" and text[cut.head - 1 : cut.head] not in ("", "\n"):
        start += 1  # the line in front of the cut is whole
    mark = older_mark(text)
    older = _LINES.search(mark[0]) if mark else None
    if mark is None or older is None:
        return start, max(start, _last_line(text, 0, _end(text, cut), first))
    start = min(start, int(older[1]))
    if mark.end() == len(text):
        return start, int(older[2])
    # Whether what follows the older mark began with a whole line is not known: one line more then.
    return start, _last_line(text, mark.end(), max(_end(text, cut), mark.end()), int(older[2]) + 1)


def _end(text: str, cut: Cut) -> int:
    """Where the missing part of a file ends: before what `read` itself says behind the lines."""
    note = _NOTE.search(text)
    return min(cut.tail, note.start()) if note else cut.tail


def _last_line(text: str, begin: int, end: int, first: int) -> int:
    """The number of the last line in `text[begin:end]`, whose first is `first`."""
    number = first + text.count("\n", begin, end)
    return number - 1 if text[end - 1 : end] == "\n" else number
