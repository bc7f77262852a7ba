"""Blocking work of requests: in threads, a few at once, and known to whoever ends the server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from lamella.plugins.threads import start

T = TypeVar("T")

AT_ONCE = 8


class Work:
    """Runs functions in threads that never keep the process from ending."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)
        self._lock = threading.Lock()
        self._running: set[Future[Any]] = set()

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result. When the caller is cancelled, the function goes on by itself."""
        async with self._free:
            future = start(function)
            with self._lock:
                self._running.add(future)
            future.add_done_callback(self._done)
            return await asyncio.shield(asyncio.wrap_future(future))

    def finish(self, seconds: float) -> None:
        """Wait until what was begun is done, at most so long: a note that is being written is written whole."""
        with self._lock:
            running = tuple(self._running)
        wait(running, seconds)

    def _done(self, future: Future[Any]) -> None:
        with self._lock:
            self._running.discard(future)
