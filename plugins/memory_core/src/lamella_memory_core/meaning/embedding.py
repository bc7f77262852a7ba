"""Vectors are brought up to date: at once, or in the background while searches go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lamella.errors import LamellaError
from lamella.memory.errand import Errand, StillRunning
from lamella.memory.meaning import Meaning
from lamella.types.memory import ProgressListener
from lamella_memory_core.index.database import Database
from lamella_memory_core.meaning.vectors import embed_pending

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
            embedder = self._meaning.embedder()

            def embed(texts: Sequence[str]) -> Singles:
                vectors: Singles = self._meaning.embed(texts, embedder)
                return vectors

            return embed_pending(self._database, embedder.identity, embed, self._stop.is_set, progress)

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
