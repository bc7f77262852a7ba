"""A small memory backend that a test breaks and mends, and the plugin that registers it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lamella import hookimpl
from lamella.errors import MemoryUnavailable
from lamella.memory.scan import scan_memory
from lamella.types.hooks import RegistrationContext
from lamella.types.memory import (
    BackendContext,
    BackendRegistration,
    MemoryHit,
    MemoryResults,
    ProgressListener,
    SearchQuery,
    SyncReport,
)

NAME = "shaky"
OK, FAILS, HANGS, EMPTY, RAISES, WRONG, NOT_OPENED = "ok", "fails", "hangs", "empty", "raises", "wrong", "not opened"
REASON = "the engine of shaky is out of oil"
HINT = "lamella config get memory.backend"


class Mood:
    """How the backends of a test behave from now on, and what was asked of them.

    `path`, if given: a file that holds the mood, for other processes; each call is a line in `path`.calls.
    """

    def __init__(self, now: str = OK, path: Path | None = None) -> None:
        self._now = now
        self.path = path
        self.calls: list[str] = []
        self.most_at_once = 0
        self.release = threading.Event()
        self.probe: Callable[[], None] | None = None
        self._busy = 0
        self._lock = threading.Lock()

    @property
    def now(self) -> str:
        return self.path.read_text() if self.path else self._now

    @now.setter
    def now(self, mood: str) -> None:
        self._now = mood
        if self.path:
            self.path.write_text(mood)

    def searches(self) -> int:
        return self.calls.count("search")

    def note(self, what: str) -> None:
        self.calls.append(what)
        if self.path:
            with self.path.with_suffix(".calls").open("a") as file:
                file.write(f"{what}\n")

    def act(self) -> None:
        """Do what the mood is, as a search or a probe does."""
        with self._lock:
            self._busy += 1
            self.most_at_once = max(self.most_at_once, self._busy)
        try:
            mood = self.now
            if mood == HANGS:
                self.release.wait(60)
                raise MemoryUnavailable("let go")
            if mood == FAILS:
                raise MemoryUnavailable(REASON, hint=HINT)
            if mood == RAISES:
                raise ValueError(f"{REASON}\nsecond line 第二行")
        finally:
            with self._lock:
                self._busy -= 1


class ShakyBackend:
    """Finds the words of a query in the lines of memory files, if its mood is good."""

    name = NAME

    def __init__(self, context: BackendContext, mood: Mood) -> None:
        self.context = context
        self.mood = mood
        self.closed = False

    def search(self, query: SearchQuery) -> MemoryResults:
        self.mood.note("search")
        self.mood.act()
        if self.mood.now == WRONG:
            return json.loads("[]")  # type: ignore[no-any-return]
        hits = () if self.mood.now == EMPTY else tuple(self._hits(query))
        return MemoryResults(hits[: query.max_results], self.name, in_step=True)

    def _hits(self, query: SearchQuery) -> Iterable[MemoryHit]:
        words = set(query.text.lower().split())
        for found in scan_memory(self.context.workspace, self.context.extra_paths).files:
            for number, line in enumerate(found.file.path.read_text("utf-8").splitlines(), 1):
                if words & set(line.lower().split()):
                    yield MemoryHit(found.name, number, number, 0.9, line)

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        self.mood.note("sync")
        if self.mood.now == FAILS:
            raise MemoryUnavailable(REASON)
        if self.mood.now == HANGS:
            self.mood.release.wait(60)
        files = scan_memory(self.context.workspace, self.context.extra_paths).files
        return SyncReport(str(self.context.workspace), seen=len(files), unchanged=len(files))

    def status(self) -> dict[str, Any]:
        self.mood.note("status")
        self.mood.act()
        return {"backend": self.name, "oil": "full"}

    def close(self) -> None:
        self.mood.note("close")
        self.closed = True


class ProbedBackend(ShakyBackend):
    """The same, which also can tell whether it would answer."""

    def probe(self) -> None:
        self.mood.note("probe")
        self.mood.act()


class Shaky:
    """The plugin."""

    name = "shaky-backend"

    def __init__(self, mood: Mood, kind: type[ShakyBackend] = ShakyBackend) -> None:
        self.mood = mood
        self.kind = kind
        self.contexts: list[BackendContext] = []

    def open(self, context: BackendContext) -> ShakyBackend:
        self.contexts.append(context)
        self.mood.note("open")
        if self.mood.now == NOT_OPENED:
            raise MemoryUnavailable(REASON, hint=HINT)
        return self.kind(context, self.mood)

    @hookimpl
    def register_memory_backends(self, context: RegistrationContext) -> Iterable[BackendRegistration]:
        return (BackendRegistration(NAME, self.open, "breaks when a test wants it to"),)
