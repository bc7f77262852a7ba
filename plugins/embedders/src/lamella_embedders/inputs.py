"""Texts made fit for a request: cleaned, cut to the model's limit, packed into batches. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from lamella.text.unicode import well_formed

# A text of more pieces is no passage any more; what follows is left out.
MOST_PIECES = 16
# A cut moves back to white space if that costs no more than this share of the piece.
_SLACK = 4


@frozen(slots=True)
class Piece:
    """A part of text number `owner`. `size` in UTF-8 bytes, which are never fewer than tokens."""

    owner: int
    text: str
    size: int


def clean(text: str) -> str:
    """The text without what requests or engines choke on: lone surrogates and NUL; outer blanks go."""
    return well_formed(text).replace("\0", " ").strip()


def pieces_of(texts: Sequence[str], limit: int) -> list[Piece]:
    """Pieces of at most `limit` bytes, in order; none for a blank text, `MOST_PIECES` at most."""
    found: list[Piece] = []
    for owner, text in enumerate(texts):
        for count, part in enumerate(split(clean(text), limit)):
            if count == MOST_PIECES:
                break
            found.append(Piece(owner, part, len(part.encode())))
    return found


def split(text: str, limit: int) -> Iterator[str]:
    """Parts of at most `limit` (4 or more) bytes, cut between characters, at white space if it is near."""
    data = text.encode()
    start = 0
    while start < len(data):
        end = _cut(data, start, start + limit)
        part = data[start:end].decode().strip()
        if part:
            yield part
        start = end


def _cut(data: bytes, start: int, end: int) -> int:
    if end >= len(data):
        return len(data)
    while data[end] & 0xC0 == 0x80:  # within a character
        end -= 1
    blank = max(data.rfind(b" ", start, end), data.rfind(b"\n", start, end))
    return blank + 1 if blank >= end - (end - start) // _SLACK else end


def batches(pieces: Sequence[Piece], *, most_items: int, most_bytes: int) -> list[list[Piece]]:
    """The pieces in order, in groups within both limits; a piece above `most_bytes` goes alone."""
    groups: list[list[Piece]] = []
    size = 0
    for piece in pieces:
        if not groups or len(groups[-1]) >= most_items or size + piece.size > most_bytes:
            groups.append([])
            size = 0
        groups[-1].append(piece)
        size += piece.size
    return groups
