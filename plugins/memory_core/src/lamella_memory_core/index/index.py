"""One index in one folder: its files, words and vectors, and what a process keeps of it in memory."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import asdict, evolve, frozen

from lamella.errors import LamellaError, MemoryUnavailable
from lamella.memory.meaning import Meaning
from lamella.memory.scan import Scan
from lamella.types.memory import MemoryHit, ProgressListener, SearchQuery, SyncReport, traits_of
from lamella_memory_core.index.chunking import Chunking
from lamella_memory_core.index.database import Database, NotAnIndex
from lamella_memory_core.index.growth import Growth
from lamella_memory_core.index.staleness import files_behind
from lamella_memory_core.index.sync import sync_index
from lamella_memory_core.index.texts import in_transcripts
from lamella_memory_core.meaning.embedding import Filler
from lamella_memory_core.ranking.search import search_index
from lamella_memory_core.ranking.style import Style
from lamella_memory_core.warm.shelf import Shelf
from lamella_memory_core.warm.view import LEAST_PASSAGES, View
from lamella_memory_core.warm.warming import Warmer

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Floats, Singles

log = logging.getLogger(__name__)

T = TypeVar("T")


@frozen(slots=True)
class Found:
    """Hits, and why they may be fewer or worse than they could be. `index`: the state that they are of."""

    hits: tuple[MemoryHit, ...]
    problem: str = ""
    index: str = ""


class Emptied(MemoryUnavailable):
    """The index has been made anew: there is nothing in it until it is synced."""


class Index:
    """An index below a folder. Nothing is read or written before it is used.

    Methods raise `MemoryUnavailable` when the folder or the database cannot be used. A database that is
    broken, or was made for another workspace, is made anew; those that need what was in it raise `Emptied`.
    """

    def __init__(
        self,
        folder: Path,
        workspace: Path,
        scan: Callable[[], Scan],
        chunking: Chunking,
        style: Style,
        meaning: Meaning,
        growth: Growth,
    ) -> None:
        self._scan = scan
        self._growth = growth
        self._chunking = chunking
        self._style = style
        self._meaning = meaning
        self._database = Database(folder, f"{chunking.identity} of {os.path.realpath(workspace)}")
        self._filler = Filler(self._database, meaning)
        self._view = View(Shelf(folder))
        self._warmer = Warmer(self._database, folder)
        self._one_sync = threading.Lock()

    @property
    def path(self) -> Path:
        return self._database.path

    def sync_files(self, progress: ProgressListener, *, force: bool = False, patient: bool = False) -> SyncReport:
        """See `sync_index`; one at a time. `patient`: transcripts with little news can wait.

        Raises `UsageError` for a missing workspace.
        """
        growth = self._growth if patient else None

        def sync() -> SyncReport:
            return sync_index(
                self._database, self._scan(), self._chunking, force=force, growth=growth, progress=progress
            )

        with self._one_sync:
            return self._run(sync)

    def fill(self, progress: ProgressListener) -> int:
        """Make all vectors that are missing; the number of texts. Raises `NoMeaning`, `Emptied`."""
        return self._unless_broken(lambda: self._filler.fill(progress))

    def fill_within(self, seconds: float, *, changed: bool) -> str:
        """Make vectors if some are missing, or begin to; why some are still missing, or nothing.

        `changed`: passages have changed, so that nobody need look. Raises `NoMeaning`, `Emptied`.
        """
        return self._filler.fill_within(seconds) if changed or self._unless_broken(self._lacks_vectors) else ""

    def search(self, query: SearchQuery, question: Singles | None) -> Found:
        """Search the index as it is. `question` (dimensions,): the query's vector, if meaning is to count.

        Raises `Emptied`.
        """
        return self._unless_broken(lambda: self._search(query, question))

    def facts(self) -> dict[str, Any]:
        """Sizes, for `lamella memory status`; and how many files have changed since they were taken in."""
        return self._run(self._facts)

    def close(self) -> None:
        self._filler.close()
        self._warmer.close()
        self._database.close()

    def _lacks_vectors(self) -> bool:
        self._must_be_filled()
        with self._database.read() as connection:
            return bool(self._view.matrix(connection, self._meaning.embedder()).missing)

    def _must_be_filled(self) -> None:
        """Raises `Emptied` when there is no index, or one of other settings or of another workspace."""
        if self._database.prepare():
            raise Emptied("the index has been made anew, and is not filled yet")

    def _search(self, query: SearchQuery, question: Singles | None) -> Found:
        self._must_be_filled()
        with self._database.read() as connection:
            catalog, words = self._view.catalog(connection), self._view.words(connection)
            if question is None:
                found = Found(search_index(connection, catalog, words, query, self._style))
            else:
                likeness, problem = self._likeness(connection, question)
                traits = traits_of(self._meaning.embedder())
                hits = search_index(connection, catalog, words, query, self._style, likeness, traits)
                found = Found(hits, problem)
            found = evolve(found, hits=in_transcripts(connection, found.hits), index=catalog.stamp)
        if len(catalog) >= LEAST_PASSAGES:
            embedder = None if question is None else self._meaning.embedder()
            self._warmer.after_search(self._view, catalog.stamp, embedder)
        return found

    def _likeness(self, connection: sqlite3.Connection, question: Singles) -> tuple[Floats | None, str]:
        """See `Matrix.likeness`; and what is wrong with it."""
        matrix = self._view.matrix(connection, self._meaning.embedder())
        problem = f"{matrix.missing} of {len(matrix.known)} passages have no vector yet" if matrix.missing else ""
        return matrix.likeness(question), problem

    def _facts(self) -> dict[str, Any]:
        self._database.prepare()
        with self._database.read() as connection:
            counts: dict[str, Any] = {
                name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("files", "chunks")
            }
            by_embedder = connection.execute(
                "SELECT identity, count(*) FROM vectors JOIN embedders ON embedders.id = embedder_id"
                " GROUP BY identity ORDER BY identity"
            )
            counts["vectors"] = [{"identity": identity, "count": count} for identity, count in by_embedder]
            scan = self._scan()
            skipped = [asdict(problem) for problem in scan.skipped]
            return {**counts, "behind": files_behind(connection, scan), "skipped": skipped}

    def _run(self, action: Callable[[], T]) -> T:
        """Do something with the database; once more with a new one when the old one is broken."""
        try:
            return self._unless_broken(action)
        except Emptied:
            return self._unless_broken(action)

    def _unless_broken(self, action: Callable[[], T]) -> T:
        """Do something with the database. Raises `Emptied` when it turns out to be broken."""
        try:
            try:
                return action()
            except NotAnIndex as error:
                log.warning("%s: %s", self.path, error)
                self._database.discard(str(error))
                self._database.prepare()
                raise Emptied(f"{error}; it has been made anew, and is not filled yet") from error
        except OSError as error:  # a lock that is not free in time is one too
            if isinstance(error, LamellaError):
                raise
            raise MemoryUnavailable(f"the memory index {self.path} cannot be used: {error}") from error
