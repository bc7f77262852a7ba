"""Syncs of one backend, one after another, behind none that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from lamella.memory.errand import StillRunning

T = TypeVar("T")


class SyncQueue:
    """Runs one sync at a time, each in the thread that asks for it.

    Who comes while one is under way waits for it, but not beyond its first `seconds`. Then it has to be done
    again once it has ended, by whoever runs it, since it may not have seen what is new.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._one = threading.Lock()
        self._decides = threading.Lock()
        self._began = 0.0
        self._again = False

    def run(self, sync: Callable[[bool], T]) -> T:
        """What `sync` gives; it is told whether it is done once more for others. Raises what it raises, and
        `StillRunning`."""
        self._take()
        try:
            report = sync(False)
            while self._asked_again():
                sync(True)
        except BaseException:
            self._one.release()
            raise
        return report

    def _take(self) -> None:
        if not self._one.acquire(timeout=self._patience()):
            with self._decides:
                if not self._one.acquire(blocking=False):
                    self._again = True
                    raise StillRunning
        self._began = time.monotonic()
        self._again = False

    def _patience(self) -> float:
        left = self._began + self._seconds - time.monotonic() if self._one.locked() else self._seconds
        return min(max(left, 0.0), self._seconds)

    def _asked_again(self) -> bool:
        """Otherwise the next one may begin."""
        with self._decides:
            again, self._again = self._again, False
            if not again:
                self._one.release()
            return again
