"""Vectors for memories that have none, or whose vectors another embedder made.

An embedder may take minutes for a large table, so texts are embedded before the table is locked; what
others have stored or corrected meanwhile is few, and embedded within the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lamella.memory.meaning import QUESTION_SECONDS, Meaning, NoMeaning
from lamella.types.memory import Embedder, ProgressListener, SyncProgress
from lamella_memory_lancedb.search.finding import Finder
from lamella_memory_lancedb.store.memory import Memory
from lamella_memory_lancedb.store.store import EVERYTHING, Store

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles

_GROUP = 128  # texts that are embedded at once


class VectorMaker:
    """Blocking; raises `MemoryUnavailable` when the store cannot be used."""

    def __init__(self, store: Store, meaning: Meaning, finder: Finder) -> None:
        self._store = store
        self._meaning = meaning
        self._finder = finder
        self._one_makes = threading.Lock()

    def make_all(self, progress: ProgressListener | None = None) -> int:
        """Make all vectors anew with the embedder in use; the number of memories.

        Until the new vectors are whole, the old ones answer. Raises `NoMeaning` when the embedder cannot be
        used: nothing has changed then.
        """
        if not self._meaning.wanted:
            raise NoMeaning('embedder is none; "static" turns search by meaning on')
        embedder = self._meaning.embedder()
        made: dict[str, Singles] = {}
        self._embed(self._all(), made, embedder, progress)
        with self._store.writing():
            memories = self._all()
            self._embed(memories, made, embedder, None)
            if memories:
                self._store.rebuild(embedder.identity, {m.id: made[m.text] for m in memories})
        return len(memories)

    def make_missing(self, progress: ProgressListener | None = None) -> tuple[int, str]:
        """Vectors for memories that have none: how many, and why not all have one."""
        label = self._store.label()
        if label is None or not self._meaning.wanted:
            return 0, ""
        try:
            embedder = self._meaning.embedder(QUESTION_SECONDS)
            if label.identity:
                self._finder.usable_embedder()  # raises what there is to say
            with self._one_makes:
                made: dict[str, Singles] = {}
                self._embed(self._store.unembedded(), made, embedder, progress)
                return (self._fill(made, embedder) if made else 0), ""
        except NoMeaning as error:
            return 0, str(error)

    def _fill(self, made: dict[str, Singles], embedder: Embedder) -> int:
        """Give memories without a vector theirs, unless another process has done so, or changed the embedder."""
        with self._store.writing():
            label = self._store.label()
            if label is None or label.identity not in ("", embedder.identity):
                return 0
            vectors = {m.id: made[m.text] for m in self._store.unembedded() if m.text in made}
            if vectors:
                self._store.set_vectors(vectors, embedder.identity)
            return len(vectors)

    def _all(self) -> list[Memory]:
        return self._store.page(EVERYTHING, 0, self._store.count())

    def _embed(
        self,
        memories: Iterable[Memory],
        made: dict[str, Singles],
        embedder: Embedder,
        progress: ProgressListener | None,
    ) -> None:
        """Add vectors, by text, for texts that are not among the `made`; zeros where the embedder knows no word."""
        texts: Sequence[str] = list(dict.fromkeys(m.text for m in memories if m.text not in made))
        for start in range(0, len(texts), _GROUP):
            if progress is not None:
                progress(SyncProgress("vectors", start, len(texts)))
            group = texts[start : start + _GROUP]
            made.update(zip(group, self._meaning.embed(group, embedder), strict=True))
