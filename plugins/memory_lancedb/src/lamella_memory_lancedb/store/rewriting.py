"""Rows of a table in another form: with other vectors, or from another version. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lamella.errors import MemoryUnavailable
from lamella_memory_lancedb.store.database import MEMORIES
from lamella_memory_lancedb.store.memory import Memory, is_id, new_id, text_hash
from lamella_memory_lancedb.store.schema import (
    LIGHT,
    VECTOR,
    label_of,
    memories_schema,
    memory_rows,
    vector_column,
    vectors_of,
)

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles


def rewritten(
    old: pa.Table | None,
    identity: str,
    vectors: Mapping[str, Singles],
    more: Sequence[Memory] = (),
    without: Sequence[str] = (),
) -> pa.Table:
    """The rows, `without` those of these ids and with `more`, and with the vectors that are given, by id; others
    keep theirs when the identity stays."""
    if old is not None and without:
        old = old.filter(pc.invert(pc.is_in(old["id"], value_set=pa.array(without, pa.string()))))
    old_identity, dimensions = "", 1
    if old is not None:
        label = label_of(old.schema)
        old_identity, dimensions = label.identity, label.dimensions
    kept = old_identity == identity
    if vectors:
        dimensions = len(next(iter(vectors.values())))
    schema = memories_schema(identity, dimensions)
    parts = [] if old is None else [_with_vectors(old, schema, vectors, kept)]
    if more:
        parts.append(memory_rows(more, [vectors.get(m.id) for m in more], schema))
    return _without_empty_parts(pa.concat_tables(parts)) if parts else memory_rows((), (), schema)


def from_openclaw(old: pa.Table, agent: str) -> pa.Table:
    """The rows of a table as OpenClaw's plugin of this name writes it: ids and times stay; its vectors go,
    since it does not say whose they are. Raises `MemoryUnavailable` for a table of anything else."""
    lacking = [name for name, fits in _OPENCLAW.items() if not _has(old.schema, name, fits)]
    if lacking:
        raise MemoryUnavailable(
            f"there is a table {MEMORIES} that is not of memories: it lacks {', '.join(lacking)}",
            hint="Choose another folder for plugins.config.memory-lancedb.uri.",
        )
    memories = []
    for row in old.to_pylist():
        text = str(row["text"] or "")
        if row["id"] == "__schema__" or not text.strip():
            continue
        created = int(row["createdAt"] or 0)
        memories.append(
            Memory(
                str(row["id"]) if is_id(str(row["id"])) else new_id(),
                text,
                text_hash(text),
                float(row["importance"] or 0.7),
                str(row.get("category") or "other"),
                created,
                created,
                agent=str(row.get("agentId") or agent),
                source="openclaw",
            )
        )
    return memory_rows(memories, [None] * len(memories), memories_schema("", 1))


def _has(schema: pa.Schema, name: str, fits: Callable[[pa.DataType], bool]) -> bool:
    return name in schema.names and fits(schema.field(name).type)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


# The columns that tell a table of OpenClaw.
_OPENCLAW: dict[str, Callable[[pa.DataType], bool]] = {
    "id": pa.types.is_string,
    "text": pa.types.is_string,
    "importance": _is_number,
    "createdAt": _is_number,
}


def pruned(older: pa.Table, memories: pa.Table) -> pa.Table:
    """The rows of a table of an older version whose texts are among the memories, and those without a text."""
    known = set(memories["hash"].to_pylist())
    texts = older["text"].to_pylist()
    left = pa.array([not text or text_hash(str(text)) in known for text in texts], pa.bool_())
    return _without_empty_parts(older.filter(left))


def _without_empty_parts(rows: pa.Table) -> pa.Table:
    """The same rows: LanceDB takes an empty first part for the whole."""
    return pa.Table.from_batches([part for part in rows.to_batches() if part.num_rows], rows.schema)


def _with_vectors(old: pa.Table, schema: pa.Schema, vectors: Mapping[str, Singles], kept: bool) -> pa.Table:
    column = old[VECTOR]
    if vectors or not kept:
        before, has = vectors_of(column)
        new = [
            vectors[name] if name in vectors else before[place] if kept and has[place] else None
            for place, name in enumerate(old["id"].to_pylist())
        ]
        column = vector_column(new, schema)
    light = [old[name] for name in LIGHT]
    return pa.Table.from_arrays([*light, column], schema=schema)
