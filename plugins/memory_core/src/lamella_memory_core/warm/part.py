"""A part of the index in memory: the passages of some files, and the words in them."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from lamella_memory_core.lexical.postings import Postings, build_postings
from lamella_memory_core.lexical.stems import Stems

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Numbers

_ROWS = (
    "SELECT chunks.id, file_id, body, name FROM chunks JOIN chunks_fts ON chunks_fts.rowid = chunks.id"
    " {where} ORDER BY chunks.id"
)


@frozen(slots=True, eq=False)
class Part:
    """n passages of m whole files, in the order of their ids; the passages of a file follow each other.

    `ids` (n,); `files` (m,): ids of the files; `firsts` (m,): the row of a file's first passage.
    """

    ids: Numbers = field(repr=False)
    files: Numbers = field(repr=False)
    firsts: Numbers = field(repr=False)
    postings: Postings = field(repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def first_rows(self, files: Numbers) -> Numbers:
        """The first row of each of these files; all must be in this part."""
        import numpy as np

        order = np.argsort(self.files)
        first: Numbers = self.firsts[order[np.searchsorted(self.files, files, sorter=order)]]
        return first

    def rows(self, ids: Numbers) -> Numbers:
        """The rows of passages; -1 for those of other parts."""
        import numpy as np

        row = np.minimum(np.searchsorted(self.ids, ids), max(len(self) - 1, 0))
        return np.where(self.ids[row] == ids, row, -1) if len(self) else np.full(len(ids), -1)

    def arrays(self) -> dict[str, Any]:
        return {"ids": self.ids, "files": self.files, "firsts": self.firsts, **self.postings.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Part:
        return cls(arrays["ids"], arrays["files"], arrays["firsts"], Postings.from_arrays(arrays))


def load_part(connection: sqlite3.Connection, stems: Stems, files: Collection[int] | None = None) -> Part:
    """Read the passages of these files, which must be in the order of their passages' ids, or of all."""
    import numpy as np

    ids, owners = array("q"), array("q")

    def texts() -> Iterator[tuple[str, str]]:
        for number, owner, body, name in _rows(connection, files):
            ids.append(number)
            owners.append(owner)
            yield body, name

    postings = build_postings(texts(), stems)
    owner = np.array(owners, dtype=np.int64)
    firsts = np.flatnonzero(np.diff(owner, prepend=-1))
    return Part(np.array(ids, dtype=np.int64), owner[firsts], firsts, postings)


def _rows(connection: sqlite3.Connection, files: Collection[int] | None) -> Iterator[tuple[int, int, str, str]]:
    if files is None:
        yield from connection.execute(_ROWS.format(where=""))
        return
    for file in files:
        yield from connection.execute(_ROWS.format(where="WHERE file_id = ?"), (file,))
