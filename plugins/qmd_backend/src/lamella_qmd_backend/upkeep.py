"""Updates beside the searches: one at a time, in a thread that keeps no program from ending."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from lamella.errors import LamellaError
from lamella.memory.errand import Errand
from lamella.types.memory import ProgressListener
from lamella_qmd_backend.index import PrivateIndex

_CLOSING_SECONDS = 1.0

log = logging.getLogger(__name__)


class Upkeep:
    """Runs `update(again)` when it is asked to, unless that goes on already."""

    def __init__(self, update: Callable[[bool], Any]) -> None:
        self._update = update
        self._errand: Errand[Any] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def begin(self, *, again: bool = False) -> Errand[Any]:
        """The update that runs, or a new one. What goes wrong is raised to who waits for it, and logged."""
        with self._lock:
            if self._errand is None or (self._errand.done and not self._closed):
                self._errand = Errand(lambda: self._run(again), "lamella-qmd-update")
            return self._errand

    def close(self) -> None:
        """Give an update that runs a moment to end."""
        with self._lock:
            self._closed = True
            errand = self._errand
        if errand is not None:
            errand.wait(_CLOSING_SECONDS)

    def _run(self, again: bool) -> Any:
        try:
            return self._update(again)
        except LamellaError as error:
            if not self._closed:
                log.warning("QMD's index is not up to date: %s", error)
            raise


class Background:
    """Updates of the private index, and vectors after them, beside everything else."""

    def __init__(self, index: PrivateIndex, told: ProgressListener) -> None:
        """`told` ends the work by raising, when the memory is closed."""
        self._index = index
        self._told = told
        self._updates = Upkeep(self._update)
        self._vectors = Upkeep(lambda _again: index.embed(told))

    def update(self, *, again: bool = False) -> Errand[Any]:
        """See `Upkeep.begin`."""
        return self._updates.begin(again=again)

    def embed(self) -> None:
        """Begin to give new texts vectors, where a model is configured."""
        if self._index.embeds:
            self._vectors.begin()

    def close(self) -> None:
        """Give an update a moment to end, and end the rest."""
        self._updates.close()
        self._index.close()
        self._vectors.close()

    def _update(self, again: bool) -> Any:
        done = self._index.update(again=again, vectors=False, progress=self._told)
        self.embed()
        return done
