"""Long-term memory of one agent: what the command line, other programs, the tools and the hooks use."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lamella.errors import LamellaError, MemoryPathError, UsageError
from lamella.memory.errand import Errand
from lamella.memory.meaning import Meaning, NoMeaning
from lamella.types.host import SHARED_CHATS, ChatType
from lamella.types.memory import (
    Degraded,
    MemoryHit,
    MemoryResults,
    MemoryText,
    MemoryWrite,
    ProgressListener,
    Provenance,
    SearchQuery,
    SyncReport,
)
from lamella_memory_lancedb.capture.signs import is_injection
from lamella_memory_lancedb.config import AGENT, SESSION, Config
from lamella_memory_lancedb.embedding import VectorMaker
from lamella_memory_lancedb.facts import Stats, export_line, import_lines, switched_off
from lamella_memory_lancedb.keeping import Keeper
from lamella_memory_lancedb.search.finding import Finder, Found
from lamella_memory_lancedb.store.database import load
from lamella_memory_lancedb.store.location import locate
from lamella_memory_lancedb.store.memory import FOLDER, Memory, MemoryNotFound, Origin, Reader, checked_prefix
from lamella_memory_lancedb.store.store import Store

if TYPE_CHECKING:
    from lamella.types.hooks import MemoryContext

NAME = "lancedb"
_BY_HAND = "cli"  # the actor of the command line
log = logging.getLogger(__name__)


class Memories:
    """Implements `lamella.types.memory.MemoryService`. Methods block; several threads may call them.

    All raise `MemoryUnavailable` when the store cannot be used; the next call tries again.
    """

    def __init__(self, context: MemoryContext, config: Config) -> None:
        from lamella_memory_lancedb.vectors import check  # numpy waits until something is compared

        self.config = config
        self.agent_id = context.agent_id
        self.location = locate(config, context.state_dir)
        self.meaning = Meaning(config.embedder, context.embedders, check)
        self.store = Store(self.location, config, context.agent_id)
        self.finder = Finder(self.store, self.meaning)
        self._last_error = ""
        self._warming: Errand[None] | None = None
        self.vectors = VectorMaker(self.store, self.meaning, self.finder)

    @cached_property
    def keeper(self) -> Keeper:
        return Keeper(self.store, self.meaning, self.config)

    # --- who sees what ------------------------------------------------------------------------------------

    def reader(self, session_key: str = "", chat: ChatType = "direct") -> Reader:
        """What may be seen from a session of this key, in this type of chat. Without a key, as on the command
        line, the memories of all sessions."""
        config = self.config
        in_public = chat in SHARED_CHATS and not config.private_in_groups
        if config.scope == AGENT:
            return Reader(frozenset((self.agent_id,)), "", in_public)
        if config.scope == SESSION:
            return Reader(frozenset((self.agent_id,)), session_key, in_public)
        return Reader(frozenset(config.owners) or None, "", in_public)

    # --- MemoryService ------------------------------------------------------------------------------------

    def search(self, query: SearchQuery) -> MemoryResults:
        """Memories by meaning and words. A hit's score is its strength as thresholds see it, at most 1."""
        if query.sources and "memory" not in query.sources:
            return MemoryResults((), NAME)
        found = self.find(query.text, query.max_results + len(query.exclude))
        hits = tuple(
            _hit(found_hit.memory, min(max(found_hit.strength, 0.0), 1.0), parts)
            for found_hit, parts in (
                (hit, _parts(hit) if query.explain else None) for hit in found.above(query.min_score)
            )
            if found_hit.memory.path not in query.exclude
        )
        return MemoryResults(
            hits[: query.max_results],
            NAME,
            Degraded(found.problem, NAME) if found.problem else None,
            in_step=True,
            mode="hybrid" if found.model else "keyword",
            embedder=self.config.embedder if self.meaning.wanted else "",
            model=found.model,
        )

    def read(self, path: str, *, start_line: int = 1, lines: int | None = None) -> MemoryText:
        """A memory as `memories/<id>`, or by the beginning of its id."""
        folder, _, name = path.strip().partition("/")
        if folder != FOLDER or not name:
            raise MemoryPathError(f"{path[:80]!r} is not a memory", hint=f"Memories are named {FOLDER}/<id>.")
        try:
            memory = self.get(name)
        except MemoryNotFound:
            return MemoryText("missing", path)
        except UsageError as error:
            raise MemoryPathError(str(error)) from None
        texts = memory.text.split("\n")
        last = len(texts) if lines is None else min(start_line + lines - 1, len(texts))
        if start_line > last:
            return MemoryText("empty", memory.path, total_lines=len(texts))
        shown = "\n".join(texts[start_line - 1 : last])
        return MemoryText("ok", memory.path, shown, start_line, last, len(texts), last < len(texts))

    def append(self, text: str, *, path: str | None = None, provenance: Provenance) -> MemoryWrite:
        """Store a text as a memory. A text that is there already is not stored again: 0 bytes are written.

        Raises `UsageError` for a text that tries to steer a model, unless a person typed it.
        """
        if path is not None:
            raise MemoryPathError(f"{path[:80]!r}: memories have no files", hint="Leave the path out.")
        if provenance.actor != _BY_HAND and is_injection(text):
            raise UsageError("the text reads like instructions to a model, and a memory is information only")
        origin = Origin(
            self.agent_id,
            provenance.actor,
            provenance.session_key,
            provenance.session_id,
            provenance.entry_id,
        )
        kept = self.keeper.keep(text, origin)
        assert kept.memory is not None  # only what nobody asked for can be refused
        size = len(kept.memory.text.encode()) if kept.action == "created" else 0
        return MemoryWrite(kept.memory.path, 1, kept.memory.text.count("\n") + 1, size)

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        """Make vectors that are missing and tidy the table; `force`: make all vectors anew."""
        shown = self.location.shown
        if force:
            embedded, problem = self.reindex(progress), ""
        else:
            embedded, problem = self.vectors.make_missing(progress)
            self.store.tidy()
        total = self.store.count()
        return SyncReport(
            shown,
            total,
            updated=embedded,
            unchanged=total - embedded,
            chunks=total,
            embedded=embedded,
            degraded=problem,
        )

    def status(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "backend": NAME,
            "mode": "keyword",
            "embedder": self.config.embedder,
            "model": None,
            "problem": None,
            "uri": self.location.shown,
            "scope": self.config.scope,
            "agent": self.agent_id,
            "memories": 0,
            "visible": 0,
            "version": None,
            "dimensions": None,
            "storedBy": None,
            "withoutVector": 0,
            "lastError": self._last_error or None,
            "off": switched_off(self.config, self.meaning.wanted),
        }
        try:
            label = self.store.label()
            if label is not None:
                facts |= {"version": label.version, "dimensions": label.dimensions, "storedBy": label.identity or None}
                facts |= self.store.facts()
                facts["visible"] = self.store.count(self.reader())
                facts["withoutVector"] = self.store.count_without_vector()
        except LamellaError as error:
            facts["problem"] = str(error)
            return facts
        try:
            facts["model"] = self.finder.usable_embedder().identity
            facts["mode"] = "hybrid"
        except NoMeaning as error:
            facts["problem"] = str(error)
        return facts

    def close(self) -> None:
        if self._warming is not None:
            self._warming.wait(5.0)
        self.store.close()

    # --- what the tools, the hooks and `lamella ltm` use --------------------------------------------------

    def find(self, text: str, limit: int, reader: Reader | None = None) -> Found:
        """Memories that bear on a text, strongest first."""
        return self.finder.find(text, self.reader() if reader is None else reader, limit)

    def get(self, name: str, reader: Reader | None = None) -> Memory:
        """The memory with this id, or the one whose id begins so. Raises `MemoryNotFound`, and `UsageError`
        for what is no id or begins several."""
        prefix = checked_prefix(name)
        found = self.store.get(prefix, self.reader() if reader is None else reader)
        if not found:
            raise MemoryNotFound(f"no memory has the id {name.strip()}")
        if len(found) > 1:
            ids = ", ".join(sorted(m.id for m in found))
            raise UsageError(f"{name.strip()} is the beginning of several ids: {ids}")
        return found[0]

    def page(
        self, offset: int = 0, limit: int = 50, *, categories: Sequence[str] = (), reader: Reader | None = None
    ) -> list[Memory]:
        """Memories, newest first."""
        return self.store.page(self.reader() if reader is None else reader, offset, limit, categories)

    def count(self, reader: Reader | None = None) -> int:
        """How many memories a reader may see and wants to."""
        return self.store.count(self.reader() if reader is None else reader)

    def forget(self, memories: Sequence[Memory]) -> int:
        """Delete memories, leave a tombstone of each, and take their texts off the disk. The number of them."""
        self.keeper.forget(list(memories))
        return len(memories)

    def forget_all(self, reader: Reader | None = None) -> int:
        """Forget all that a reader may see. The number of memories."""
        seen = self.reader() if reader is None else reader
        return self.forget(self.store.page(seen, 0, self.store.count(seen)))

    def export(self, reader: Reader | None = None) -> Iterator[str]:
        """All memories as lines of JSON, oldest first, without vectors."""
        seen = self.reader() if reader is None else reader
        for memory in reversed(self.store.page(seen, 0, self.store.count(seen))):
            yield export_line(memory)

    def restore(self, lines: Iterable[str]) -> tuple[int, int]:
        """Store the memories of an export, as this agent's: how many are new, and how many were there already.

        Nothing is stored when a line is none: raises `UsageError` with its number.
        """
        wanted = list(import_lines(lines, self.agent_id))
        kept = [
            self.keeper.keep(
                line.text,
                line.origin,
                category=line.category,
                importance=line.importance,
                created_at=line.created_at,
            )
            for line in wanted
        ]
        new = sum(k.action == "created" for k in kept)
        return new, len(kept) - new

    def stats(self, reader: Reader | None = None) -> Stats:
        seen = self.reader() if reader is None else reader
        memories = self.store.page(seen, 0, self.store.count(seen))
        forgotten = sum(seen.agents is None or stone.agent in seen.agents for stone in self.store.tombstones())
        return Stats.of(memories, self.store.count_without_vector(), forgotten)

    def reindex(self, progress: ProgressListener | None = None) -> int:
        """Make all vectors anew with the embedder in use; the number of memories.

        Until the new vectors are whole, the old ones answer. Raises `NoMeaning` when the embedder cannot be
        used: nothing has changed then.
        """
        return self.vectors.make_all(progress)

    def warm_up(self) -> None:
        """Begin to load lancedb and the embedder in the background, once; what goes wrong is told when it is
        used."""
        if self._warming is None:
            self._warming = Errand(self._load, "lamella-lancedb")

    def note_error(self, error: Exception) -> None:
        """Remember for `status` what went wrong last."""
        self._last_error = str(error)

    # --- within -------------------------------------------------------------------------------------------

    def _load(self) -> None:
        try:
            if not self.store.is_there():
                return  # lancedb takes seconds to load, and there is nothing yet to be found with it
            load()
            self.store.finish_removal()
            self.vectors.make_missing()
            self.find("memory", 1)
        except LamellaError as error:
            self.note_error(error)
            log.warning("warming up: %s", error)


def _hit(memory: Memory, score: float, parts: Mapping[str, float | None] | None) -> MemoryHit:
    return MemoryHit(memory.path, 1, memory.text.count("\n") + 1, score, memory.text, "memory", parts)


def _parts(hit: Any) -> dict[str, float | None]:
    return {"cosine": hit.evidence.cosine, "words": hit.evidence.words}
