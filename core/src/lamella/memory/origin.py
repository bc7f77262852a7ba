"""Which write a line of a memory file comes from, told by what it says and what stands around it.

Pure. Line numbers are not trusted: other writes, editors and reordering move lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from lamella.memory.hunks import CONTEXT, Hunk, agreement
from lamella.memory.journal import JournalEntry


@frozen(slots=True)
class Origin:
    """The write that a line comes from, and the line's number in the file as it was after that write."""

    entry: JournalEntry
    line: int


def origin_of(
    entries: Iterable[JournalEntry], workspace: str, path: str, lines: Sequence[str], number: int
) -> Origin | None:
    """Where line `number` (from 1) of `lines`, as the journal would keep them, comes from; None: by hand.

    Of several writes of the same line those in this workspace (a real path, which may have been another
    then) come first, then the one that had most of the same lines around it, then the latest. A line without
    words is told by its neighbours alone. What a write only moved, or an undo put back, comes from a write
    before it.
    """
    text = lines[number - 1]
    best: tuple[tuple[bool, int], Origin] | None = None
    for entry in entries:
        if entry.path != path or entry.mode == "undo":
            continue
        for hunk, index in _written(entry, text):
            known = _known_around(hunk, index, lines, number - 1)
            rank = entry.workspace == workspace, known
            if (known or text.strip()) and (best is None or rank >= best[0]):
                best = rank, Origin(entry, hunk.line + index)
    return best[1] if best else None


def _written(entry: JournalEntry, text: str) -> Iterator[tuple[Hunk, int]]:
    """Where a write put a line that it did not take from elsewhere in the file."""
    if any(text in hunk.removed.lines for hunk in entry.hunks):
        return
    for hunk in entry.hunks:
        yield from ((hunk, index) for index, added in enumerate(hunk.added.lines) if added == text)


def _known_around(hunk: Hunk, index: int, lines: Sequence[str], place: int) -> int:
    """How many lines with words around a line are those that a write had around its line `index`."""
    added = hunk.added.lines
    above = (*reversed(added[max(index - CONTEXT, 0) : index]), *reversed(hunk.above))
    return agreement(above, (*added[index + 1 : index + 1 + CONTEXT], *hunk.below), lines, place, place + 1).words
