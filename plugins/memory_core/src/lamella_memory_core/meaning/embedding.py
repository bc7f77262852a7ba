"""Vectors are brought up to date: at once, or in the background while searches go on."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from lamella.errors import LamellaError
from lamella.memory.errand import Errand, StillRunning
from lamella.memory.meaning import Meaning
from lamella.types.memory import Embedder, ProgressListener
from lamella_memory_core.index.database import Database
from lamella_memory_core.meaning.vectors import checked, embed_pending

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Singles

log = logging.getLogger(__name__)


class Filler:
    """Brings vectors up to date: at once, or in the background while searches go on."""

    def __init__(self, database: Database, meaning: Meaning) -> None:
        self._database = database
        self._meaning = meaning
        self._one_at_a_time = threading.Lock()
        self._stop = threading.Event()
        self._errand: Errand[int] | None = None

    def fill(self, progress: ProgressListener = lambda _progress: None) -> int:
        """Embed all that is missing; the number of texts. Raises `NoMeaning`, `NotAnIndex`, `MemoryUnavailable`."""
        with self._one_at_a_time:
            embedder = _Guarded(self._meaning.embedder(), self._meaning)
            return embed_pending(self._database, embedder, self._stop.is_set, progress)

    def fill_within(self, seconds: float) -> str:
        """Begin to embed what is missing, unless that goes on already, and wait a while for its end.

        Returns why vectors are missing, or nothing.
        """
        if self._errand is None or self._errand.done:
            self._errand = Errand(self.fill, "lamella-vectors")
        try:
            self._errand.result(seconds)
        except StillRunning:
            return "vectors are still being made"
        except (LamellaError, OSError) as error:
            log.warning("vectors are not up to date", exc_info=True)
            return str(error)
        return ""

    def close(self) -> None:
        """Stop after the group in work; wait a moment for that."""
        self._stop.set()
        if self._errand is not None:
            self._errand.wait(2.0)


class _Guarded:
    """An embedder whose faults are `NoMeaning`, so that they are told from those of the index."""

    def __init__(self, embedder: Embedder, meaning: Meaning) -> None:
        self._embedder = embedder
        self._meaning = meaning

    @property
    def identity(self) -> str:
        return self._embedder.identity

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    def embed_documents(self, texts: Any) -> Singles:
        return self._meaning.guarded(lambda: checked(self._embedder.embed_documents(texts), len(texts), self))

    def embed_query(self, text: str) -> Any:
        return self._meaning.guarded(lambda: self._embedder.embed_query(text))
