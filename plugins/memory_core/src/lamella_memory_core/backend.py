"""The backend `sqlite`: an index of words and vectors over the notes."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from lamella.errors import LamellaError, MemoryUnavailable, UsageError
from lamella.memory.closing import until_closed
from lamella.memory.errand import Errand, StillRunning
from lamella.memory.meaning import QUESTION_SECONDS, Meaning, NoMeaning
from lamella.memory.scan import Scan, scan_memory
from lamella.types.memory import (
    BackendContext,
    Degraded,
    MemoryResults,
    ProgressListener,
    SearchQuery,
    SyncReport,
)
from lamella_memory_core.choices import MEANING_OFF
from lamella_memory_core.config import Config
from lamella_memory_core.index.chunking import Chunking
from lamella_memory_core.index.database import is_busy
from lamella_memory_core.index.growth import Growth
from lamella_memory_core.index.index import Emptied, Index
from lamella_memory_core.ranking.style import style_of

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Singles

# How long a search waits for vectors of new texts; after that it answers with those that there are.
VECTOR_SECONDS = 5.0

log = logging.getLogger(__name__)


class SqliteBackend:
    """Implements `lamella.types.memory.MemoryBackend`.

    A search waits a bounded time for the index to catch up, and goes on without what is not there yet.
    """

    name = "sqlite"

    def __init__(self, context: BackendContext, config: Config) -> None:
        self._context = context
        self._config = config
        self._style = style_of(config)
        self._chunking = Chunking(
            config.chunk_tokens, config.chunk_overlap, config.chunk_rule, redacted=config.redact_notes
        )
        self._meaning = Meaning(config.embedder, context.embedders)
        self._index = self._index_in(context.state_dir)
        self._passing: tempfile.TemporaryDirectory[str] | None = None
        self._why_passing = ""
        self._looking: Errand[SyncReport] | None = None
        self._closing = threading.Event()

    def search(self, query: SearchQuery) -> MemoryResults:
        """Search after bringing the index up to date. When that fails, what is there answers, and says so.

        Where no index can be kept, one that passes with this object answers. Raises `UsageError` for a
        missing workspace, `MemoryUnavailable` when the index is busy or cannot be had at all.
        """
        try:
            return self._search(query)
        except MemoryUnavailable as error:
            if self._passing is not None or is_busy(error):
                raise
            self._use_passing_index(error)
            return self._search(query)

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        """See `sync_index`; and vectors for all texts. Raises `UsageError` for a missing workspace,
        `MemoryUnavailable` when the index cannot be written."""
        try:
            return self._sync(force, progress)
        except Emptied:
            return self._sync(force, progress)

    def status(self) -> dict[str, Any]:
        """Facts about the index as it is, without bringing it up to date. That it cannot be used is one too."""
        path = self._index.path
        model, why_none = self._model()
        facts: dict[str, Any] = {
            "backend": self.name,
            "mode": "hybrid" if model else "keyword",
            "embedder": self._meaning.name,
            "model": model,
            "problem": self._why_passing or why_none or None,
            "workspace": str(self._context.workspace),
            "extraPaths": list(self._context.extra_paths),
            "database": str(path),
            "databaseBytes": path.stat().st_size if path.exists() else 0,
            "files": 0,
            "chunks": 0,
            "vectors": [],
            "behind": None,
            "skipped": [],
            "chunkTokens": self._chunking.size,
            "chunkOverlap": self._chunking.overlap,
        }
        if path.exists():
            try:
                facts.update(self._index.facts())
            except MemoryUnavailable as error:
                facts["problem"] = str(error)
        return facts

    def close(self) -> None:
        self._closing.set()
        if self._looking is not None:
            self._looking.wait(2.0)
        self._index.close()
        if self._passing is not None:
            with contextlib.suppress(OSError):
                self._passing.cleanup()

    def _sync(self, force: bool, progress: ProgressListener | None) -> SyncReport:
        told = until_closed(self._closing, progress)
        report = self._index.sync_files(told, force=force)
        if not self._meaning.wanted:
            return report
        try:
            return evolve(report, embedded=self._index.fill(told))
        except NoMeaning as error:
            return evolve(report, degraded=str(error))

    def _index_in(self, folder: Path) -> Index:
        growth = Growth(self._config.session_delta_bytes, self._config.session_delta_messages)
        return Index(folder, self._context.workspace, self._scan, self._chunking, self._style, self._meaning, growth)

    def _scan(self) -> Scan:
        context = self._context
        return scan_memory(context.workspace, context.extra_paths, context.transcripts)

    def _use_passing_index(self, error: MemoryUnavailable) -> None:
        log.warning("no memory index can be kept: %s", error)
        try:
            self._passing = tempfile.TemporaryDirectory(prefix="lamella-memory-", ignore_cleanup_errors=True)
        except OSError:
            raise error from None
        self._why_passing = f"no index can be kept, one is made for each run: {error}"
        self._index.close()
        self._index = self._index_in(Path(self._passing.name))

    def _search(self, query: SearchQuery) -> MemoryResults:
        """Once more when the index had to be made anew, since it was empty then."""
        try:
            return self._answer(query, self._why_passing)
        except Emptied as error:
            return self._answer(query, self._why_passing, str(error) if query.as_is else "")

    def _answer(self, query: SearchQuery, *known_problems: str) -> MemoryResults:
        problems = [problem for problem in known_problems if problem]
        report = None if query.as_is else self._catch_up_with_files(problems)
        question = None
        if self._meaning.wanted and query.text.strip():
            try:
                question = self._ask_embedder(query, report, problems)
            except NoMeaning as error:
                problems.append(f"{error}; only words were compared")
        found = self._index.search(query, question)
        if found.problem:
            problems.append(found.problem)
        degraded = Degraded("; ".join(dict.fromkeys(problems)), self.name) if problems else None
        return MemoryResults(
            found.hits,
            self.name,
            degraded,
            in_step=report is not None,
            mode="keyword" if question is None else "hybrid",
            embedder=self._meaning.name if self._meaning.wanted else "",
            model="" if question is None else self._meaning.embedder().identity,
            index=found.index,
        )

    def _catch_up_with_files(self, problems: list[str]) -> SyncReport | None:
        """The report of a sync of all files that are there now; None, and a problem, without one."""
        try:
            return self._sync_within(self._config.search_wait_seconds)
        except UsageError:
            raise
        except StillRunning:
            problems.append("the index is still being brought up to date")
        except LamellaError as error:
            log.warning("the memory index is not up to date: %s", error)
            problems.append(f"the index is not up to date: {error}")
        return None

    def _sync_within(self, seconds: float) -> SyncReport:
        """Raises `StillRunning` when it takes longer; it goes on then, and later searches do not wait for
        it again."""
        earlier = self._looking
        if earlier is not None and not earlier.done:  # it may have passed by what has changed since
            with contextlib.suppress(LamellaError):
                earlier.result(seconds)
        told = until_closed(self._closing)
        self._looking = Errand(lambda: self._index.sync_files(told, patient=True), "lamella-sync")
        return self._looking.result(seconds)

    def _ask_embedder(self, query: SearchQuery, report: SyncReport | None, problems: list[str]) -> Singles:
        """The question's vector, after making those of new texts, or beginning to. Raises `NoMeaning`."""
        self._meaning.embedder(QUESTION_SECONDS)
        if not query.as_is:
            changed = report is not None and bool(report.added or report.updated or report.removed)
            problem = self._index.fill_within(VECTOR_SECONDS, changed=changed)
            problems += [problem] if problem else []
        vector: Singles = self._meaning.question(query.text)
        return vector

    def _model(self) -> tuple[str | None, str]:
        """The identity of the embedder; or None, and why meanings are not compared."""
        if not self._meaning.wanted:
            return None, f'{MEANING_OFF}: embedder is none; "static" turns it on'
        try:
            return self._meaning.embedder(QUESTION_SECONDS).identity, ""
        except NoMeaning as error:
            return None, f"{error}: {error.hint}" if error.hint else str(error)


def open_sqlite(context: BackendContext, config: Config) -> SqliteBackend:
    """Open the backend for an agent. Nothing is read or written before it is used."""
    return SqliteBackend(context, config)
