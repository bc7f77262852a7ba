"""What ends a sync when its memory is closed."""

from __future__ import annotations

import threading

from lamella.errors import MemoryUnavailable
from lamella.types.memory import ProgressListener, SyncProgress


def until_closed(closed: threading.Event, listener: ProgressListener | None = None) -> ProgressListener:
    """A listener that tells another one, and raises `MemoryUnavailable` once the memory is closed."""

    def told(progress: SyncProgress) -> None:
        if closed.is_set():
            raise MemoryUnavailable("the memory was closed during a sync")
        if listener is not None:
            listener(progress)

    return told
