"""A clock for waits that should take no time."""

from __future__ import annotations

import threading


class FakeClock:
    """Time passes when someone waits. `waits` are the waits in seconds, in order."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self._now = 1_000.0
        self._lock = threading.Lock()

    def now(self) -> float:
        return self._now

    def wait(self, seconds: float, stop: threading.Event) -> None:
        self.pass_time(seconds)
        self.waits.append(seconds)

    def pass_time(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds
