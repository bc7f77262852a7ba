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
from lamella_memory_lancedb.store.schema import VECTOR, vectors_of


class Snapshot:
    """One version of a table. Rows whose vector is missing are in it, and like nothing."""

    def __init__(self, rows: pa.Table, matrix: Singles, has: Flags) -> None:
        """`rows` are without vectors; see `vectors_of` for the others."""
        self._rows, self._matrix, self._has = rows.combine_chunks(), matrix, has
        self._places: dict[str, int] | None = None
        self._visible: dict[Reader, Flags] = {}

    @classmethod
    def of(cls, rows: pa.Table) -> Snapshot:
        return cls(rows.drop_columns([VECTOR]), *vectors_of(rows[VECTOR]))

    def extended(self, rows: pa.Table) -> Snapshot:
        """The version that has these rows more."""
        more, has = vectors_of(rows[VECTOR])
        return Snapshot(
            pa.concat_tables([self._rows, rows.drop_columns([VECTOR])]),
            np.concatenate([self._matrix, more]),
            np.concatenate([self._has, has]),
        )

    def __len__(self) -> int:
        return len(self._has)

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
