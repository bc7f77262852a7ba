"""The backend: it follows the notes, and answers from the table of their passages."""

from __future__ import annotations

import logging
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import frozen

from lamella.errors import LamellaError, MemoryUnavailable, MissingExtra, UsageError
from lamella.memory.closing import until_closed
from lamella.memory.errand import Errand, StillRunning
from lamella.memory.meaning import QUESTION_SECONDS, NoMeaning
from lamella.memory.meaning import Meaning as Embedding
from lamella.text.unicode import well_formed
from lamella.types.memory import (
    BackendContext,
    Degraded,
    MemoryResults,
    ProgressListener,
    SearchQuery,
    SyncReport,
    traits_of,
)
from lamella_memory_lancedb.notes.config import Config
from lamella_memory_lancedb.notes.passages import Cutting
from lamella_memory_lancedb.notes.ranking import Meaning, ranked
from lamella_memory_lancedb.search.background import Background
from lamella_memory_lancedb.store.database import load
from lamella_memory_lancedb.store.memory import quoted
from lamella_memory_lancedb.vectors import check

if TYPE_CHECKING:
    from lamella_memory_lancedb.notes.following import Follower
    from lamella_memory_lancedb.notes.table import Table

NAME = "lancedb"
_FOLDER = "lancedb-notes"
_WAIT_SECONDS = 10.0  # for the index to catch up with the files
_USUAL_SHARE = 0.5
_MOST_QUERY_CHARS = 4000
# Candidates of each side: so many, and so many for each result.
_LEAST_CANDIDATES, _CANDIDATES = 60, 6
log = logging.getLogger(__name__)


@frozen(slots=True)
class _Index:
    table: Table
    follower: Follower


class NotesBackend:
    """Implements `lamella.types.memory.ProbingBackend`.

    A search waits a bounded time for the index to catch up, and goes on without what is not there yet.
    """

    name = NAME

    def __init__(self, context: BackendContext, config: Config) -> None:
        self._context = context
        self._config = config
        self._embedding = Embedding(config.embedder, context.embedders, check)
        self._background = Background(self._embedding)
        self._looking: Errand[SyncReport] | None = None
        self._closing = threading.Event()
        limit = context.search_seconds
        self._wait = _WAIT_SECONDS if limit is None else min(_WAIT_SECONDS, limit / 2)

    def search(self, query: SearchQuery) -> MemoryResults:
        """Raises `UsageError` for a missing workspace, `MemoryUnavailable` when the table cannot be read."""
        problems: list[str] = []
        report = None if query.as_is else self._catch_up(problems)
        text = well_formed(query.text[:_MOST_QUERY_CHARS])
        meaning, model = None, ""
        if self._embedding.wanted and text.strip():
            try:
                meaning, model = self._question(text)
                problems += [report.degraded] if report is not None and report.degraded else []
            except NoMeaning as error:
                problems.append(f"{error}; only words were compared")
        count = max(_LEAST_CANDIDATES, _CANDIDATES * query.max_results)
        condition = _condition(query)
        found = self._index.table.with_words(text, condition, count)
        if meaning is not None:
            found += self._index.table.near(meaning.vector, condition, count)
        candidates = {(c.passage.path, c.passage.number): c for c in found}
        hits = ranked(text, list(candidates.values()), meaning, self._config.snippet_chars, explain=query.explain)
        wanted = [hit for hit in hits if hit.score >= query.min_score]
        return MemoryResults(
            tuple(wanted[: query.max_results]),
            NAME,
            Degraded("; ".join(dict.fromkeys(problems)), NAME) if problems else None,
            in_step=report is not None and report.ok,
            mode="hybrid" if model else "keyword",
            embedder=self._config.embedder if self._embedding.wanted else "",
            model=model,
        )

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        """Read files that have changed, and make vectors of texts that are new. Raises `UsageError` for a missing
        workspace, `MemoryUnavailable` when the table cannot be written."""
        return self._index.follower.sync(force, until_closed(self._closing, progress))

    def status(self) -> dict[str, Any]:
        """Facts about the table as it is."""
        facts: dict[str, Any] = {
            "backend": NAME,
            "mode": "keyword",
            "embedder": self._config.embedder,
            "model": None,
            "problem": None,
            "workspace": str(self._context.workspace),
            "uri": str(self._index.table.location.folder),
            "files": 0,
            "chunks": 0,
            "withoutVector": 0,
            "tableVersion": None,
        }
        table = self._index.table
        try:
            facts |= {"files": len(table.files()), "chunks": table.count()}
            facts |= {"withoutVector": table.count_without_vector(), "tableVersion": table.version()}
        except MemoryUnavailable as error:
            facts["problem"] = str(error)
            return facts
        embedder, problem = self._index.follower.embedder()
        if embedder is not None:
            facts |= {"mode": "hybrid", "model": embedder.identity}
        return facts | {"problem": problem or None}

    def probe(self) -> None:
        """Whether LanceDB is there and the table can be read. Raises `MemoryUnavailable` that says why not."""
        try:
            load()
        except MissingExtra as error:
            raise MemoryUnavailable(str(error), hint=error.hint) from error
        self._index.table.version()

    def close(self) -> None:
        self._closing.set()
        if self._looking is not None:
            self._looking.wait(2.0)
        if "_index" in vars(self):
            self._index.table.close()

    # --- searching ----------------------------------------------------------------------------------------

    @cached_property
    def _index(self) -> _Index:
        from lamella_memory_lancedb.notes.following import Follower  # numpy and pyarrow wait until now
        from lamella_memory_lancedb.notes.table import Table

        config = self._config
        table = Table(self._context.state_dir / _FOLDER, config.lock_seconds, config.index_rows)
        cutting = Cutting(config.chunk_tokens, config.chunk_overlap)
        return _Index(table, Follower(self._context, cutting, self._embedding, table))

    def _catch_up(self, problems: list[str]) -> SyncReport | None:
        """The report of a sync of all files that are there now; None, and a problem, without one. Raises
        `MemoryUnavailable` when nothing was ever taken in."""
        earlier = self._looking
        try:
            if earlier is not None and not earlier.wait(self._wait):
                raise StillRunning  # it may have passed by what has changed since, but another one would only queue up
            self._looking = Errand(self.sync, "lamella-sync")
            return self._looking.result(self._wait)
        except UsageError:
            raise
        except StillRunning:
            problems.append("the index is still being brought up to date")
        except LamellaError as error:
            log.warning("the index of notes is not up to date: %s", error)
            problems.append(f"the index is not up to date: {error}")
        if self._index.table.label() is None:
            raise MemoryUnavailable(problems[-1])
        return None

    def _question(self, text: str) -> tuple[Meaning, str]:
        """The question's meaning, and the identity of its embedder. Raises `NoMeaning`."""
        embedder = self._embedding.embedder(QUESTION_SECONDS)
        label = self._index.table.label()
        if label is not None and label.identity != embedder.identity:
            raise NoMeaning(f"the passages have no vectors of {embedder.identity} yet")
        share = traits_of(embedder).dense_share
        vector = self._embedding.question(text)
        likeness = self._background.likeness()
        return Meaning(vector, likeness, _USUAL_SHARE if share is None else share), embedder.identity


def _condition(query: SearchQuery) -> str:
    """The SQL condition that a passage may be in the answer; empty for any. Files' own rows have neither words
    nor vectors, so that they need no condition, which would take longer than the search itself."""
    parts = []
    if query.sources:
        parts.append(f"source IN ({', '.join(map(quoted, query.sources))})")
    if query.exclude:
        parts.append(f"path NOT IN ({', '.join(map(quoted, query.exclude))})")
    return " AND ".join(parts)
