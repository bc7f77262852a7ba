"""From hits to passages to show: neighbouring hits of a file become one, up to a size. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, evolve, frozen

from lamella.text.chunk import begins_entry


@frozen(slots=True)
class Piece:
    """An indexed piece of a file. `position`: its place among all pieces; `text` is the file's
    characters from `start` to `end`; lines count from 1. `worth`: what pieces are ordered by."""

    position: int
    file: int
    start_line: int
    end_line: int
    start: int
    end: int
    text: str
    worth: float = 0.0


@frozen(slots=True)
class Passage:
    """`text` spans the lines from `start_line` to `end_line`; `positions` are those of its hits, best first."""

    file: int
    start_line: int
    end_line: int
    text: str
    positions: tuple[int, ...]


@frozen(slots=True)
class Sizes:
    """In characters: hits are joined up to `most`; a passage below `least` gets text from beside it."""

    most: int = 1200
    least: int = 400


def joined(hits: Sequence[int], pieces: Mapping[int, Piece], sizes: Sizes, count: int) -> list[Passage]:
    """At most `count` passages from hits, best first. `pieces`, by position: the hits and what is beside them.

    A hit is joined to the first passage that it touches while both together have at most `sizes.most`
    characters; one that lies within a passage says nothing new. Only then is it a passage of its own.
    """
    runs: list[_Run] = []
    for hit in (pieces[position] for position in hits):
        if any(run.absorbs(hit, sizes.most) for run in runs):
            continue
        if len(runs) < count:
            run = _Run([hit], [hit.position])
            run.grow(pieces, sizes)
            runs.append(run)
    return [run.passage() for run in runs]


@define(slots=True)
class _Run:
    """Pieces without a gap, in the order of the file; `hits` are the positions that were found."""

    pieces: list[Piece]
    hits: list[int]

    def absorbs(self, hit: Piece, most: int) -> bool:
        first, last = self.pieces[0], self.pieces[-1]
        if hit.file != first.file:
            return False
        if first.position <= hit.position <= last.position:
            self.hits.append(hit.position)
            return True
        beside = first.position - 1 <= hit.position <= last.position + 1
        if beside and self._size_with(hit) <= most:
            self._take(hit)
            self.hits.append(hit.position)
            return True
        return any(p.start_line <= hit.start_line and hit.end_line <= p.end_line for p in self.pieces)

    def grow(self, pieces: Mapping[int, Piece], sizes: Sizes) -> None:
        """Take in the better of what is beside it, while it is too short to be understood.

        Only text that goes on: separate entries stay separate.
        """
        while self.pieces[-1].end - self.pieces[0].start < sizes.least:
            first, last = self.pieces[0], self.pieces[-1]
            after, before = pieces.get(last.position + 1), pieces.get(first.position - 1)
            beside = [
                piece
                for piece, goes_on in (
                    (after, after is not None and _goes_on(last, after)),
                    (before, before is not None and _goes_on(before, first)),
                )
                if piece is not None and goes_on and self._size_with(piece) <= sizes.most
            ]
            if not beside:
                return
            self._take(max(beside, key=lambda piece: piece.worth))

    def passage(self) -> Passage:
        whole = self.pieces[0]
        for piece in self.pieces[1:]:
            whole = _append(whole, piece)
        return Passage(whole.file, whole.start_line, whole.end_line, whole.text, tuple(self.hits))

    def _size_with(self, piece: Piece) -> int:
        return max(piece.end, self.pieces[-1].end) - min(piece.start, self.pieces[0].start)

    def _take(self, piece: Piece) -> None:
        self.pieces.insert(0 if piece.position < self.pieces[0].position else len(self.pieces), piece)


def _goes_on(before: Piece, after: Piece) -> bool:
    """Whether they share a part or a line, or the second is on the next line and no entry of its own:
    the sentences of a paragraph are often too long to overlap."""
    if before.file != after.file:
        return False
    if after.start < before.end or after.start_line == before.end_line:
        return True
    return after.start_line == before.end_line + 1 and not begins_entry(after.text)


def _append(before: Piece, after: Piece) -> Piece:
    """Two pieces as one. Between them there is at most blank space, of which only the lines are kept."""
    if after.start < before.end:
        text = before.text + after.text[before.end - after.start :]
    else:
        text = before.text + "\n" * (after.start_line - before.end_line) + after.text
    return evolve(before, end=after.end, end_line=after.end_line, text=text)
