"""The backend `sqlite`: an index of words and vectors over the notes."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve

from lamella.errors import LamellaError, MemoryUnavailable, UsageError
from lamella.types.memory import BackendContext, Degraded, MemoryResults, SearchQuery, SyncReport
from lamella_memory_core.chunking import Chunking
from lamella_memory_core.config import Config
from lamella_memory_core.database import Database, NotAnIndex
from lamella_memory_core.meaning import Filler, Meaning, NoMeaning
from lamella_memory_core.search import Style, search_index
from lamella_memory_core.sync import sync_index
from lamella_memory_core.view import View

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Floats, Singles

# How long a search waits for vectors of new texts; after that it answers with those that there are.
VECTOR_SECONDS = 5.0

log = logging.getLogger(__name__)

T = TypeVar("T")


class SqliteBackend:
    """Implements `lamella.types.memory.MemoryBackend`."""

    name = "sqlite"

    def __init__(self, context: BackendContext, config: Config) -> None:
        self._context = context
        self._style = Style(config.snippet_chars, config.dense_share)
        self._chunking = Chunking(config.chunk_tokens, config.chunk_overlap)
        self._database = Database(context.state_dir, self._chunking.identity)
        self._meaning = Meaning(config.embedder, context.embedders)
        self._filler = Filler(self._database, self._meaning)
        self._view = View()

    def search(self, query: SearchQuery) -> MemoryResults:
        """Search after bringing the index up to date. When that fails, what is there answers, and says so.

        Raises `UsageError` for a missing workspace, `MemoryUnavailable` when the index cannot be read.
        """
        problems: list[str] = []
        report = None
        try:
            report = self._run(self._sync_files)
        except UsageError:
            raise
        except LamellaError as error:
            log.warning("the memory index is not up to date: %s", error)
            problems.append(f"the index is not up to date: {error}")
        question = None
        if self._meaning.wanted and query.text.strip():
            changed = report is not None and bool(report.added or report.updated or report.removed)
            try:
                self._run(lambda: self._catch_up(problems, changed=changed))
                question = self._meaning.question(query.text)
            except NoMeaning as error:
                problems.append(f"{error}; only words were compared")
        found = self._run(lambda: self._search(query, question, problems))
        degraded = Degraded("; ".join(dict.fromkeys(problems)), self.name) if problems else None
        return evolve(found, degraded=degraded)

    def sync(self, *, force: bool = False) -> SyncReport:
        """See `sync_index`; and vectors for all texts. Raises `UsageError` for a missing workspace,
        `MemoryUnavailable` when the index cannot be written."""
        report = self._run(lambda: self._sync_files(force=force))
        if not self._meaning.wanted:
            return report
        try:
            return evolve(report, embedded=self._run(self._filler.fill))
        except NoMeaning as error:
            return evolve(report, degraded=str(error))

    def status(self) -> dict[str, Any]:
        """Facts about the index as it is, without bringing it up to date."""
        path = self._database.path
        hybrid = self._meaning.wanted and self._meaning.installed
        facts: dict[str, Any] = {
            "backend": self.name,
            "mode": "hybrid" if hybrid else "keyword",
            "embedder": self._meaning.name,
            "problem": self._why_no_vectors(),
            "workspace": str(self._context.workspace),
            "database": str(path),
            "databaseBytes": path.stat().st_size if path.exists() else 0,
            "files": 0,
            "chunks": 0,
            "vectors": [],
            "chunkTokens": self._chunking.size,
            "chunkOverlap": self._chunking.overlap,
        }
        if path.exists():
            facts.update(self._run(self._counts))
        return facts

    def close(self) -> None:
        self._filler.close()
        self._database.close()

    def _sync_files(self, *, force: bool = False) -> SyncReport:
        return sync_index(self._database, self._context.workspace, self._chunking, force=force)

    def _catch_up(self, problems: list[str], *, changed: bool) -> None:
        """Make vectors of new texts, or begin to. Raises `NoMeaning`."""
        embedder = self._meaning.embedder()
        self._database.prepare()
        if not changed:
            with self._database.read() as connection:
                changed = bool(self._view.matrix(connection, embedder).missing)
        if changed and (problem := self._filler.fill_within(VECTOR_SECONDS)):
            problems.append(problem)

    def _search(self, query: SearchQuery, question: Singles | None, problems: list[str]) -> MemoryResults:
        self._database.prepare()
        with self._database.read() as connection:
            likeness = None if question is None else self._likeness(connection, question, problems)
            catalog = self._view.catalog(connection)
            return MemoryResults(search_index(connection, catalog, query, self._style, likeness), self.name)

    def _likeness(self, connection: sqlite3.Connection, question: Singles, problems: list[str]) -> Floats | None:
        """Cosines (N,) of all passages; those without a vector get what is usual. None when none has one."""
        matrix = self._view.matrix(connection, self._meaning.embedder())
        if matrix.missing:
            problems.append(f"{matrix.missing} of {len(matrix.known)} passages have no vector yet")
        if not matrix.known.any():
            return None
        likeness: Floats = (matrix.rows @ question).astype("float64")
        likeness[~matrix.known] = likeness[matrix.known].mean()
        return likeness

    def _counts(self) -> dict[str, Any]:
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
            return counts

    def _why_no_vectors(self) -> str | None:
        if not self._meaning.wanted:
            return "search by meaning is off: embedder is none"
        if not self._meaning.installed:
            return f"embedder {self._meaning.name!r} is not installed: pip install lamella-embedders"
        return None

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
