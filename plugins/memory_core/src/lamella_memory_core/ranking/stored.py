"""Pieces of files as ranking needs them, read from the index when they are asked for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lamella_memory_core.ranking.passages import Piece
from lamella_memory_core.warm.catalog import Catalog

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Floats


# As far as a short passage may grow.
BESIDE = 4


class StoredPieces(Mapping[int, Piece]):
    """Passages of a catalog by their positions: the hits, and up to `BESIDE` before and after each.

    `hits` are in order, best first; `results`: so many of them are most likely shown, and read at once with
    what is beside them. `worth` (N,): what passages are ordered by. The connection must see the catalog's
    state.
    """

    def __init__(
        self, connection: sqlite3.Connection, catalog: Catalog, worth: Floats, hits: Sequence[int], results: int
    ) -> None:
        self._connection = connection
        self._catalog = catalog
        self._worth = worth
        self._reachable = _around(hits, len(catalog))
        self._read: dict[int, Piece] = {}
        self._fetch({*hits, *_around(hits[:results], len(catalog))})

    def __getitem__(self, position: int) -> Piece:
        if position not in self._read:
            if position not in self._reachable:
                raise KeyError(position)
            self._fetch((position,))
        return self._read[position]

    def __iter__(self) -> Iterator[int]:
        return iter(self._reachable)

    def __len__(self) -> int:
        return len(self._reachable)

    def _fetch(self, positions: Iterable[int]) -> None:
        """Read several at once, which is quicker than one by one."""
        places = list(positions)
        ids, files, values = (a[places].tolist() for a in (self._catalog.ids, self._catalog.file, self._worth))
        known = {number: at for number, *at in zip(ids, places, files, values, strict=True)}
        rows = self._connection.execute(
            "SELECT id, start_line, end_line, start_char, end_char, text FROM chunks"
            f" WHERE id IN ({', '.join('?' * len(ids))})",
            ids,
        )
        for number, first, last, start, end, text in rows:
            place, file, worth = known[number]
            self._read[place] = Piece(place, file, first, last, start, end, text, worth)


def _around(positions: Iterable[int], total: int) -> set[int]:
    near = {position + step for position in positions for step in range(-BESIDE, BESIDE + 1)}
    return {position for position in near if 0 <= position < total}
