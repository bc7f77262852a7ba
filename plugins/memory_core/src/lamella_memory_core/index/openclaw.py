"""Passages as OpenClaw 2026.3.13 cuts them: whole lines up to a number of characters, whatever they say.

Kept to compare with it. Characters are UTF-16 units, so that a Chinese character counts as little as a
Latin one. What is carried over may be a whole long piece, so that a passage can have twice the size.

Two things differ: no character is cut in half, and a passage is always a slice of its file, where
OpenClaw puts line ends between the parts of one long line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from lamella.text.chunk import Chunk
from lamella.text.javascript import cut_utf16, utf16_length

_CHARS_PER_TOKEN = 4
_LEAST_CHARS = 32


@frozen(slots=True)
class _Piece:
    """A line without its end, or a part of a long one. `cost`: UTF-16 units, the line end included."""

    start: int
    end: int
    line: int
    cost: int


def openclaw_chunks(source: str, *, size: int = 400, overlap: int = 80) -> list[Chunk]:
    """Chunks of about `size` tokens of four characters; about `overlap` of them are repeated. Passages
    of blank space are left out. An empty last line counts as a line."""
    most = max(_LEAST_CHARS, size * _CHARS_PER_TOKEN)
    carried = min(overlap, size - 1) * _CHARS_PER_TOKEN
    groups = _packed(_pieces(source, most), most, carried)
    chunks = (Chunk(source[g[0].start : g[-1].end], g[0].line, g[-1].line, g[0].start, g[-1].end) for g in groups)
    return [chunk for chunk in chunks if chunk.text.strip()]


def _pieces(source: str, most: int) -> Iterator[_Piece]:
    start = 0
    for number, line in enumerate(source.split("\n"), 1):
        for part in _parts(line, most):
            yield _Piece(start, start + len(part), number, utf16_length(part) + 1)
            start += len(part)
        start += 1


def _parts(line: str, most: int) -> Iterator[str]:
    """A line in parts of at most `most` UTF-16 units; an empty line is one part."""
    start = 0
    while start < len(line):
        part = cut_utf16(line[start : start + most], most)
        yield part
        start += len(part)
    if not line:
        yield line


def _packed(pieces: Iterator[_Piece], most: int, overlap: int) -> Iterator[list[_Piece]]:
    current: list[_Piece] = []
    total = 0
    for piece in pieces:
        if current and total + piece.cost > most:
            yield current
            current = _carried(current, overlap)
            total = sum(p.cost for p in current)
        current.append(piece)
        total += piece.cost
    if current:
        yield current


def _carried(pieces: Sequence[_Piece], wanted: int) -> list[_Piece]:
    """The last pieces, until they have what is wanted: at least one, unless nothing is wanted."""
    kept: list[_Piece] = []
    for piece in reversed(pieces):
        if sum(p.cost for p in kept) >= wanted:
            break
        kept.insert(0, piece)
    return kept
