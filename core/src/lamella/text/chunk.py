"""Cutting a text into chunks of whole lines that fit a budget and overlap a little.

Sizes are in estimated tokens: a character of an unspaced script or outside the basic plane counts
one, four others count one. Every chunk is an exact slice of the text and never above the budget; a
line that is too long for one chunk is cut, at a blank if there is one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise

from attrs import frozen

_HEAVY = (
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00010000-\U0010ffff]"
)
_ENTRY = re.compile(r"#{1,6}\s|[-*+]\s|\d{1,9}[.)]\s")
_UNITS_PER_TOKEN = 4

# Changes whenever the same text would give other chunks: an index made before is out of date then.
IDENTITY = "lines-2"


@frozen(slots=True)
class Chunk:
    """`text` is `source[start:end]`; lines count from 1, both ends included."""

    text: str
    start_line: int
    end_line: int
    start: int
    end: int


@frozen(slots=True)
class _Pieces:
    """A text's lines, and parts of those that are too long for one chunk, line ends included.

    Piece i is in line `lines[i]`, and is `source[offsets[i]:offsets[i + 1]]`; `units[i]` are the quarters of
    a token before it, so both have one number more than there are pieces.
    """

    source: str
    lines: Sequence[int]
    offsets: Sequence[int]
    units: Sequence[int]

    def __len__(self) -> int:
        return len(self.lines)

    def is_blank(self, i: int) -> bool:
        return not self.source[self.offsets[i] : self.offsets[i + 1]].strip()

    def begins_entry(self, i: int) -> bool:
        in_line = i > 0 and self.lines[i - 1] == self.lines[i]
        return not in_line and _ENTRY.match(self.source, self.offsets[i], self.offsets[i + 1]) is not None


def begins_entry(text: str) -> bool:
    """Whether a text begins with a heading or a list item that is not indented."""
    return _ENTRY.match(text) is not None


def token_estimate(text: str) -> float:
    """Estimated tokens of a text, as the chunker counts them."""
    return _units(text) / _UNITS_PER_TOKEN


def chunk_text(source: str, *, size: int = 128, overlap: int = 32, by_entry: bool = False) -> list[Chunk]:
    """Chunks of at most `size` tokens, in order; lines that are only blank space belong to none.

    `overlap` is about how much of a chunk's end the next one repeats, in whole lines. `by_entry`
    starts a chunk, without overlap, at every heading and every list item that is not indented: for
    files of separate facts. Raises `ValueError` for a size below 8 or a negative overlap.
    """
    if size < 8 or overlap < 0:
        raise ValueError(f"expected size >= 8 and overlap >= 0, found {size} and {overlap}")
    budget, carried = size * _UNITS_PER_TOKEN, overlap * _UNITS_PER_TOKEN
    pieces = _pieces(source, budget)
    chunks: list[Chunk] = []
    for first, end in _groups(pieces, budget, carried, by_entry):
        chunk = _chunk(pieces, first, end)
        # Blank lines fill a budget and belong to no chunk, so that one may lie within its neighbour.
        if chunk is None or (chunks and chunk.end <= chunks[-1].end):
            continue
        if chunks and chunk.start <= chunks[-1].start:
            chunks.pop()
        chunks.append(chunk)
    return chunks


@cache
def _heavy() -> re.Pattern[str]:
    return re.compile(_HEAVY + "+")  # takes milliseconds, which ASCII texts need not pay


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text) + (_UNITS_PER_TOKEN - 1) * len("".join(_heavy().findall(text)))


def _pieces(source: str, budget: int) -> _Pieces:
    lines = source.split("\n")
    last = lines.pop()
    lengths = [len(line) + 1 for line in lines]
    if last:
        lines.append(last)
        lengths.append(len(last))
    units = lengths
    if not source.isascii():
        units = [length + _units(line) - len(line) for line, length in zip(lines, lengths, strict=True)]
    numbers: Sequence[int] = range(1, len(units) + 1)
    if max(units, default=0) > budget:
        numbers, lengths, units = _with_cuts(source, lengths, units, budget)
    return _Pieces(source, numbers, list(accumulate(lengths, initial=0)), list(accumulate(units, initial=0)))


def _with_cuts(
    source: str, lengths: Sequence[int], units: Sequence[int], budget: int
) -> tuple[list[int], list[int], list[int]]:
    """Line numbers, lengths and units of pieces, from the lengths and units of lines."""
    pieces: list[tuple[int, int, int]] = []
    end = 0
    for number, (length, weight) in enumerate(zip(lengths, units, strict=True), 1):
        start, end = end, end + length
        if weight <= budget:
            pieces.append((number, length, weight))
        else:
            pieces += [(number, len(part), _units(part)) for part in _cut_line(source[start:end], budget)]
    numbers, part_lengths, part_units = zip(*pieces, strict=True)
    return list(numbers), list(part_lengths), list(part_units)


def _cut_line(line: str, budget: int) -> Iterator[str]:
    start = 0
    while start < len(line):
        end = _cut_at(line, start, budget)
        yield line[start:end]
        start = end


def _cut_at(line: str, start: int, budget: int) -> int:
    """Where a piece that begins at `start` ends: after the last blank of its last third, if any."""
    end = _fit(line, start, budget)
    if end >= len(line):
        return end
    blank = max(line.rfind(" ", start, end), line.rfind("\u3002", start, end), line.rfind("\uff0c", start, end))
    if blank >= start + (end - start) * 2 // 3:
        return blank + 1
    return end - 1 if line.startswith("\r\n", end - 1) and end - 1 > start else end


def _fit(line: str, start: int, budget: int) -> int:
    """The furthest end of a slice from `start` that is within the budget."""
    end = min(len(line), start + budget)
    while (excess := _units(line[start:end]) - budget) > 0:
        end -= max(1, excess // _UNITS_PER_TOKEN)
    return end


def _groups(pieces: _Pieces, budget: int, overlap: int, by_entry: bool) -> Iterator[tuple[int, int]]:
    """What belongs to one chunk each: the first piece, and the one after the last."""
    begins = [i for i in range(1, len(pieces)) if pieces.begins_entry(i)] if by_entry else []
    for first, end in pairwise((0, *begins, len(pieces))):
        yield from _pack(pieces.units, first, end, budget, overlap)


def _pack(units: Sequence[int], first: int, stop: int, budget: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Groups of the pieces from `first` to before `stop`, as many as fit."""
    end = first
    while end < stop:
        end = bisect_right(units, units[first] + budget, end + 1, stop + 1) - 1
        yield first, end
        if end < stop:
            first = _carry(units, first, end, overlap, budget)


def _carry(units: Sequence[int], first: int, end: int, wanted: int, budget: int) -> int:
    """Where the group after `first` to `end` begins: so that it repeats `wanted` units, but never more than
    there is room for before the piece at `end`."""
    begin = end
    while begin - 1 > first and units[end] - units[begin] < wanted and units[end + 1] - units[begin - 1] <= budget:
        begin -= 1
    return begin


def _chunk(pieces: _Pieces, first: int, end: int) -> Chunk | None:
    """Pieces as one chunk, without blank lines at its ends; None when nothing else is in them."""
    last = end - 1
    while first <= last and pieces.is_blank(first):
        first += 1
    while first < last and pieces.is_blank(last):
        last -= 1
    if first > last:
        return None
    source, begin, stop = pieces.source, pieces.offsets[first], pieces.offsets[last + 1]
    if source.endswith("\n", begin, stop):
        stop -= 2 if source.endswith("\r\n", begin, stop) else 1
    return Chunk(source[begin:stop], pieces.lines[first], pieces.lines[last], begin, stop)
