"""One writer at a time, across threads and processes, for a table in a folder."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from lamella.errors import MemoryUnavailable
from lamella_memory_lancedb.store.location import Location

_NAME = ".lamella.lock"


class WriteLock:
    """Held while something is looked up and then written, so that nothing is stored twice.

    The file's lock vanishes with its process. An object store has no such lock: there, threads of one
    process take turns, and processes settle afterwards what two of them stored (see `Store`).
    """

    def __init__(self, location: Location, seconds: float) -> None:
        self._location = location
        self._seconds = seconds
        self._threads = threading.RLock()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Raises `MemoryUnavailable` when it is not free in time."""
        if not self._threads.acquire(timeout=self._seconds):
            raise self._busy()
        try:
            with self._file_held():
                yield
        finally:
            self._threads.release()

    @contextlib.contextmanager
    def _file_held(self) -> Iterator[None]:
        folder = self._location.folder
        if folder is None:
            yield
            return
        import filelock

        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = filelock.FileLock(folder / _NAME, timeout=self._seconds, is_singleton=True)
            lock.acquire()
        except filelock.Timeout:
            raise self._busy() from None
        except OSError as error:
            raise MemoryUnavailable(
                f"{self._location.shown} cannot be written: {error.strerror or error}",
                hint="Check its permissions and that there is room.",
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _busy(self) -> MemoryUnavailable:
        return MemoryUnavailable(
            f"the memories at {self._location.shown} are being written by another program (waited {self._seconds:g} s)",
            hint="Try again in a moment.",
        )
