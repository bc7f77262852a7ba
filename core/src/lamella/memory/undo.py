"""Taking one memory write back, whatever was written after it: its reverse, put in place by content.

Pure. The lines that a write added are looked for in the file as it is now, and so are the neighbours of
lines that it removed; nothing else is touched.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from attrs import frozen

from lamella.errors import MemoryConflict, UsageError
from lamella.memory.hunks import CONTEXT, Hunk, agreement, content_hash, pieces, raw_lines, shown_lines
from lamella.memory.journal import JournalEntry
from lamella.text.files import BOM, decode_text

_BY_HAND = "Nothing was changed. Edit the file by hand."
_MOST_DIFF_LINES = 60


def undone(entry: JournalEntry, data: bytes) -> bytes | None:
    """A file's content without what a write did to it; None when the write had made the file and nothing
    else is in it.

    Raises `MemoryConflict` with a diff when the lines are not there as they were written, `UsageError`
    when the write changed no line, or removed lines that the journal does not keep whole.
    """
    titles, hunks = _titles(entry), _asked_for(entry)
    if not hunks:
        raise UsageError(f"write {entry.id} changed no line of {entry.path}")
    if not all(hunk.removed.whole for hunk in hunks):
        raise UsageError(
            f"write {entry.id} removed lines of {entry.path} that the journal does not keep as they were: "
            "they hold a secret, or bytes that are not UTF-8",
            hint=_BY_HAND,
        )
    now = _File.of(data)
    replacements = []
    start = 0
    for hunk in hunks:
        place = _find(hunk, now, start)
        if place is None:
            raise _conflict(entry, hunk, now, start)
        start = place + len(hunk.added.lines)
        replacements.append((place, start, hunk.removed.lines))
    left = now.replaced(replacements)
    if (entry.created or titles) and _holds_only(left, titles):
        return None if entry.created else now.mark
    without_end = left.removesuffix(now.newline)
    return without_end if content_hash(without_end) == entry.before else left


def _asked_for(entry: JournalEntry) -> tuple[Hunk, ...]:
    return tuple(h for h in entry.hunks if h.line >= entry.start_line)


def _titles(entry: JournalEntry) -> tuple[str, ...]:
    return tuple(line for h in entry.hunks if h.line < entry.start_line for line in h.added.lines)


def _holds_only(data: bytes, titles: Iterable[str]) -> bool:
    words = [line for line in shown_lines(raw_lines(data)) if line.strip()]
    return not words or words == [line for line in titles if line.strip()]


@frozen(slots=True)
class _File:
    """A file: its byte-order mark, and its lines as they are, without line ends, and as the journal keeps them."""

    mark: bytes
    pieces: Sequence[bytes]
    raw: Sequence[bytes]
    shown: Sequence[str]
    newline: bytes

    @classmethod
    def of(cls, data: bytes) -> _File:
        raw, body = raw_lines(data), data.removeprefix(BOM)
        newline = decode_text(data).newline.encode()
        return cls(data[: len(data) - len(body)], pieces(body), raw, shown_lines(raw), newline)

    def replaced(self, replacements: Sequence[tuple[int, int, Sequence[str]]]) -> bytes:
        """The content with other lines in these ranges, which are in order."""
        out = [self.mark]
        done = 0
        for start, end, lines in replacements:
            out += self.pieces[done:start]
            if lines and out[-1] and not out[-1].endswith((b"\n", BOM)):
                out.append(self.newline)
            out += [line.encode() + self.newline for line in lines]
            done = end
        return b"".join([*out, *self.pieces[done:]])


def _find(hunk: Hunk, now: _File, start: int) -> int | None:
    """Where the added lines stand, from index `start` on; for none, where the removed ones stood.

    Of several places the one counts that has most of the neighbours, then the nearest to the old one.
    """
    added, count = list(hunk.added.lines), len(hunk.added.lines)
    found = []
    for place in range(start, len(now.shown) - count + 1):
        if count and now.shown[place] != added[0]:
            continue
        known = _known_neighbours(hunk, now.shown, place, place + count)
        if not count and known == (0, 0):
            continue  # nothing tells that it was here
        if now.shown[place : place + count] == added and hunk.added.is_same(now.raw[place : place + count]):
            found.append((known, -abs(place + 1 - hunk.line), place))
    return max(found)[-1] if found else None


def _known_neighbours(hunk: Hunk, lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """How many lines with words around `lines[start:end]` are those that the write had around it, and how
    many ends of the file are as near as they were."""
    found = agreement(reversed(hunk.above), hunk.below, lines, start, end)
    at_start = found.above == len(hunk.above) < CONTEXT and found.above == start
    at_end = found.below == len(hunk.below) < CONTEXT and end + found.below == len(lines)
    return found.words, at_start + at_end


def _conflict(entry: JournalEntry, hunk: Hunk, now: _File, start: int) -> MemoryConflict:
    written = hunk.added.lines or (*hunk.above, *hunk.below)
    first, end = _nearest(written, now.shown, max(hunk.line - 1, start))
    diff = list(difflib.unified_diff(written, now.shown[first:end], "written", "now", lineterm="", n=1))
    shown = diff[:_MOST_DIFF_LINES] or ["(only what is masked in them)"]
    if len(diff) > len(shown):
        shown.append(f"... {len(diff) - len(shown)} more lines")
    return MemoryConflict(
        f"{entry.path}: lines of write {entry.id} have changed since:\n" + "\n".join(shown), hint=_BY_HAND
    )


def _nearest(written: Sequence[str], lines: Sequence[str], expected: int) -> tuple[int, int]:
    """The range of `lines` in which most of what was written is left, or where it was expected."""
    matches = difflib.SequenceMatcher(None, written, lines).get_matching_blocks()[:-1]
    starts = [match.b - match.a for match in matches] or [min(expected, len(lines))]
    return max(min(starts), 0), min(max(starts) + len(written), len(lines))
