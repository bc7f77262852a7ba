"""One search: candidates by meaning and by words, ordered by their evidence together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from lamella.memory.meaning import QUESTION_SECONDS, Meaning, NoMeaning
from lamella.types.memory import Embedder
from lamella_memory_lancedb.search.background import Background
from lamella_memory_lancedb.search.evidence import Evidence, word_shares
from lamella_memory_lancedb.store.memory import Memory, Reader
from lamella_memory_lancedb.store.store import Store

if TYPE_CHECKING:
    from lamella_memory_lancedb.store.schema import Label

# Candidates of each side, beside the results that are asked for.
_CANDIDATES = 20
_MOST_QUERY_CHARS = 1000
# Where only words were compared, a memory needs half of a question's.
_WORDS_ALONE = 0.5
REINDEX = "run `lamella ltm reindex`"


@frozen(slots=True)
class Hit:
    memory: Memory
    evidence: Evidence

    @property
    def strength(self) -> float:
        return self.evidence.strength

    @property
    def score(self) -> float:
        """The cosine; where there is none, the share of the question's words."""
        return self.evidence.words if self.evidence.cosine is None else self.evidence.cosine


@frozen(slots=True)
class Found:
    """Hits, strongest first. `problem` says why meanings were not compared, or is empty."""

    hits: tuple[Hit, ...] = ()
    problem: str = ""
    model: str = ""

    def above(self, threshold: float) -> tuple[Hit, ...]:
        """Hits of at least this strength; a threshold of 0 takes all."""
        return tuple(hit for hit in self.hits if threshold <= 0 or hit.strength >= self._floor(threshold))

    def _floor(self, threshold: float) -> float:
        """Words alone have to say more."""
        return max(threshold, _WORDS_ALONE) if self.problem and not self.model else threshold


class Finder:
    """Searches a store. Meaning that is not to be had now leaves words to answer, and is said."""

    def __init__(self, store: Store, meaning: Meaning) -> None:
        self._store = store
        self._meaning = meaning
        self._background = Background(meaning)

    def find(self, text: str, reader: Reader, limit: int) -> Found:
        """Raises `MemoryUnavailable` when the store cannot be read."""
        text = text.strip()[:_MOST_QUERY_CHARS]
        label = self._store.label()
        if not text or label is None or limit < 1:
            return Found()
        vector, model, problem = None, "", ""
        try:
            embedder = self._usable(label)
            vector, model = self._meaning.question(text), embedder.identity
        except NoMeaning as error:
            problem = f"{error}; only words were compared"
        near = self._store.nearest(vector, limit + _CANDIDATES, reader) if vector is not None else []
        memories = {memory.id: memory for memory, _cosine in near}
        cosines = {memory.id: cosine for memory, cosine in near}
        worded = [m for m in self._store.by_words(text, limit + _CANDIDATES, reader) if m.id not in memories]
        if vector is not None and worded:
            cosines |= self._store.cosines(vector, worded)
        memories |= {memory.id: memory for memory in worded}
        background = self._background.likeness() if vector is not None else 0.0
        shares = word_shares(text, [memory.text for memory in memories.values()])
        hits = [
            Hit(memory, Evidence(cosines.get(memory.id), share, background))
            for memory, share in zip(memories.values(), shares, strict=True)
        ]
        hits.sort(key=lambda hit: (-hit.strength, -hit.memory.created_at, hit.memory.id))
        return Found(tuple(hits[:limit]), problem, model)

    def usable_embedder(self) -> Embedder:
        """The embedder, when the table's vectors are its own. Raises `NoMeaning` that tells what to do."""
        return self._usable(self._store.label())

    def _usable(self, label: Label | None) -> Embedder:
        if not self._meaning.wanted:
            raise NoMeaning('embedder is none; "static" turns search by meaning on')
        embedder = self._meaning.embedder(QUESTION_SECONDS)
        if label is None or (label.identity == embedder.identity and label.dimensions == embedder.dimensions):
            return embedder
        if not label.identity:
            raise NoMeaning(f"the memories have no vectors yet: {REINDEX}", hint=REINDEX)
        raise NoMeaning(
            f"the memories have vectors of {label.identity} ({label.dimensions} numbers), the embedder is "
            f"{embedder.identity} ({embedder.dimensions} numbers): {REINDEX}",
            hint=REINDEX,
        )
