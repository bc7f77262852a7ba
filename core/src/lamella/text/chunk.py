"""Cutting a text into chunks of whole lines that fit a budget and overlap a little.

Sizes are in estimated tokens: a character of an unspaced script or outside the basic plane counts
one, four others count one. Every chunk is an exact slice of the text and never above the budget; a
line that is too long for one chunk is cut, at a blank if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from attrs import frozen

_HEAVY = (
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00010000-\U0010ffff]"
)
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
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
class _Piece:
    """A line, or a part of a very long one; line end included. `units`: quarters of a token."""

    start: int
    end: int
    line: int
    units: int
    begins_entry: bool = False


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
    groups = _pack(_pieces(source, budget), budget, carried, by_entry)
    chunks: list[Chunk] = []
    for group in groups:
        chunk = _chunk(source, group)
        # Blank lines fill a budget and belong to no chunk, so that one may lie within its neighbour.
        if chunk is None or (chunks and chunk.end <= chunks[-1].end):
            continue
        if chunks and chunk.start <= chunks[-1].start:
            chunks.pop()
        chunks.append(chunk)
    return chunks


@cache
def _heavy() -> re.Pattern[str]:
    return re.compile(_HEAVY)  # takes milliseconds, which ASCII texts need not pay


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text) + (_UNITS_PER_TOKEN - 1) * len(_heavy().findall(text))


def _pieces(source: str, budget: int) -> Iterator[_Piece]:
    end = 0
    for number, line in enumerate(_LINE.findall(source), 1):
        start, end = end, end + len(line)
        units = _units(line)
        if units <= budget:
            yield _Piece(start, end, number, units, begins_entry(line))
        else:
            yield from _cut_line(line, start, number, budget)


def _cut_line(line: str, offset: int, number: int, budget: int) -> Iterator[_Piece]:
    start, first = 0, True
    while start < len(line):
        end = _cut_at(line, start, budget)
        begins = first and begins_entry(line)
        yield _Piece(offset + start, offset + end, number, _units(line[start:end]), begins)
        start, first = end, False


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


def _pack(pieces: Iterable[_Piece], budget: int, overlap: int, by_entry: bool) -> Iterator[list[_Piece]]:
    current: list[_Piece] = []
    total = 0
    for piece in pieces:
        if current and by_entry and piece.begins_entry:
            yield current
            current, total = [], 0
        elif current and total + piece.units > budget:
            yield current
            current = _carry(current, overlap, budget - piece.units)
            total = sum(p.units for p in current)
        current.append(piece)
        total += piece.units
    if current:
        yield current


def _carry(pieces: Sequence[_Piece], wanted: int, room: int) -> list[_Piece]:
    """The last pieces: enough to reach `wanted`, but never more than there is `room` for."""
    kept: list[_Piece] = []
    total = 0
    for piece in reversed(pieces[1:]):
        if total >= wanted or total + piece.units > room:
            break
        kept.insert(0, piece)
        total += piece.units
    return kept


def _chunk(source: str, pieces: Sequence[_Piece]) -> Chunk | None:
    """The pieces as one chunk, without blank lines at its ends; None when nothing else is in them."""
    written = [i for i, p in enumerate(pieces) if source[p.start : p.end].strip()]
    if not written:
        return None
    first, last = pieces[written[0]], pieces[written[-1]]
    end = last.end
    if source.endswith("\n", first.start, end):
        end -= 2 if source.endswith("\r\n", first.start, end) else 1
    return Chunk(source[first.start : end], first.line, last.line, first.start, end)
