"""Making searches of a long-running process faster: words and vectors are laid out as arrays beside the database.

One process does it for all, in the background. A process that asks one question and ends has nothing
of it, so the first search of a process never begins it.
"""

from __future__ import annotations

import logging
from pathlib import Path

from lamella.errors import LamellaError
from lamella.memory.errand import Errand
from lamella.types.memory import Embedder
from lamella_memory_core.index.database import Database
from lamella_memory_core.lexical.stems import Stems
from lamella_memory_core.warm.catalog import read_stamp
from lamella_memory_core.warm.part import load_part
from lamella_memory_core.warm.shelf import Base, Shelf
from lamella_memory_core.warm.view import View

_SEARCHES_BEFORE = 2
# Another process is at it when the lock is taken; its work is used, after so long at most.
_WAIT_SECONDS = 120.0

log = logging.getLogger(__name__)


class Warmer:
    """Fills the shelf when a process searches a second time, and again after much has changed."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._searches = 0
        self._tried = ""
        self._errand: Errand[None] | None = None

    def after_search(self, view: View, stamp: str, embedder: Embedder | None) -> None:
        """Begin, if there is something to do that was not tried in this state of the index.

        `view` is told when there is something new on the shelf.
        """
        self._searches += 1
        if self._searches < _SEARCHES_BEFORE or stamp == self._tried or self._busy:
            return
        self._tried = stamp
        self._errand = Errand(lambda: self._work(view, embedder), "lamella-warming")

    def wait(self, seconds: float) -> bool:
        """Wait for the end of what was begun; whether nothing is going on then."""
        return self._errand is None or self._errand.wait(seconds)

    def close(self) -> None:
        """Wait a moment for the end; what is not done then is done by the next process."""
        self.wait(2.0)

    @property
    def _busy(self) -> bool:
        return self._errand is not None and not self._errand.done

    def _work(self, view: View, embedder: Embedder | None) -> None:
        import filelock

        try:
            with filelock.FileLock(self._folder / "locks" / "memory-warming.lock", timeout=_WAIT_SECONDS):
                fill_shelf(self._database, Shelf(self._folder), embedder)
        except (LamellaError, OSError):  # searches go on without; a full disk must not end them
            log.warning("memory searches could not be made faster", exc_info=True)
        else:
            view.forget()


def fill_shelf(database: Database, shelf: Shelf, embedder: Embedder | None) -> None:
    """Put on the shelf what is missing there for the present state of the index. Raises `OSError`, and as
    `Database.read`."""
    view = View(shelf)
    with database.read() as connection:
        if view.lacks_base(connection):
            birth, _, number = read_stamp(connection).rpartition(":")
            shelf.put_base(Base(birth, int(number), load_part(connection, Stems())))
            view.forget()
        found = None if embedder is None else view.unshelved_vectors(connection, embedder)
        if found is not None and embedder is not None:
            base, block = found
            shelf.put_vectors(base, embedder.identity, block)
