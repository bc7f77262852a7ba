"""Memories in a LanceDB table: reading by reader, and writing one writer at a time."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lamella.errors import MemoryUnavailable
from lamella_memory_lancedb.config import Config
from lamella_memory_lancedb.store.database import FORGOTTEN, MEMORIES, MISSING_IS_NULL, OLDER, Database
from lamella_memory_lancedb.store.leaving import Rewriter
from lamella_memory_lancedb.store.location import Location
from lamella_memory_lancedb.store.lock import WriteLock
from lamella_memory_lancedb.store.memory import (
    Memory,
    Reader,
    Tombstone,
    ids_condition,
    memory_of,
    quoted,
)
from lamella_memory_lancedb.store.newest import Newest
from lamella_memory_lancedb.store.queries import groups, rows, rows_near, rows_with_words
from lamella_memory_lancedb.store.upkeep import Upkeep

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles
    from lamella_memory_lancedb.store.schema import Label

EVERYTHING = Reader()
log = logging.getLogger(__name__)


class Store:
    """Blocking; may be used by several threads and processes at once. All raise `MemoryUnavailable`.

    What looks and then writes does both within `writing`.
    """

    def __init__(self, location: Location, config: Config, agent: str = "main") -> None:
        """`agent` becomes the owner of memories that name none, in a table of an older version."""
        self.location = location
        self._agent = agent
        self._config = config
        self._database = Database(location)
        self._lock = WriteLock(location, config.lock_seconds)
        self._upkeep = Upkeep(config.optimize_writes, config.optimize_hours, config.index_rows)
        self._rewriter = Rewriter(self._database, self._upkeep)
        self._newest = Newest(self._read, config.index_rows)
        self._is_ours = False

    # --- reading ------------------------------------------------------------------------------------------

    def is_there(self) -> bool:
        """Whether there is, or may be, a table. Loads nothing."""
        return self.location.holds(MEMORIES)

    def label(self) -> Label | None:
        """What the table says of itself; None when there is none. A table of an older version is brought up
        to this one first."""
        label = self._database.read(MEMORIES, _label, None)
        if label is None or label.version:
            return label
        with self.writing():
            self._migrate()
        return self._database.read(MEMORIES, _label, None)

    def count(self, reader: Reader = EVERYTHING) -> int:
        condition = reader.condition() or None
        return int(self._read(lambda table: table.count_rows(condition), 0))

    def get(self, prefix: str, reader: Reader = EVERYTHING, *, most: int = 10) -> list[Memory]:
        """Memories whose id begins so, at most `most`. `prefix` is one that `checked_prefix` gave."""
        return self._select(f"starts_with(id, {quoted(prefix)})", reader, most)

    def by_hash(self, digest: str, reader: Reader) -> Memory | None:
        """The oldest memory with this text."""
        found = self._select(f"hash = {quoted(digest)}", reader, 10)
        return min(found, key=lambda m: (m.created_at, m.id), default=None)

    def page(self, reader: Reader, offset: int, limit: int, categories: Sequence[str] = ()) -> list[Memory]:
        """Memories, newest first."""
        more = f"category IN ({', '.join(map(quoted, categories))})" if categories else ""
        condition = " AND ".join(filter(None, (reader.condition(), more)))
        heads = self._rows(condition, columns=("id", "created_at"))
        heads.sort(key=lambda row: (-int(row["created_at"] or 0), str(row["id"])))
        wanted = [str(row["id"]) for row in heads[offset : offset + limit]]
        found = {
            memory.id: memory
            for group in groups(wanted)
            for memory in self._select(ids_condition(group), EVERYTHING, len(group))
        }
        return [found[name] for name in wanted if name in found]

    def nearest(self, vector: Singles, count: int, reader: Reader) -> list[tuple[Memory, float]]:
        """Memories most like a vector of unit length, with the cosine, best first."""
        snapshot = self._newest.current()
        if snapshot is None:
            return self._nearest_by_index(vector, count, reader)
        return snapshot.nearest(vector, count, reader)

    def cosines(self, vector: Singles, memories: Sequence[Memory]) -> dict[str, float]:
        """The likeness of these memories, by id, as far as they have vectors."""
        snapshot = self._newest.current()
        if snapshot is None:
            return self._cosines_by_rows(vector, memories)
        found = {m.id: snapshot.cosine(m.id, vector) for m in memories}
        return {name: cosine for name, cosine in found.items() if cosine is not None}

    def by_words(self, question: str, count: int, reader: Reader) -> list[Memory]:
        """Memories with words of a question, best first, by LanceDB's own index."""
        try:
            return self._by_words(question, count, reader)
        except MemoryUnavailable:
            self._index_words_anew()  # a program may have been killed before it made the index
            return self._by_words(question, count, reader)

    def _by_words(self, question: str, count: int, reader: Reader) -> list[Memory]:
        snapshot = self._newest.current()
        if snapshot is None:
            condition = reader.condition()
            found = self._read(lambda table: rows_with_words(table, question, condition, _light(), count), [])
            return [memory_of(row) for row in found]
        condition = "" if snapshot.visible(reader).all() else reader.condition()
        found = self._read(lambda table: rows_with_words(table, question, condition, ("id",), count), [])
        return [memory for row in found if (memory := snapshot.by_id(row["id"])) is not None]

    def vectors(self, ids: Sequence[str]) -> dict[str, Singles]:
        """The vectors of these memories, by id, as far as they have any."""
        import numpy as np

        found = [row for group in groups(ids) for row in self._rows(ids_condition(group), len(group), ("id", "vector"))]
        return {row["id"]: np.asarray(row["vector"], dtype=np.float32) for row in found if row["vector"] is not None}

    def tombstones(self) -> list[Tombstone]:
        return self._database.read(FORGOTTEN, _tombstones, [])

    def unembedded(self) -> list[Memory]:
        """Memories without a vector."""
        return self._select("vector IS NULL", EVERYTHING, None)

    def count_without_vector(self) -> int:
        return int(self._read(lambda table: table.count_rows("vector IS NULL"), 0))

    def facts(self) -> dict[str, Any]:
        """Numbers for a status."""
        return {"tableVersion": self._newest.version()[1], "memories": self.count(), **self._upkeep.facts()}

    # --- writing: within `writing` ------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        with self._lock.held():
            if self._rewriter.owes():
                self._purge()  # what a killed program removed is on the disk still
            yield

    def insert(self, memories: Sequence[Memory], vectors: Sequence[Singles | None], identity: str) -> None:
        """Add memories. Vectors of another embedder than the table's are left out, to be made later."""
        from lamella_memory_lancedb.store.schema import memories_schema, memory_rows

        label = self.label()
        if label is None:
            length = next((len(v) for v in vectors if v is not None), 1)
            schema = memories_schema(identity if any(v is not None for v in vectors) else "", length)
            self._rewriter.write(memory_rows(memories, vectors, schema))
        elif not label.identity and any(v is not None for v in vectors):
            self.rebuild(identity, _by_id(memories, vectors), memories)
        else:
            schema = memories_schema(label.identity, label.dimensions)
            added = memory_rows(memories, [label.fitting(v, identity) for v in vectors], schema)
            self._add(added)

    def replace(self, memory: Memory, vector: Singles | None, identity: str) -> None:
        """Put a memory in place of that with its id, in one step; the older text leaves the disk."""
        from lamella_memory_lancedb.store.schema import memories_schema, memory_rows

        label = self.label()
        if label is None:
            raise self._gone()
        if not self.location.is_remote:
            named = label.identity or (identity if vector is not None else "")
            fitting = vector if not label.identity else label.fitting(vector, identity)
            self.rebuild(named, _by_id([memory], [fitting]), [memory], without=[memory.id])
            return
        schema = memories_schema(label.identity, label.dimensions)
        changed = memory_rows([memory], [label.fitting(vector, identity)], schema)
        self._write(
            lambda table: (
                table.merge_insert("id").when_matched_update_all().execute(changed, on_bad_vectors=MISSING_IS_NULL)
            )
        )
        self._tidy()

    def set_vectors(self, vectors: Mapping[str, Singles], identity: str) -> None:
        """Give memories that have none their vectors, by id."""
        self.rebuild(identity, vectors)

    def remove(self, ids: Sequence[str]) -> None:
        """Delete memories so that their texts leave the disk too: deleting alone leaves them in data files.

        In an object store another program may write just then, and would lose what it wrote if the table
        was written anew: there, texts leave when the table is tidied.
        """
        label = self.label() if ids else None
        if label is None:
            return
        if self.location.is_remote:
            self._delete(ids)
            self._tidy()
        else:
            self.rebuild(label.identity, {}, without=ids)

    def bury(self, tombstones: Sequence[Tombstone]) -> None:
        from lamella_memory_lancedb.store.schema import tombstone_rows

        added = tombstone_rows(tombstones)
        table = self._database.table(FORGOTTEN)
        if table is None:
            self._database.write(FORGOTTEN, added)
        else:
            self._database.guarded(lambda: table.add(added, on_bad_vectors=MISSING_IS_NULL))

    def exhume(self, digest: str, agents: frozenset[str] | None) -> None:
        """Take away the tombstones of a text that somebody wants back."""
        table = self._database.table(FORGOTTEN)
        if table is not None:
            whose = Reader(agents).condition()
            condition = " AND ".join(filter(None, (f"hash = {quoted(digest)}", whose)))
            self._database.guarded(lambda: table.delete(condition))

    def rebuild(
        self,
        identity: str,
        vectors: Mapping[str, Singles],
        more: Sequence[Memory] = (),
        without: Sequence[str] = (),
    ) -> None:
        """Write all rows anew, with these vectors, by id, in place of theirs; `without` some, and with `more`.

        With another identity than before, vectors that are not given are dropped: they cannot be compared.
        """
        from lamella_memory_lancedb.store.rewriting import rewritten

        self._newest.drop()  # it need not be in memory beside the new rows
        old = self._read(lambda table: table.to_arrow(), None)
        self._rewriter.write(rewritten(old, identity, vectors, more, without))

    def settle(self, memory: Memory) -> Memory:
        """After an insert into an object store: of the same text stored twice at once, keep one.

        Who wrote last sees both. All who do delete the same one.
        """
        if not self.location.is_remote:
            return memory
        reader = Reader(frozenset((memory.agent,)))
        same = self._select(f"hash = {quoted(memory.hash)}", reader, 100)
        same = [m for m in same if m.session_key == memory.session_key] or [memory]
        kept = min(same, key=lambda m: m.id)
        self._delete([m.id for m in same if m.id != kept.id])
        return kept

    def tidy_if_due(self) -> None:
        """What goes wrong is logged only: what was stored before is stored."""
        try:
            table = self._database.table(MEMORIES)
            if table is not None and self._database.guarded(lambda: self._upkeep.is_due(table)):
                self.tidy()
        except MemoryUnavailable as error:
            log.warning("tidying: %s", error)

    def tidy(self) -> None:
        with self.writing():
            self._tidy()

    def finish_removal(self) -> None:
        """Take off the disk what a killed program removed from the table."""
        if self._rewriter.owes():
            with self.writing():
                pass

    def close(self) -> None:
        self._newest.drop()
        self._database.close()

    # --- within -------------------------------------------------------------------------------------------

    def _tidy(self) -> None:
        for name, tidy in ((MEMORIES, self._upkeep.tidy), (FORGOTTEN, self._upkeep.merge)):
            if self._database.table(name) is not None:
                self._database.read(name, tidy, None)

    def _purge(self) -> None:
        label = self._database.read(MEMORIES, _label, None)
        if label is None:
            self._rewriter.owes_nothing()
        elif label.version:
            self.rebuild(label.identity, {})

    def _delete(self, ids: Sequence[str]) -> None:
        for group in groups(ids):
            condition = ids_condition(group)
            self._write(lambda table, condition=condition: table.delete(condition))

    def _index_words_anew(self) -> None:
        with self.writing():
            table = self._database.table(MEMORIES)
            if table is not None:
                self._database.guarded(lambda: self._upkeep.index_words(table))

    def _gone(self) -> MemoryUnavailable:
        return MemoryUnavailable(f"the memories at {self.location.shown} have gone")

    def _add(self, rows: Any) -> None:
        before = self._newest.version()
        self._write(lambda table: table.add(rows, on_bad_vectors=MISSING_IS_NULL))
        self._newest.added(rows, before)

    def _write(self, action: Any) -> None:
        table = self._database.table(MEMORIES)
        if table is None:
            raise self._gone()
        self._database.guarded(lambda: action(table))
        self._upkeep.wrote()

    def _read(self, action: Any, otherwise: Any) -> Any:
        if not self._is_ours:  # of another version, its columns are others
            self._is_ours = self.label() is not None
        return self._database.read(MEMORIES, action, otherwise)

    def _select(self, condition: str, reader: Reader, most: int | None) -> list[Memory]:
        whole = " AND ".join(filter(None, (condition, reader.condition())))
        return [memory_of(row) for row in self._rows(whole, most, _light())]

    def _rows(self, condition: str, most: int | None = None, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._read(lambda table: rows(table, condition, columns, most), [])
        return found

    def _nearest_by_index(self, vector: Singles, count: int, reader: Reader) -> list[tuple[Memory, float]]:
        condition = reader.condition()
        found = self._read(lambda table: rows_near(table, vector, condition, _light(), count), [])
        return [(memory_of(row), 1.0 - float(row["_distance"])) for row in found]

    def _cosines_by_rows(self, vector: Singles, memories: Sequence[Memory]) -> dict[str, float]:
        return {name: float(vector @ found) for name, found in self.vectors([m.id for m in memories]).items()}

    def _migrate(self) -> None:
        """Bring a table of an older version up to this one. What was there stays beside it."""
        from lamella_memory_lancedb.store.rewriting import from_openclaw

        label = self._database.read(MEMORIES, _label, None)
        if label is None or label.version:
            return
        old = self._database.read(MEMORIES, lambda table: table.to_arrow(), None)
        taken_over = from_openclaw(old, self._agent)
        self._database.write(OLDER, old)
        self._rewriter.write(taken_over)


def _light() -> tuple[str, ...]:
    from lamella_memory_lancedb.store.schema import LIGHT

    return LIGHT


def _by_id(memories: Sequence[Memory], vectors: Sequence[Singles | None]) -> dict[str, Singles]:
    return {m.id: v for m, v in zip(memories, vectors, strict=True) if v is not None}


def _tombstones(table: Any) -> list[Tombstone]:
    from lamella_memory_lancedb.store.schema import tombstones_of

    return tombstones_of(table.to_arrow())


def _label(table: Any) -> Label:
    from lamella_memory_lancedb.store.schema import label_of

    return label_of(table.schema)
