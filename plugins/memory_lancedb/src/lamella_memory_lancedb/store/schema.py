"""Columns of the tables, and what a table says of itself. pyarrow is loaded when this module is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import frozen

from lamella.errors import MemoryUnavailable
from lamella_memory_lancedb.store.memory import Memory, Tombstone

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles

MEMORIES, FORGOTTEN = "memories", "forgotten"
VERSION = 1
VECTOR = "vector"
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
        (VECTOR, pa.list_(pa.float32())),
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
    rows = [None if vector is None else vector.tolist() for vector in vectors]
    return pa.array(rows, schema.field(VECTOR).type)


def tombstone_rows(tombstones: Sequence[Tombstone]) -> pa.Table:
    rows = [
        {
            "hash": stone.hash,
            "agent": stone.agent,
            "session_key": stone.session_key,
            "forgotten_at": stone.forgotten_at,
            "identity": stone.identity,
            VECTOR: None if stone.vector is None else [float(x) for x in stone.vector],
        }
        for stone in tombstones
    ]
    return pa.Table.from_pylist(rows, schema=forgotten_schema())


def _metadata(identity: str) -> dict[bytes, bytes]:
    return {_VERSION: str(VERSION).encode(), _EMBEDDER: identity.encode()}
