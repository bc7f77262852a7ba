"""The backend `sqlite`: a keyword index over the notes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from lamella.errors import LamellaError, MemoryUnavailable, UsageError
from lamella.types.memory import BackendContext, Degraded, MemoryHit, MemoryResults, SearchQuery, SyncReport
from lamella_memory_core.catalog import Catalog, load_catalog, read_stamp
from lamella_memory_core.chunking import Chunking
from lamella_memory_core.config import Config
from lamella_memory_core.database import Database, NotAnIndex
from lamella_memory_core.search import Style, search_index
from lamella_memory_core.sync import sync_index

log = logging.getLogger(__name__)

T = TypeVar("T")


class SqliteBackend:
    """Implements `lamella.types.memory.MemoryBackend`."""

    name = "sqlite"

    def __init__(self, context: BackendContext, config: Config) -> None:
        self._context = context
        self._config = config
        self._chunking = Chunking(config.chunk_tokens, config.chunk_overlap)
        self._database = Database(context.state_dir, self._chunking.identity)
        self._catalog: Catalog | None = None

    def search(self, query: SearchQuery) -> MemoryResults:
        """Search after bringing the index up to date. When that fails, what is there answers, and says so.

        Raises `UsageError` for a missing workspace, `MemoryUnavailable` when the index cannot be read.
        """
        degraded = None
        try:
            self.sync()
        except UsageError:
            raise
        except LamellaError as error:
            log.warning("the memory index is not up to date: %s", error)
            degraded = Degraded(f"the index is not up to date: {error}", self.name)
        hits = self._run(lambda: self._search(query))
        return MemoryResults(hits, self.name, degraded)

    def sync(self, *, force: bool = False) -> SyncReport:
        """See `sync_index`. Raises `UsageError` for a missing workspace, `MemoryUnavailable` when the
        index cannot be written."""
        return self._run(lambda: sync_index(self._database, self._context.workspace, self._chunking, force=force))

    def status(self) -> dict[str, Any]:
        """Facts about the index as it is, without bringing it up to date."""
        path = self._database.path
        facts: dict[str, Any] = {
            "backend": self.name,
            "mode": "keyword",
            "workspace": str(self._context.workspace),
            "database": str(path),
            "databaseBytes": path.stat().st_size if path.exists() else 0,
            "files": 0,
            "chunks": 0,
            "chunkTokens": self._chunking.size,
            "chunkOverlap": self._chunking.overlap,
        }
        if path.exists():
            facts.update(self._run(self._counts))
        return facts

    def close(self) -> None:
        self._database.close()

    def _search(self, query: SearchQuery) -> tuple[MemoryHit, ...]:
        self._database.prepare()
        with self._database.read() as connection:
            if self._catalog is None or self._catalog.stamp != read_stamp(connection):
                self._catalog = load_catalog(connection)
            return search_index(connection, self._catalog, query, Style(self._config.snippet_chars))

    def _counts(self) -> dict[str, int]:
        self._database.prepare()
        with self._database.read() as connection:
            return {
                name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("files", "chunks")
            }

    def _run(self, action: Callable[[], T]) -> T:
        """Do something with the database; once more with a new one when the old one is broken."""
        try:
            try:
                return action()
            except NotAnIndex as error:
                log.warning("%s: %s", self._database.path, error)
                self._database.discard(str(error))
                return action()
        except OSError as error:  # a lock that is not free in time is one too
            if isinstance(error, LamellaError):
                raise
            raise MemoryUnavailable(f"the memory index {self._database.path} cannot be used: {error}") from error


def open_sqlite(context: BackendContext, config: Config) -> SqliteBackend:
    """Open the backend for an agent. Nothing is read or written before it is used."""
    return SqliteBackend(context, config)
