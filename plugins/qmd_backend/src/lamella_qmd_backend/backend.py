"""The backend `qmd`."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from lamella.errors import MemoryPathError, MemoryUnavailable
from lamella.memory.closing import until_closed
from lamella.memory.reading import load
from lamella.memory.scan import FoundFile, Scan
from lamella.memory.transcripts import SOURCE as SESSIONS
from lamella.text.files import decode_text
from lamella.types.memory import (
    BackendContext,
    Degraded,
    MemoryHit,
    MemoryResults,
    ProgressListener,
    SearchQuery,
    SyncReport,
)
from lamella_qmd_backend.asking import Asker, Question
from lamella_qmd_backend.changes import Changes, changes_of, unknown_notes
from lamella_qmd_backend.collections import Collection, Mapped, Mapper
from lamella_qmd_backend.config import QUERY, Config
from lamella_qmd_backend.faults import Kind, QmdFailed
from lamella_qmd_backend.health import check_health
from lamella_qmd_backend.index import PrivateIndex
from lamella_qmd_backend.mending import Mender
from lamella_qmd_backend.output import Result
from lamella_qmd_backend.own import OwnIndex
from lamella_qmd_backend.passages import Candidate, Text, Texts, pick
from lamella_qmd_backend.questions import cleaned, keyword_subs
from lamella_qmd_backend.reports import own_facts, private_facts, report_of
from lamella_qmd_backend.upkeep import Background

# Part of the time that there is for a search, so that its own reason is told when it is over.
_SHARE = 0.8
_MOST_FILES = 100
_IMPATIENT_SECONDS = 5.0

log = logging.getLogger(__name__)


@frozen(slots=True)
class _Look:
    """The files as a search saw them, and what QMD does not know of them."""

    scan: Scan
    changes: Changes
    collections: tuple[Collection, ...]
    identity: str


class QmdBackend:
    """Implements `lamella.types.memory.ProbingBackend`.

    A search never waits for an update: notes that changed since the last one are read beside what QMD
    finds. Only the first index of all is waited for, within the time of a search.
    """

    name = "qmd"

    def __init__(self, context: BackendContext, config: Config) -> None:
        """Nothing is started, read or written yet."""
        self._context = context
        self._config = config
        self._private = None if config.collections else PrivateIndex(context, config)
        self._own = OwnIndex(context, config) if config.collections else None
        self._index = self._own or self._private_index()
        self._asker = Asker(config, self._index.runner, self._index.version)
        self._texts = Texts(self._read)
        self._closed = threading.Event()
        self._background: Background | None = None
        self._mender: Mender | None = None
        if self._private is not None:
            self._background = Background(self._private, until_closed(self._closed))
            self._mender = Mender(self._private, self._asker, self._background)
        self._last_look: _Look | None = None
        self._dropped = 0

    def search(self, query: SearchQuery) -> MemoryResults:
        """Raises `MemoryUnavailable` when QMD does not answer in time, `UsageError` for a missing workspace."""
        mode = "hybrid" if self._asker.by_meaning else "keyword"
        if not keyword_subs(query.text):
            self._index.look()  # a missing workspace is an error whatever is asked
            return MemoryResults((), self.name, mode=mode)
        with self._folder_faults():
            return self._search(query, mode, time.monotonic() + self._seconds())

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        """Update QMD's index; `force` makes it anew. The user's own index is left as it is.

        Without `progress`, vectors are made in the background, and a long update of another program is not
        waited for: a search finds what changed all the same.

        Raises `MemoryUnavailable` when it cannot be updated, `UsageError` for a missing workspace.
        """
        if self._private is None or self._background is None:
            scan = self._index.look()
            return SyncReport(str(scan.workspace), len(scan.files), unchanged=len(scan.files), skipped=scan.skipped)
        # Who wants neither a new index nor to hear of progress has something else to do, such as a note to write.
        patient = force or progress is not None
        wait = self._config.update.timeout_seconds if patient else _IMPATIENT_SECONDS
        told = until_closed(self._closed, progress)
        with self._folder_faults():
            done = self._private.update(force=force, again=patient, vectors=patient, wait=wait, progress=told)
        if done is not None:
            self._background.embed()
            return report_of(done)
        problem = "another update of QMD's index takes its time"
        if patient:
            raise QmdFailed(problem, Kind.BUSY)
        scan = self._private.look()
        return SyncReport(str(scan.workspace), len(scan.files), unchanged=len(scan.files), problem=problem)

    def status(self) -> dict[str, Any]:
        """Facts, from a real `qmd status`. That QMD does not work is one of them."""
        facts: dict[str, Any] = {
            "backend": self.name,
            "mode": "hybrid" if self._asker.by_meaning else "keyword",
            "qmdMode": self._config.mode,
            "problem": None,
            "workspace": str(self._context.workspace),
            "extraPaths": list(self._context.extra_paths),
        }
        try:
            with self._folder_faults():
                self._asker.check_mode()
                facts |= own_facts(self._own) if self._own is not None else private_facts(self._private_index())
                facts["qmdServer"] = self._asker.server
        except MemoryUnavailable as error:
            facts["problem"] = f"{error}: {error.hint}" if error.hint else str(error)
        facts["droppedResults"] = self._dropped
        return facts

    def probe(self) -> None:
        """Run a command that opens the index. Raises `MemoryUnavailable` that says why it cannot."""
        with self._folder_faults():
            self._asker.check_mode()
            check_health(self._index, self._config.limits.timeout_seconds)

    def close(self) -> None:
        self._closed.set()
        if self._background is not None:
            self._background.close()
        self._index.close()
        self._asker.close()

    # --- a search -----------------------------------------------------------------------------------------

    def _search(self, query: SearchQuery, mode: str, deadline: float) -> MemoryResults:
        self._asker.check_mode()
        if self._mender is not None:
            self._mender.wait_for_first_index(min(self._config.update.first_wait_seconds, deadline - time.monotonic()))
        look = self._look(query)
        mapped = self._found(query, look, deadline)
        fresh, left_out = unknown_notes(look.scan, look.changes)
        hits = self._hits(query, mapped, [f for f in fresh if _is_wanted(f, query)])
        missing = self._missing_vectors()
        problem = "; ".join(filter(None, (missing, self._problem(mapped, hits, left_out))))
        self._dropped += mapped.dropped
        if not query.as_is:
            self._update_if_due(look)
        return MemoryResults(
            tuple(hits),
            self.name,
            Degraded(problem, self.name) if problem else None,
            in_step=not query.as_is and not look.changes,
            mode="keyword" if missing else mode,
            index=look.identity,
        )

    def _seconds(self) -> float:
        limits, allowed = self._config.limits, self._context.search_seconds
        own = limits.query_timeout_seconds if self._config.mode == QUERY else limits.timeout_seconds
        return own if allowed is None else min(own, allowed * _SHARE)

    def _look(self, query: SearchQuery) -> _Look:
        """The files; with `as_is` as they were seen last, as long as the index is the same."""
        index, last = self._private, self._last_look
        if index is None:
            return _Look(self._index.look(), Changes(), self._own_index().collections(), "own")
        state = index.state()
        if query.as_is and last is not None and last.identity == state.identity:
            return last
        scan = index.look()
        look = _Look(scan, changes_of(scan, state.files), index.collections(scan), state.identity)
        self._last_look = look
        return look

    def _found(self, query: SearchQuery, look: _Look, deadline: float) -> Mapped:
        collections = tuple(c for c in look.collections if not query.sources or c.source in query.sources)
        if not collections:
            return Mapped()
        excluded = sum(found.name in query.exclude for found in look.scan.files) if query.exclude else 0
        limit = min(max(self._config.limits.files, query.max_results) + excluded, _MOST_FILES)
        generation = look.identity.partition("/")[0]
        whole = not query.sources and self._private is not None and self._private.state().documents > 0
        question = Question(query.text, collections, limit, deadline, generation, expects_documents=whole)
        results = self._ask(question)
        exports = self._private.exports.by_path(look.scan.files) if self._private is not None else {}
        mapper = Mapper(look.scan, collections, exports, slugs=self._index.version().writes_slugs)
        mapped = mapper.map(results)
        mapped.files = [(found, result) for found, result in mapped.files if _is_wanted(found, query)]
        return mapped

    def _ask(self, question: Question) -> list[Result]:
        if self._mender is not None:
            return self._mender.ask(question)
        try:
            return self._asker.ask(question)
        except QmdFailed:
            self._own_index().forget()
            raise

    def _hits(self, query: SearchQuery, mapped: Mapped, fresh: Sequence[FoundFile]) -> list[MemoryHit]:
        known = {found.name for found, _ in mapped.files}
        candidates = []
        for rank, (found, result) in enumerate(mapped.files):
            if (text := self._texts.of(found)) is not None:
                candidates.append(Candidate(found, text, rank, result.first_line, result.last_line))
        for found in fresh:
            if found.name not in known and (text := self._texts.of(found)) is not None:
                candidates.append(Candidate(found, text))
        limits = self._config.limits
        hits = pick(
            cleaned(query.text),
            candidates,
            by_meaning=self._asker.by_meaning,
            per_file=limits.passages_per_file,
            snippet_chars=limits.snippet_chars,
            explain=query.explain,
        )
        return [hit for hit in hits if hit.score >= query.min_score][: max(query.max_results, 0)]

    def _missing_vectors(self) -> str:
        """Why meaning took no part though it was asked for; empty when it did."""
        state = self._private.state() if self._private is not None and self._asker.by_meaning else None
        if state is None or state.embedded_at:
            return ""
        why = f": {state.embed_error}" if state.embed_error else ""
        return f"QMD has no vectors yet, only words were compared{why}"

    def _problem(self, mapped: Mapped, hits: Sequence[MemoryHit], left_out: int) -> str:
        if left_out:
            return f"{left_out} changed files are not in QMD's index yet"
        if self._own is not None and mapped.dropped and not hits:
            keys = "plugins.config.memory-core.extra_paths"
            return f"{mapped.dropped} results of QMD lie outside of memory; {keys} takes in their folders"
        return ""

    def _read(self, found: FoundFile) -> Text | None:
        """A file's text; None when it is gone, or became something that is not read."""
        if found.source == SESSIONS:
            talk = self._private.exports.read(found) if self._private is not None else None
            return Text.of(found.name, talk.text, talk.lines) if talk is not None else None
        try:
            content = load(found.file)
        except (OSError, MemoryPathError) as error:
            log.warning("%s cannot be read: %s", found.name, error)
            return None
        return Text.of(found.name, decode_text(content.data).text) if content is not None else None

    # --- updates ------------------------------------------------------------------------------------------

    def _update_if_due(self, look: _Look) -> None:
        index, background = self._private, self._background
        if index is not None and background is not None and index.is_due(look.scan, look.changes):
            background.update(again=not look.changes)

    @contextlib.contextmanager
    def _folder_faults(self) -> Iterator[None]:
        """What the system refuses in the state folder keeps QMD from working, and nothing else."""
        try:
            yield
        except OSError as error:
            place = os.fsdecode(error.filename) if error.filename else self._index.folder
            raise QmdFailed(f"{place} cannot be used: {error.strerror or error}") from error

    def _private_index(self) -> PrivateIndex:
        assert self._private is not None
        return self._private

    def _own_index(self) -> OwnIndex:
        assert self._own is not None
        return self._own


def _is_wanted(found: FoundFile, query: SearchQuery) -> bool:
    return found.name not in query.exclude and (not query.sources or found.source in query.sources)
