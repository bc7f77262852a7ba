"""All vectors of a table in memory, for an exact search: a product with 100,000 vectors takes milliseconds,
where reading them from disk takes hundreds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lamella.types.host import SHARED_CHATS
from lamella_memory_lancedb.arrays import Flags, Singles, largest
from lamella_memory_lancedb.store.memory import Memory, Reader, Selection, memory_of
from lamella_memory_lancedb.store.schema import VECTOR, label_of


class Snapshot:
    """One version of a table. Rows whose vector is missing are in it, and like nothing."""

    def __init__(self, version: int, rows: pa.Table) -> None:
        self.version = version
        self.label = label_of(rows.schema)
        self._matrix, self._has = _vectors(rows[VECTOR].combine_chunks(), self.label.dimensions)
        self._rows = rows.drop_columns([VECTOR]).combine_chunks()
        self._places: dict[str, int] | None = None
        self._visible: dict[Reader, Flags] = {}

    def __len__(self) -> int:
        return len(self._has)

    @property
    def unembedded(self) -> int:
        """Rows without a vector."""
        return int((~self._has).sum())

    def likeness(self, vector: Singles, reader: Reader) -> Singles:
        """The cosine of each row to a vector of unit length; minus infinity for what may not be seen or has
        no vector."""
        likeness: Singles = self._matrix @ vector
        likeness[~(self._has & self.visible(reader))] = -np.inf
        return likeness

    def nearest(self, vector: Singles, count: int, reader: Reader) -> list[tuple[Memory, float]]:
        likeness = self.likeness(vector, reader)
        return [(self.memory(place), float(likeness[place])) for place in largest(likeness, count)]

    def cosine(self, memory_id: str, vector: Singles) -> float | None:
        """The likeness of one memory; None when it has no vector."""
        place = self._place(memory_id)
        return float(self._matrix[place] @ vector) if place is not None and self._has[place] else None

    def by_id(self, memory_id: str) -> Memory | None:
        place = self._place(memory_id)
        return None if place is None else self.memory(place)

    def memory(self, place: int) -> Memory:
        row: dict[str, Any] = {name: self._rows[name][place].as_py() for name in self._rows.column_names}
        return memory_of(row)

    def visible(self, reader: Reader) -> Flags:
        """Which rows a reader may see."""
        if reader not in self._visible:
            seen = np.ones(len(self), dtype=bool)
            if reader.agents is not None:
                seen &= self._is_in("agent", sorted(reader.agents))
            if reader.session_key:
                seen &= self._is_in("session_key", [reader.session_key])
            if reader.in_public:
                seen &= self._is_in("chat", list(SHARED_CHATS))
            self._visible[reader] = seen & self._selected(reader.only)
        return self._visible[reader]

    def _selected(self, only: Selection) -> Flags:
        """Which rows somebody wants to see."""
        wanted = np.ones(len(self), dtype=bool)
        if only.categories:
            wanted &= self._is_in("category", list(only.categories))
        if only.session:
            begins = pc.starts_with(self._rows["session_id"], only.session)
            wanted &= self._is_in("session_key", [only.session]) | _flags(begins)
        if only.since:
            wanted &= _flags(pc.greater_equal(self._rows["created_at"], only.since))
        return wanted

    def _place(self, memory_id: str) -> int | None:
        if self._places is None:
            self._places = {name: place for place, name in enumerate(self._rows["id"].to_pylist())}
        return self._places.get(memory_id)

    def _is_in(self, column: str, values: list[str]) -> Flags:
        return _flags(pc.is_in(self._rows[column], value_set=pa.array(values, pa.string())))


def _flags(column: Any) -> Flags:
    """Truth values as an array; a missing one is false."""
    flags: Flags = np.asarray(column.combine_chunks().fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
    return flags


def _vectors(column: Any, dimensions: int) -> tuple[Singles, Flags]:
    """float32 (rows, dimensions) with zeros where there is none, and which rows have one."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    has = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=bool)
    values = column.values.slice(column.offset * dimensions, len(column) * dimensions)
    matrix = values.fill_null(0.0).to_numpy(zero_copy_only=False).reshape(len(column), dimensions)
    if not has.all():
        matrix = np.where(has[:, None], matrix, np.float32(0))
    return matrix.astype(np.float32, copy=False), has
