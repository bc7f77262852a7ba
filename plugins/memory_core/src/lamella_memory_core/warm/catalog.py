"""What ranking needs to know of every passage, as arrays; one passage a position.

Positions follow the names of files and the places in them, so neighbours in a file are neighbours
here, and equal indexes give equal positions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import field, frozen

from lamella_memory_core.ranking.dates import day_in

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Numbers

# The ids of a file's passages follow each other, see `schema.chunks`.
_FILES = """
SELECT path, source, files.id, version, coalesce(first_id, 0), coalesce(passages, 0)
FROM files LEFT JOIN (SELECT file_id, min(id) AS first_id, count(*) AS passages FROM chunks GROUP BY file_id)
ON file_id = files.id ORDER BY path
"""


@frozen(eq=False)
class Catalog:
    """All N passages of F files. `stamp` tells one state of the index from another.

    For each file: `paths`, `sources` and `days` (F): its name, source, and the day in its name;
    `file_ids`, `versions` (F,): its id, and the number of the state that it came with; `first_ids`,
    `sizes` (F,): the id of its first passage, and how many it has.
    """

    stamp: str
    paths: tuple[str, ...] = field(repr=False)
    sources: tuple[str, ...] = field(repr=False)
    days: tuple[date | None, ...] = field(repr=False)
    file_ids: Numbers = field(repr=False)
    versions: Numbers = field(repr=False)
    first_ids: Numbers = field(repr=False)
    sizes: Numbers = field(repr=False)

    def __len__(self) -> int:
        return len(self.file)

    @cached_property
    def file(self) -> Numbers:
        """(N,): the position of a passage's file."""
        import numpy as np

        return np.repeat(np.arange(len(self.paths)), self.sizes)

    @cached_property
    def years(self) -> frozenset[int]:
        """The years of the days."""
        return frozenset(day.year for day in self.days if day)

    @cached_property
    def ids(self) -> Numbers:
        """(N,): the passages' ids."""
        return self.numbered(self.first_ids)

    @cached_property
    def starts(self) -> Numbers:
        """(F,): the position of a file's first passage."""
        import numpy as np

        return np.cumsum(self.sizes) - self.sizes

    def numbered(self, firsts: Numbers) -> Numbers:
        """(N,): passages counted up within each file, from `firsts` (F,)."""
        import numpy as np

        numbers: Numbers = np.repeat(firsts - self.starts, self.sizes) + np.arange(len(self))
        return numbers

    def positions(self, ids: Numbers) -> Numbers:
        """Where these passages are; every id must be one of the catalog's."""
        import numpy as np

        order = self._by_id
        file = order[np.searchsorted(self.first_ids, ids, side="right", sorter=order) - 1]
        found: Numbers = self.starts[file] + ids - self.first_ids[file]
        return found

    @cached_property
    def _by_id(self) -> Numbers:
        """The files in the order of their passages' ids; those without passages first."""
        import numpy as np

        return np.argsort(self.first_ids, kind="stable")


def read_stamp(connection: sqlite3.Connection) -> str:
    """The state of the index; another one after every change, also by another process."""
    birth, number = connection.execute("SELECT birth, number FROM generation").fetchone()
    return f"{birth}:{number}"


def load_catalog(connection: sqlite3.Connection) -> Catalog:
    """Read the catalog of the state that the connection sees."""
    import numpy as np

    rows: Sequence[Sequence[object]] = connection.execute(_FILES).fetchall()
    paths, sources, *numbers = zip(*rows, strict=True) if rows else ((),) * 6
    file_ids, versions, first_ids, sizes = (np.array(values, dtype=np.int64) for values in numbers)
    return Catalog(
        stamp=read_stamp(connection),
        paths=paths,
        sources=sources,
        days=tuple(map(day_in, paths)),
        file_ids=file_ids,
        versions=versions,
        first_ids=first_ids,
        sizes=sizes,
    )
