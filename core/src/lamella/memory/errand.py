"""Work that may take too long to be waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Generic, TypeVar

T = TypeVar("T")


class StillRunning(Exception):
    """The work has not ended within the time that there was to wait for it."""


class Errand(Generic[T]):
    """Work in a thread of its own, which does not keep the program from ending.

    It can be waited for, and left to itself when it takes too long.
    """

    def __init__(self, work: Callable[[], T], name: str) -> None:
        self._future: futures.Future[T] = futures.Future()
        self._future.set_running_or_notify_cancel()  # so that nobody who waits can cancel it
        self._waited = 0.0
        threading.Thread(target=self._run, args=(work,), name=name, daemon=True).start()

    @property
    def done(self) -> bool:
        return self._future.done()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the work, so long at most; whether it has ended."""
        futures.wait([self._future], seconds)
        return self.done

    def result(self, seconds: float | None = None) -> T:
        """What the work gave. Raises what it raised, and `StillRunning` when it does not end in time.

        The seconds are for all calls together: who asks again after others have waited that long gets
        an answer at once.
        """
        if seconds is not None and not self.done:
            started = time.monotonic()
            ended = self.wait(max(seconds - self._waited, 0.0))
            self._waited += time.monotonic() - started
            if not ended:
                raise StillRunning
        return self._future.result()

    async def outcome(self, seconds: float) -> T:
        """The same for coroutines, with seconds for each call."""
        import asyncio

        waiting = asyncio.wrap_future(self._future)
        try:
            await asyncio.wait({waiting}, timeout=seconds)
            if not waiting.done():
                raise StillRunning
            return waiting.result()
        finally:
            waiting.cancel()

    def _run(self, work: Callable[[], T]) -> None:
        try:
            self._future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            self._future.set_exception(error)
