"""Keeping a memory: once, not against the user's will, and told where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import evolve, frozen

from lamella.errors import UsageError
from lamella.memory.meaning import QUESTION_SECONDS, Meaning, NoMeaning
from lamella.text.days import unix_ms
from lamella.text.redact import redact
from lamella.text.unicode import well_formed
from lamella.types.host import SHARED_CHATS
from lamella_memory_lancedb.capture.disguises import without_unseen
from lamella_memory_lancedb.config import SESSION, SHARED, Config
from lamella_memory_lancedb.search.sameness import says_the_same
from lamella_memory_lancedb.store.memory import (
    CATEGORIES,
    Memory,
    MemoryNotFound,
    Origin,
    Reader,
    Tombstone,
    new_id,
    text_hash,
)
from lamella_memory_lancedb.store.store import Store

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles

Action: TypeAlias = Literal["created", "duplicate", "forgotten"]
MOST_TEXT_CHARS = 20_000
_LOOKED_AT = 5


@frozen(slots=True)
class Kept:
    """What came of a text: `memory` is the new one, or (duplicate) the one that says the same already; None
    when it was forgotten before, and so is not kept again."""

    action: Action
    memory: Memory | None = None


class Keeper:
    """Writes memories. Blocking; all methods raise `MemoryUnavailable`."""

    def __init__(self, store: Store, meaning: Meaning, config: Config) -> None:
        self._store = store
        self._meaning = meaning
        self._config = config

    def keep(
        self,
        text: str,
        origin: Origin,
        *,
        category: str = "other",
        importance: float = 0.7,
        wanted: bool = True,
        created_at: int | None = None,
    ) -> Kept:
        """Store a text, secrets masked, unless its like is there.

        `wanted`: somebody asked for it, so that it is stored even if it was forgotten before. `created_at`: when
        it was first stored, in Unix milliseconds; None: now. Without a vector, since the embedder fails or does
        not answer, it is stored all the same and gets one later. Raises `UsageError` for an empty text, a
        category or importance that there is not.
        """
        memory = _made(text, origin, category, importance, created_at)
        vector, identity = self._vector(memory.text)
        with self._store.writing():
            reader = self.scope(origin)
            same = self._said_before(memory, vector, identity, reader)
            if same is not None:
                return Kept("duplicate", same)
            if wanted:
                self._store.exhume(memory.hash, reader.agents)
            elif self._was_forgotten(memory, vector, identity, reader):
                return Kept("forgotten")
            self._store.insert([memory], [vector], identity)
            kept = self._store.settle(memory)
        self._store.tidy_if_due()
        return Kept("created" if kept.id == memory.id else "duplicate", kept)

    def change(self, memory: Memory, **fields: Any) -> Memory:
        """Store a memory with another text, category or importance; its id, time and origin stay.

        Raises `MemoryNotFound` when somebody has forgotten it meanwhile.
        """
        if "text" in fields:
            text = clean_text(fields["text"])
            fields |= {"text": text, "hash": text_hash(text)}
        vector, identity = self._vector(fields.get("text", memory.text))
        with self._store.writing():
            found = self._store.get(memory.id)
            if not found:
                raise MemoryNotFound(f"no memory has the id {memory.id}")
            changed = evolve(found[0], **fields, updated_at=unix_ms())
            _check(changed.category, changed.importance)
            self._store.replace(changed, vector, identity)
        return changed

    def forget(self, memories: list[Memory]) -> None:
        """Delete memories so that their texts leave the disk, and remember not to capture them again."""
        if not memories:
            return
        now = unix_ms()
        with self._store.writing():
            label = self._store.label()
            identity = label.identity if label is not None else ""
            vectors = self._store.vectors([memory.id for memory in memories])
            stones = [Tombstone(m.hash, m.agent, m.session_key, now, identity, vectors.get(m.id)) for m in memories]
            self._store.bury(stones)
            self._store.remove([memory.id for memory in memories])

    def scope(self, origin: Origin) -> Reader:
        """What a new memory is compared with: what its readers see, so that a chat that others read is not
        told what is private."""
        config = self._config
        in_public = origin.chat in SHARED_CHATS and not config.private_in_groups
        agents = None if config.scope == SHARED else frozenset((origin.agent,))
        return Reader(agents, origin.session_key if config.scope == SESSION else "", in_public)

    def _vector(self, text: str) -> tuple[Singles | None, str]:
        """The vector and its embedder's identity; None and nothing when it cannot be had now."""
        if not self._meaning.wanted:
            return None, ""
        try:
            embedder = self._meaning.embedder(QUESTION_SECONDS)
            vector = self._meaning.embed_soon([text], embedder)[0]
        except NoMeaning:
            return None, ""
        return (vector, embedder.identity) if vector.any() else (None, "")

    def _said_before(self, memory: Memory, vector: Any, identity: str, reader: Reader) -> Memory | None:
        same = self._store.by_hash(memory.hash, reader)
        label = self._store.label()
        if same is not None or label is None or label.fitting(vector, identity) is None:
            return same
        for near, cosine in self._store.nearest(vector, _LOOKED_AT, reader):
            if cosine >= self._config.duplicate_threshold and says_the_same(near.text, memory.text):
                return near
        return None

    def _was_forgotten(self, memory: Memory, vector: Any, identity: str, reader: Reader) -> bool:
        stones = [stone for stone in self._store.tombstones() if _is_for(stone, reader)]
        if any(stone.hash == memory.hash for stone in stones):
            return True
        if vector is None:
            return False
        near = [
            stone.vector
            for stone in stones
            if stone.vector is not None and stone.identity == identity and len(stone.vector) == len(vector)
        ]
        if not near:
            return False
        import numpy as np

        likest = float((np.asarray(near, dtype=np.float32) @ vector).max())
        return likest >= self._config.duplicate_threshold


def _is_for(stone: Tombstone, reader: Reader) -> bool:
    """Whether a tombstone counts for who reads so."""
    return (reader.agents is None or stone.agent in reader.agents) and reader.session_key in ("", stone.session_key)


def _made(text: str, origin: Origin, category: str, importance: float, created_at: int | None) -> Memory:
    clean = clean_text(text)
    _check(category, importance)
    now = unix_ms()
    return Memory(
        new_id(),
        clean,
        text_hash(clean),
        importance,
        category,
        now if created_at is None else created_at,
        now,
        origin.agent,
        origin.session_key,
        origin.session_id,
        origin.entry_id,
        origin.source,
        origin.chat,
    )


def clean_text(text: str) -> str:
    """A text as it is stored, secrets masked. Raises `UsageError` when it is empty or too long."""
    clean = redact(without_unseen(well_formed(text))).replace("\0", "").strip()
    if not clean:
        raise UsageError("the text of a memory is empty")
    if len(clean) > MOST_TEXT_CHARS:
        raise UsageError(f"a memory has {len(clean)} characters, expected at most {MOST_TEXT_CHARS}")
    return clean


def _check(category: str, importance: float) -> None:
    if category not in CATEGORIES:
        raise UsageError(f"category {category!r}: expected one of {', '.join(CATEGORIES)}")
    if not 0 <= importance <= 1:
        raise UsageError(f"importance {importance}: expected 0 to 1")
