"""Long-term memory of one agent: a backend to search with, and the writer."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from lamella.errors import LamellaError
from lamella.memory.errand import Errand, StillRunning
from lamella.memory.fallback import FallbackBackend
from lamella.memory.pairing import RESTORED
from lamella.memory.paths import CURATED, CURATED_LOWER, FOLDER, is_note
from lamella.memory.reading import read_memory
from lamella.memory.roots import extra_roots
from lamella.memory.scan import IGNORED_FOLDERS
from lamella.text.days import human_day, unix_ms, zone
from lamella.types.memory import (
    MemoryBackend,
    MemoryResults,
    MemoryText,
    MemoryWrite,
    ProbingBackend,
    ProgressListener,
    Provenance,
    SearchQuery,
    SyncReport,
    WatchEvent,
)
from lamella_memory_core.backends import choose_backend
from lamella_memory_core.choices import FULL, MEANING_OFF
from lamella_memory_core.config import Config
from lamella_memory_core.following.folders import Root
from lamella_memory_core.following.upkeep import Upkeep
from lamella_memory_core.following.watch import Watch
from lamella_memory_core.index.synced import note_synced, read_synced, what_failed

if TYPE_CHECKING:
    from lamella.memory.writer import MemoryWriter
    from lamella.types.events import Notice
    from lamella.types.hooks import MemoryContext

log = logging.getLogger(__name__)

_MOST_NOTICES = 16  # a program that never runs a turn fetches none


class Memory:
    """Implements `lamella.types.memory.MemoryService` over the backend that the configuration names.

    Calls may come from several threads; the backend sees one search, and one sync, at a time. A
    process that searches twice begins to follow the files.
    """

    def __init__(self, context: MemoryContext, config: Config | None = None) -> None:
        """Raises `MemoryUnavailable` when the chosen backend is not on offer and nothing answers for it,
        `UsageError` for an unknown time zone."""
        self._context = context
        self._config = config or Config()
        zone(context.timezone)  # an unknown one is told now, not at the first note
        self._notices: deque[Notice] = deque(maxlen=_MOST_NOTICES)
        self._backend = choose_backend(context, self._config, self._told)
        # One with another behind it has a queue of its own, which the other need not wait in.
        queues = isinstance(self._backend, FallbackBackend)
        self._one_search = nullcontext() if queues else threading.Lock()
        self._one_sync = nullcontext() if queues else threading.Lock()
        self._searched = False
        self._closed = False
        self._index = ""  # the state of the index after the last look; another process may have changed it since
        self._background: Errand[SyncReport] | None = None
        watch = Watch(_roots(context, self._config)) if self._config.watch else None
        quiet, interval = self._config.watch_debounce_ms / 1000, self._config.sync_interval_minutes * 60
        self._upkeep = Upkeep(lambda progress: self._sync_backend(progress=progress), watch, quiet, interval)

    @property
    def backend(self) -> MemoryBackend:
        return self._backend

    @cached_property
    def writer(self) -> MemoryWriter:
        from lamella.memory.writer import MemoryWriter

        return MemoryWriter(self._context.workspace, self._context.state_dir, self._context.timezone)

    def news(self) -> list[Notice]:
        """Changes of who answers that nobody has been told of yet."""
        return [self._notices.popleft() for _ in range(len(self._notices))]

    def probe(self) -> None:
        """Implements `lamella.types.memory.ProbingMemory`."""
        if isinstance(self._backend, ProbingBackend):
            self._backend.probe()

    def search(self, query: SearchQuery) -> MemoryResults:
        if query.today is None:
            query = evolve(query, today=human_day(tz=self._context.timezone))
        if self._searched:
            self._upkeep.begin()
        with self._one_search:
            self._searched = True
            if query.as_is or not self._config.sync_on_search:
                found = self._backend.search(evolve(query, as_is=True))
            else:
                found = self._search_up_to_date(query)
        return _without_secrets(found) if self._config.redact_notes else found

    def warm_up(self) -> None:
        """Load what a search needs, so that the first one has it already."""
        with self._one_search:
            self._backend.search(SearchQuery("memory", 1, as_is=True))

    def read(self, path: str, *, start_line: int = 1, lines: int | None = None) -> MemoryText:
        return read_memory(
            self._context.workspace, path, start_line=start_line, lines=lines, extra_paths=self._config.extra_paths
        )

    def append(self, text: str, *, path: str | None = None, provenance: Provenance) -> MemoryWrite:
        """Append and index. The note is safe when this returns; the index can catch up later."""
        written = self.writer.append(path, text, provenance)
        try:
            self._sync_within_reason()
        except StillRunning:
            log.info("%s was written; the index is still being brought up to date", written.path)
        except LamellaError as error:
            log.warning("%s was written, but the index is not up to date: %s", written.path, error)
        return written

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        mark = self._upkeep.look()
        report = self._sync_backend(force=force, progress=progress)
        if not report.problem:  # which may be that the chosen backend has seen nothing of it
            self._upkeep.confirm(mark)
        return report

    def sync_in_background(self) -> None:
        """Begin to bring the index up to date, unless that goes on already. What goes wrong is noted."""
        if self._background is None or self._background.done:
            self._background = Errand(self.sync, "lamella-sync")

    def watch(self, told: Callable[[WatchEvent], None], stopped: threading.Event) -> None:
        """Implements `lamella.types.memory.WatchingMemory`."""
        self._upkeep.run(told, stopped)

    def status(self) -> dict[str, Any]:
        synced = read_synced(self._context.state_dir, self._backend.name)
        facts = self._backend.status()
        if facts.get("fallback") and str(facts.get("problem")).startswith(MEANING_OFF):
            facts["problem"] = None  # a fallback that keeps keywords only is as it should be
        return {
            "backend": self._backend.name,
            "active": self._backend.name,
            "fallback": None,
            **facts,
            "lastSync": synced.at,
            "lastError": synced.error or None,
            "watch": self._upkeep.facts(),
            "off": [*facts.get("off", []), *self._off()],
        }

    def close(self) -> None:
        self._closed = True
        self._upkeep.stop()
        self._backend.close()
        self._upkeep.close()
        if self._background is not None:
            self._background.wait(2.0)

    def _sync_within_reason(self) -> None:
        """Sync. Raises `StillRunning` when another backend takes long, which goes on in the background then."""
        if isinstance(self._backend, FallbackBackend):
            Errand(self.sync, "lamella-sync").result(self._config.backend_timeout_seconds)
        else:
            self.sync()

    def _told(self, notice: Notice) -> None:
        """A backend that is back has not seen what has changed while it was left alone."""
        self._notices.append(notice)
        if notice.code == RESTORED and not self._closed:
            self.sync_in_background()

    def _search_up_to_date(self, query: SearchQuery) -> MemoryResults:
        """Search, after a look at the files unless the index is known to hold them all."""
        mark = self._upkeep.look()
        if self._holds_all():
            found = self._backend.search(evolve(query, as_is=True))
            if found.index == self._index:
                return found
        found = self._backend.search(query)
        self._index = found.index
        if found.in_step:
            self._upkeep.confirm(mark)
            note_synced(self._context.state_dir, self._backend.name, at=unix_ms())
        return found

    def _sync_backend(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        begun = unix_ms()
        try:
            with self._one_sync:
                report = self._backend.sync(force=force, progress=progress)
        except LamellaError as error:
            if not self._closed:  # a sync that is cut off by closing has not failed; the next one goes on
                note_synced(self._context.state_dir, self._backend.name, error=str(error))
            raise
        note_synced(self._context.state_dir, self._backend.name, at=begun, error=what_failed(report))
        return report

    def _holds_all(self) -> bool:
        """Whether nothing has changed since the last look. Transcripts are not followed: most that happens
        to them can wait, which only a look at them tells."""
        return self._upkeep.holds_all() and not self._config.session_memory

    def _off(self) -> list[dict[str, str]]:
        """What the settings have switched off, and what switches it on."""
        section = "plugins.config.memory-core"
        switches = {
            "following the files": (self._config.watch, "watch = true"),
            "sync on search": (self._config.sync_on_search, "sync_on_search = true"),
            "recall before a turn": (self._config.auto_recall, "auto_recall = true"),
            "search of what was said in sessions": (self._config.session_memory, "session_memory = true"),
        }
        if isinstance(self._backend, FallbackBackend):
            full = self._config.fallback == FULL
            switches["search by meaning when the chosen backend fails"] = (full, f'fallback = "{FULL}"')
        return [{"what": what, "turnOn": f"{section}.{how}"} for what, (on, how) in switches.items() if not on]


def _without_secrets(found: MemoryResults) -> MemoryResults:
    """For backends that keep notes as they are."""
    from lamella.text.redact import redact

    return evolve(found, hits=tuple(evolve(hit, snippet=redact(hit.snippet)) for hit in found.hits))


def _roots(context: MemoryContext, config: Config) -> list[Root]:
    """The folders that hold memory."""
    workspace = context.workspace
    roots = [Root(workspace, frozenset((CURATED, CURATED_LOWER, FOLDER))), Root(workspace / FOLDER)]
    return roots + [_extra_root(Path(extra.path)) for extra in extra_roots(workspace, config.extra_paths)]


def _extra_root(path: Path) -> Root:
    return Root(path.parent, frozenset((path.name,))) if is_note(path.name) else Root(path, ignored=IGNORED_FOLDERS)
