"""Regular expressions from a model, refused when they could run for ever.

Python's engine tries alternatives one after the other and cannot be interrupted. A repetition of
something that itself repeats or branches, such as `(a+)+`, may take time beyond all bounds on a
single line, so it is not run at all.
"""

from __future__ import annotations

import re

from lamella.errors import ToolError

# What follows a repeated item: `*`, `+`, `{2,}` and `{3,40}` repeat, `?` does not.
_REPEAT = re.compile(r"\*|\+|\{\d*,\d*\}|\{\d{2,}\}")
_OPENING = re.compile(r"\((?:\?(?:P<\w+>|[aiLmsux-]*:|[=!]|<[=!]|>))?")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


def search_pattern(source: str, *, literal: bool, ignore_case: bool) -> re.Pattern[str]:
    """The compiled pattern. Raises `ToolError` when it is malformed or could run for ever."""
    if not literal and has_nested_repetition(source):
        raise ToolError(
            f"The pattern {source!r} repeats a group that itself repeats or branches, which can take for ever. "
            "Write it without the outer repetition, or set literal to true."
        )
    try:
        return re.compile(re.escape(source) if literal else source, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            f"The pattern {source!r} is not a regular expression: {error}. For plain text set literal to true."
        ) from error


def has_nested_repetition(source: str) -> bool:
    """Whether an unbounded repetition encloses another one, or a choice."""
    variable = [False]  # for each open group: whether it repeats or branches inside
    i = 0
    while i < len(source):
        char = source[i]
        if char == "\\":
            i += 2
        elif char == "[":
            found = _CLASS.match(source, i)
            i = found.end() if found else i + 1
        elif char == "(":
            opening = _OPENING.match(source, i)
            i = opening.end() if opening else i + 1
            variable.append(False)
        elif char == ")" and len(variable) > 1:
            inside = variable.pop()
            if inside and _REPEAT.match(source, i + 1):
                return True
            variable[-1] = variable[-1] or inside
            i += 1
        else:
            repeat = _REPEAT.match(source, i)
            variable[-1] = variable[-1] or char == "|" or repeat is not None
            i = repeat.end() if repeat else i + 1
    return False
