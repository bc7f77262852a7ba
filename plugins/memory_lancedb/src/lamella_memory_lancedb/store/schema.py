"""Columns of the tables, and what a table says of itself. numpy and pyarrow are loaded when this module is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from lamella.errors import MemoryUnavailable
from lamella_memory_lancedb.store.memory import Memory, Tombstone

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Flags, Singles

VERSION = 1
VECTOR = "vector"
# A tombstone's vector, as bytes: LanceDB gives all lists of a column one length, and embedders change.
NUMBERS = "numbers"
_FLOATS = np.dtype("<f4")
_VERSION, _EMBEDDER = b"lamella.schema", b"lamella.embedder"

_COLUMNS: tuple[tuple[str, Any], ...] = (
    ("id", pa.string()),
    ("text", pa.string()),
    ("hash", pa.string()),
    ("importance", pa.float64()),
    ("category", pa.string()),
    ("created_at", pa.int64()),
    ("updated_at", pa.int64()),
    ("agent", pa.string()),
    ("session_key", pa.string()),
    ("session_id", pa.string()),
    ("entry_id", pa.string()),
    ("source", pa.string()),
    ("chat", pa.string()),
)
LIGHT = tuple(name for name, _kind in _COLUMNS)


@frozen(slots=True)
class Label:
    """What a table says of itself: version of its columns, identity of its vectors' embedder (empty: it has
    none yet), and their length."""

    version: int
    identity: str
    dimensions: int

    def fitting(self, vector: Singles | None, identity: str) -> Singles | None:
        """A vector that may stand beside those of the table; None for one of another embedder or length."""
        if vector is None or identity != self.identity or len(vector) != self.dimensions:
            return None
        return vector


def memories_schema(identity: str, dimensions: int) -> pa.Schema:
    vector = pa.field(VECTOR, pa.list_(pa.float32(), dimensions))
    fields = [pa.field(name, kind) for name, kind in _COLUMNS]
    return pa.schema([*fields, vector], metadata=_metadata(identity))


def forgotten_schema() -> pa.Schema:
    fields = [
        ("hash", pa.string()),
        ("agent", pa.string()),
        ("session_key", pa.string()),
        ("forgotten_at", pa.int64()),
        ("identity", pa.string()),
        (NUMBERS, pa.binary()),
    ]
    return pa.schema(fields, metadata=_metadata(""))


def label_of(schema: pa.Schema) -> Label:
    """Version 0 is a table that says nothing, such as one of OpenClaw. Raises `MemoryUnavailable` for a
    version that this program does not know."""
    metadata = schema.metadata or {}
    written = metadata.get(_VERSION, b"0").decode("ascii", "replace")
    version = int(written) if written.isdecimal() else VERSION + 1
    if version > VERSION:
        raise MemoryUnavailable(
            f"the table of memories has version {written}, this program knows versions up to {VERSION}",
            hint="Upgrade lamella-memory-lancedb.",
        )
    place = schema.get_field_index(VECTOR)
    dimensions = getattr(schema.field(place).type, "list_size", 0) if place >= 0 else 0
    return Label(version, metadata.get(_EMBEDDER, b"").decode(), dimensions)


def memory_rows(memories: Sequence[Memory], vectors: Sequence[Singles | None], schema: pa.Schema) -> pa.Table:
    """Rows of the table; a memory without a vector has null there."""
    columns = [pa.array([getattr(m, name) for m in memories], kind) for name, kind in _COLUMNS]
    return pa.Table.from_arrays([*columns, vector_column(vectors, schema)], schema=schema)


def vector_column(vectors: Sequence[Singles | None], schema: pa.Schema) -> pa.Array:
    dimensions = schema.field(VECTOR).type.list_size
    matrix = np.zeros((len(vectors), dimensions), dtype=np.float32)
    missing = np.ones(len(vectors), dtype=bool)
    for place, vector in enumerate(vectors):
        if vector is not None:
            matrix[place], missing[place] = vector, False
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), dimensions, mask=pa.array(missing))


def vectors_of(column: pa.ChunkedArray) -> tuple[Singles, Flags]:
    """float32 (rows, dimensions) with zeros where there is none, and which rows have one."""
    dimensions = column.type.list_size
    matrix = np.zeros((len(column), dimensions), dtype=np.float32)
    has = np.zeros(len(column), dtype=bool)
    place = 0
    for chunk in column.chunks:  # one by one: together they would be in memory twice
        rows = slice(place, place + len(chunk))
        has[rows] = chunk.is_valid().to_numpy(zero_copy_only=False)
        values = chunk.values.slice(chunk.offset * dimensions, len(chunk) * dimensions)
        values = values.fill_null(0.0) if values.null_count else values
        matrix[rows] = values.to_numpy(zero_copy_only=False).reshape(len(chunk), dimensions)
        place = rows.stop
    matrix[~has] = 0
    return matrix, has


def tombstone_rows(tombstones: Sequence[Tombstone]) -> pa.Table:
    rows = [
        {
            "hash": stone.hash,
            "agent": stone.agent,
            "session_key": stone.session_key,
            "forgotten_at": stone.forgotten_at,
            "identity": stone.identity,
            NUMBERS: None if stone.vector is None else np.asarray(stone.vector, _FLOATS).tobytes(),
        }
        for stone in tombstones
    ]
    return pa.Table.from_pylist(rows, schema=forgotten_schema())


def tombstones_of(rows: pa.Table) -> list[Tombstone]:
    found = []
    for row in rows.to_pylist():
        numbers = row.pop(NUMBERS)
        vector = None if numbers is None else np.frombuffer(numbers, _FLOATS)
        found.append(Tombstone(**row, vector=vector))
    return found


def _metadata(identity: str) -> dict[bytes, bytes]:
    return {_VERSION: str(VERSION).encode(), _EMBEDDER: identity.encode()}
