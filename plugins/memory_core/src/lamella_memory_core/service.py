"""Long-term memory of one agent: a backend to search with, and the writer."""

from __future__ import annotations

import logging
import threading
from typing import Any

from attrs import evolve

from lamella.errors import LamellaError, MemoryUnavailable
from lamella.memory.reading import read_memory
from lamella.memory.writer import MemoryWriter
from lamella.text.days import human_day
from lamella.types.hooks import MemoryContext
from lamella.types.memory import (
    BackendContext,
    MemoryBackend,
    MemoryResults,
    MemoryText,
    MemoryWrite,
    Provenance,
    SearchQuery,
    SyncReport,
)

log = logging.getLogger(__name__)


class Memory:
    """Implements `lamella.types.memory.MemoryService` over the backend that the configuration names.

    Calls may come from several threads; the backend sees one at a time.
    """

    def __init__(self, context: MemoryContext) -> None:
        """Raises `MemoryUnavailable` when the chosen backend is not on offer, `UsageError` for an
        unknown time zone."""
        self._context = context
        self._backend = _open_backend(context)
        self._writer = MemoryWriter(context.workspace, context.state_dir, context.timezone)
        self._lock = threading.RLock()

    @property
    def backend(self) -> MemoryBackend:
        return self._backend

    @property
    def writer(self) -> MemoryWriter:
        return self._writer

    def search(self, query: SearchQuery) -> MemoryResults:
        if query.today is None:
            query = evolve(query, today=human_day(tz=self._context.timezone))
        with self._lock:
            return self._backend.search(query)

    def read(self, path: str, *, start_line: int = 1, lines: int | None = None) -> MemoryText:
        return read_memory(self._context.workspace, path, start_line=start_line, lines=lines)

    def append(self, text: str, *, path: str | None = None, provenance: Provenance) -> MemoryWrite:
        """Append and index. The note is safe when this returns; the index can catch up later."""
        written = self._writer.append(path, text, provenance)
        try:
            self.sync()
        except LamellaError as error:
            log.warning("%s was written, but the index is not up to date: %s", written.path, error)
        return written

    def sync(self, *, force: bool = False) -> SyncReport:
        with self._lock:
            return self._backend.sync(force=force)

    def status(self) -> dict[str, Any]:
        with self._lock:
            return self._backend.status()

    def close(self) -> None:
        with self._lock:
            self._backend.close()


def _open_backend(context: MemoryContext) -> MemoryBackend:
    registered = context.backends.get(context.backend)
    if registered is None:
        on_offer = ", ".join(sorted(context.backends)) or "none"
        raise MemoryUnavailable(
            f"memory backend {context.backend!r} is not installed (on offer: {on_offer})",
            hint=f"pip install lamella-{context.backend}-backend, or set memory.backend to one on offer.",
        )
    return registered.factory(BackendContext(context.agent_id, context.workspace, context.state_dir, context.embedders))
