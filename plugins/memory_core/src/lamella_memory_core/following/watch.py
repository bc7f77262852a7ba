"""Following the folders of a memory, whatever becomes of them."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from lamella_memory_core.following.folders import Root

# When following has failed (no watches left, or a file system without reports), it is tried again after this.
_RETRY_SECONDS = 60.0

log = logging.getLogger(__name__)

T = TypeVar("T")


class Source(Protocol):
    """Reports of changes. `exact`: `changed` knows of everything that happened before it was called."""

    @property
    def exact(self) -> bool: ...

    def changed(self) -> bool:
        """Whether anything that counts has changed since the last call."""

    def close(self) -> None: ...


def open_source(roots: Sequence[Root]) -> Source:
    """The best that this system has. Raises errors of many kinds."""
    if sys.platform == "linux":
        from lamella_memory_core.following.inotify import Inotify

        return Inotify(roots)
    from lamella_memory_core.following.reports import Reports

    return Reports(roots)


class Watch:
    """Follows `roots`, also when they come, go, and are replaced. Threads may share it.

    Without the first root nothing is followed. `problem` says why nothing is, or is empty. `clock`
    gives seconds.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        source: Callable[[Sequence[Root]], Source] = open_source,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.problem = ""
        self._roots = tuple(roots)
        self._open_source = source
        self._clock = clock
        self._lock = threading.Lock()
        self._begun = False
        self._source: Source | None = None
        self._identities: list[tuple[int, int] | None] = []
        self._retry_at = 0.0

    @property
    def active(self) -> bool:
        """Whether changes are followed now."""
        return self._source is not None

    @property
    def exact(self) -> bool:
        """Whether `changed` knows of everything that happened before it was called."""
        source = self._source
        return source is not None and source.exact

    def begin(self) -> None:
        """Begin to follow; before that, `changed` is always true."""
        with self._lock:
            self._begun = True
            self._open()

    def changed(self) -> bool:
        """Whether anything may have changed since the last call; true while nothing is followed."""
        with self._lock:
            if not self._begun:
                return True
            if [root.identity() for root in self._roots] != self._identities:
                self._open()
                return True
            if self._source is None:
                if self.problem and self._clock() >= self._retry_at:
                    self._open()
                return True
            return self._guarded(self._source.changed, otherwise=True)

    def close(self) -> None:
        """Stop following. `begin` begins again."""
        with self._lock:
            self._begun = False
            self._shut()

    # --- with the lock held -----------------------------------------------------------------------------

    def _open(self) -> None:
        self._shut()
        self.problem = ""
        self._identities = [root.identity() for root in self._roots]
        if self._identities[0] is not None:
            there = [r for r, identity in zip(self._roots, self._identities, strict=True) if identity is not None]
            self._source = self._guarded(lambda: self._open_source(there), otherwise=None)

    def _guarded(self, action: Callable[[], T], *, otherwise: T) -> T:
        """Do something that fails where the system cannot follow files; then nothing is followed for a while."""
        try:
            return action()
        except Exception as error:
            log.warning("changes of files cannot be followed", exc_info=True)
            self._shut()
            self.problem = f"changes of files cannot be followed: {error or type(error).__name__}"
            self._retry_at = self._clock() + _RETRY_SECONDS
            return otherwise

    def _shut(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None
