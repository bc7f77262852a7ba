"""What of a passage is shown: the part with the words that were looked for, with its own lines."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lamella.text.files import split_lines
from lamella.text.segment import fold

_MARK = "…"


@frozen(slots=True)
class Snippet:
    """Whole lines joined by `\\n`, or a part of one long line; lines count from 1."""

    text: str
    start_line: int
    end_line: int


def make_snippet(text: str, start_line: int, words: Sequence[str], limit: int) -> Snippet:
    """At most `limit` characters of a passage that begins at `start_line`, around the given words."""
    lines = split_lines(text)
    if not lines:
        return Snippet("", start_line, start_line)
    first, last = 0, len(lines) - 1
    if len(text) > limit:
        first, last = _window(lines, [_hits(line, words) for line in lines], limit)
    shown = "\n".join(lines[first : last + 1])
    if len(shown) > limit:
        shown = _part(shown, words, limit)
    return Snippet(shown, start_line + first, start_line + last)


def _hits(line: str, words: Sequence[str]) -> int:
    folded = fold(line)
    return sum(word in folded for word in words)


def _window(lines: Sequence[str], hits: Sequence[int], limit: int) -> tuple[int, int]:
    """First and last index of the run of lines within `limit` characters that has the most hits."""
    best, best_hits = (0, 0), -1
    start, size, found = 0, 0, 0
    for end, line in enumerate(lines):
        size += len(line) + 1
        found += hits[end]
        while size - 1 > limit and start < end:
            size -= len(lines[start]) + 1
            found -= hits[start]
            start += 1
        if found > best_hits or (found == best_hits and start == best[0]):
            best, best_hits = (start, end), found
    return best


def _part(line: str, words: Sequence[str], limit: int) -> str:
    """`limit` characters of one line, with the first word that occurs in it near the beginning."""
    folded = fold(line)
    places = [place for word in words if (place := folded.find(word)) >= 0]
    # Folding may change lengths a little; the place is only where the part is cut.
    start = max(min(places, default=0) - limit // 4, 0)
    start = min(start, len(line) - limit)
    part = line[start : start + limit]
    before = _MARK if start > 0 else ""
    after = _MARK if start + limit < len(line) else ""
    return before + part[len(before) : len(part) - len(after)] + after
