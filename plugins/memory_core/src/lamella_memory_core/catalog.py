"""What ranking needs to know of every passage, as arrays; one passage a position.

Positions follow the names of files and the places in them, so neighbours in a file are neighbours
here, and equal indexes give equal positions.
"""

from __future__ import annotations

import sqlite3
from datetime import date
from typing import TYPE_CHECKING

from attrs import field, frozen

from lamella_memory_core.dates import day_in

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Numbers


@frozen(slots=True, eq=False)
class Catalog:
    """All N passages of F files. `stamp` tells one state of the index from another.

    `ids` (N,): the passages' ids. `file` (N,): the position of a passage's file. `paths`, `sources`
    and `days` (F): its name, source, and the day in its name. `sizes` (F,): passages of each file.
    """

    stamp: str
    ids: Numbers = field(repr=False)
    file: Numbers = field(repr=False)
    paths: tuple[str, ...] = field(repr=False)
    sources: tuple[str, ...] = field(repr=False)
    days: tuple[date | None, ...] = field(repr=False)
    sizes: Numbers = field(repr=False)
    _by_id: Numbers = field(repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def positions(self, ids: Numbers) -> Numbers:
        """Where these passages are; every id must be one of the catalog's."""
        import numpy as np

        found: Numbers = self._by_id[np.searchsorted(self.ids, ids, sorter=self._by_id)]
        return found


def read_stamp(connection: sqlite3.Connection) -> str:
    """The state of the index; another one after every change, also by another process."""
    birth, number = connection.execute("SELECT birth, number FROM generation").fetchone()
    return f"{birth}:{number}"


def load_catalog(connection: sqlite3.Connection) -> Catalog:
    """Read the catalog of the state that the connection sees."""
    import numpy as np

    files = connection.execute("SELECT id, path, source FROM files ORDER BY path").fetchall()
    number = {row[0]: position for position, row in enumerate(files)}
    rows = connection.execute("SELECT id, file_id FROM chunks ORDER BY id").fetchall()
    ids = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
    file = np.fromiter((number[row[1]] for row in rows), dtype=np.int64, count=len(rows))
    order = np.lexsort((ids, file))  # passages of a file are stored in their order
    ids, file = ids[order], file[order]
    return Catalog(
        stamp=read_stamp(connection),
        ids=ids,
        file=file,
        paths=tuple(row[1] for row in files),
        sources=tuple(row[2] for row in files),
        days=tuple(day_in(row[1]) for row in files),
        sizes=np.bincount(file, minlength=len(files)),
        by_id=np.argsort(ids),
    )
