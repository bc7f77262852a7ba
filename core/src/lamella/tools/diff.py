"""Differences between two versions of a text, with line numbers for people and as a patch."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from attrs import frozen

from lamella.text.truncate import split_lines

CONTEXT_LINES = 4


@frozen(slots=True)
class Diff:
    """`numbered` shows each line with its number, `patch` is a unified diff.

    `first_changed_line` counts from 1 in the new text; None when the texts have the same lines.
    """

    numbered: str
    patch: str
    first_changed_line: int | None


@frozen(slots=True)
class _Line:
    mark: str  # blank, minus or plus
    old: int  # line numbers from 1, after which or at which the line stands
    new: int
    text: str


def diff_texts(old: str, new: str, name: str) -> Diff:
    """Compare two texts line by line. A missing line feed at the end makes no difference."""
    hunks = list(_hunks(split_lines(old), split_lines(new)))
    changed = [line.new for hunk in hunks for line in hunk if line.mark != " "]
    return Diff(_numbered(hunks), _patch(hunks, name), changed[0] if changed else None)


def _hunks(old: list[str], new: list[str]) -> Iterator[list[_Line]]:
    """Groups of changed lines with their context.

    Lines that both texts begin and end with are set aside first: the comparison is quadratic.
    """
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    lead = max(head - CONTEXT_LINES, 0)
    rest = max(tail - CONTEXT_LINES, 0)
    a, b = old[lead : len(old) - rest], new[lead : len(new) - rest]
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        lines = []
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                lines += [_Line(" ", lead + i + 1, lead + j1 + i - i1 + 1, a[i]) for i in range(i1, i2)]
            else:
                lines += [_Line("-", lead + i + 1, lead + j1 + 1, a[i]) for i in range(i1, i2)]
                lines += [_Line("+", lead + i2 + 1, lead + j + 1, b[j]) for j in range(j1, j2)]
        yield lines


def _common(a: list[str], b: list[str]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _numbered(hunks: list[list[_Line]]) -> str:
    numbers = [line.new if line.mark == "+" else line.old for hunk in hunks for line in hunk]
    width = len(str(max(numbers, default=0)))
    blocks = []
    for hunk in hunks:
        rows = (f"{x.mark}{x.new if x.mark == '+' else x.old:>{width}} {x.text}" for x in hunk)
        blocks.append("\n".join(rows))
    return f"\n {'':>{width}} ...\n".join(blocks)


def _patch(hunks: list[list[_Line]], name: str) -> str:
    if not hunks:
        return ""
    rows = [f"--- {name}", f"+++ {name}"]
    for hunk in hunks:
        old_count = sum(line.mark != "+" for line in hunk)
        new_count = sum(line.mark != "-" for line in hunk)
        # A side without lines is named by the line before it.
        old_start, new_start = hunk[0].old - (not old_count), hunk[0].new - (not new_count)
        rows.append(f"@@ -{old_start},{old_count} +{new_start},{new_count} @@")
        rows += [line.mark + line.text for line in hunk]
    return "\n".join(rows) + "\n"
