"""Vectors of passages as matrices, and their product with a question's vector.

The second half of a vector may be empty: the static embedder leaves it so for texts without CJK
letters. Then it is neither kept nor multiplied, which saves half of the memory and of the time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Flags, Floats, Numbers, Singles

_READ_AT_ONCE = 1024
_VECTORS = (
    "SELECT chunks.id, vector FROM chunks JOIN vectors ON vectors.hash = chunks.hash"
    " WHERE embedder_id = ? AND length(vector) = ? {where}"
)


@frozen(slots=True, eq=False)
class Block:
    """Vectors of n rows, float32. `left` (n, h): the first half of each, zeros where `known` (n,) is
    False; `right` (r, d - h): the second half of those rows where it is not empty, `right_rows` (r,)."""

    left: Singles = field(repr=False)
    right: Singles = field(repr=False)
    right_rows: Numbers = field(repr=False)
    known: Flags = field(repr=False)

    def products(self, question: Singles) -> Singles:
        """(n,): each vector times `question` (d,)."""
        half = self.left.shape[1]
        values = _products(self.left, question[:half])
        if len(self.right) and question[half:].any():
            values[self.right_rows] += _products(self.right, question[half:])
        return values

    def arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("left", "right", "right_rows", "known")}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Block:
        return cls(arrays["left"], arrays["right"], arrays["right_rows"], arrays["known"])


@frozen(eq=False)
class Matrix:
    """Vectors of a catalog's N passages under one embedder. `slots` (N,): each passage's row in the
    blocks, which are counted through; None when that is its position."""

    stamp: str
    identity: str
    blocks: Sequence[Block] = field(repr=False)
    slots: Numbers | None = field(default=None, repr=False)

    @cached_property
    def known(self) -> Flags:
        """(N,): which passages have a vector."""
        known: Flags = self._by_position([block.known for block in self.blocks])
        return known

    @cached_property
    def missing(self) -> int:
        return int(len(self.known) - self.known.sum())

    def likeness(self, question: Singles) -> Floats | None:
        """(N,): cosines with a question's vector (d,); what has no vector gets what is usual. None when
        nothing has one."""
        import numpy as np

        if self.missing == len(self.known):
            return None
        products: Floats = self._by_position([block.products(question) for block in self.blocks]).astype(np.float64)
        if self.missing:
            products[~self.known] = products[self.known].mean()
        return products

    def _by_position(self, by_block: Sequence[Any]) -> Any:
        import numpy as np

        values = by_block[0] if len(by_block) == 1 else np.concatenate(by_block)
        return values if self.slots is None else values[self.slots]


def load_block(
    connection: sqlite3.Connection,
    identity: str,
    dimensions: int,
    count: int,
    rows_of: Callable[[Numbers], Numbers],
    files: Collection[int] | None = None,
) -> Block:
    """Read the vectors of these files' passages, or of all, into `count` rows. `rows_of` gives the rows
    of passages by their ids; below 0 for those that are to be left out."""
    import numpy as np

    half = dimensions // 2
    left = np.zeros((count, half), dtype=np.float32)
    known = np.zeros(count, dtype=np.bool_)
    rights, right_rows = [np.zeros((0, dimensions - half), np.float32)], [np.zeros(0, np.int64)]
    for ids, vectors in _read(connection, identity, dimensions, files):
        rows = rows_of(ids)
        vectors, rows = vectors[rows >= 0], rows[rows >= 0]
        left[rows], known[rows] = vectors[:, :half], True
        filled = vectors[:, half:].any(axis=1)
        rights.append(vectors[filled, half:])
        right_rows.append(rows[filled])
    return Block(left, np.concatenate(rights), np.concatenate(right_rows), known)


def _products(rows: Singles, vector: Singles) -> Singles:
    """(n,): each of the rows (n, d) times a vector (d,). As fast as memory is, like `@`; but that keeps
    other cores busy with waiting, for longer than the work takes."""
    import numpy as np

    values: Singles = np.einsum("ij,j->i", rows, vector)
    return values


def _read(
    connection: sqlite3.Connection, identity: str, dimensions: int, files: Collection[int] | None
) -> Iterator[tuple[Numbers, Singles]]:
    """Ids and vectors, some at once, so that the blobs are never all there beside the matrix."""
    import numpy as np

    embedder = connection.execute("SELECT id FROM embedders WHERE identity = ?", (identity,)).fetchone()
    if embedder is None:
        return
    common = (embedder[0], 4 * dimensions)
    where, choices = ("", [common]) if files is None else ("AND file_id = ?", [(*common, file) for file in files])
    for choice in choices:
        found = connection.execute(_VECTORS.format(where=where), choice)
        while some := found.fetchmany(_READ_AT_ONCE):
            vectors = np.frombuffer(b"".join(row[1] for row in some), dtype="<f4").reshape(-1, dimensions)
            yield np.array([row[0] for row in some], dtype=np.int64), vectors
