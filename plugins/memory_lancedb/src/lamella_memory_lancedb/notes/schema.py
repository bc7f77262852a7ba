"""Columns of the table of passages, and what it says of itself. pyarrow is loaded when this module is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from attrs import frozen

from lamella.text.segment import search_text
from lamella_memory_lancedb.notes.passages import Passage
from lamella_memory_lancedb.store.schema import VECTOR, vector_column

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles

WORDS = "words"
_FORMAT, _EMBEDDER = b"lamella.notes", b"lamella.embedder"
_COLUMNS: tuple[tuple[str, Any], ...] = (
    ("path", pa.string()),
    ("number", pa.int32()),
    ("hash", pa.string()),
    ("source", pa.string()),
    ("start_line", pa.int32()),
    ("end_line", pa.int32()),
    ("start", pa.int32()),
    ("end", pa.int32()),
    ("text", pa.string()),
    ("stamp", pa.string()),
)
LIGHT = tuple(name for name, _kind in _COLUMNS)


@frozen(slots=True)
class Label:
    """What the table says of itself: for what it was made and how (`format`), the identity of its vectors'
    embedder (empty: there are none), and their length."""

    format: str
    identity: str = ""
    dimensions: int = 1


def label_of(schema: pa.Schema) -> Label:
    """What a table with this schema says of itself."""
    metadata = schema.metadata or {}
    place = schema.get_field_index(VECTOR)
    dimensions = getattr(schema.field(place).type, "list_size", 0) if place >= 0 else 0
    return Label(metadata.get(_FORMAT, b"").decode(), metadata.get(_EMBEDDER, b"").decode(), dimensions)


def arrow_of(passages: Sequence[Passage], vectors: Mapping[str, Singles], label: Label) -> pa.Table:
    """Rows of the table; `vectors` by the texts' hashes, null where there is none."""
    fields = [pa.field(name, kind) for name, kind in (*_COLUMNS, (WORDS, pa.string()))]
    metadata = {_FORMAT: label.format.encode(), _EMBEDDER: label.identity.encode()}
    schema = pa.schema([*fields, pa.field(VECTOR, pa.list_(pa.float32(), label.dimensions))], metadata=metadata)
    columns = [pa.array([getattr(p, name) for p in passages], kind) for name, kind in _COLUMNS]
    words = pa.array([search_text(p.text) for p in passages], pa.string())
    column = vector_column([vectors.get(p.hash) if p.number else None for p in passages], schema)
    return pa.Table.from_arrays([*columns, words, column], schema=schema)
