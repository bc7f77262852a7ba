"""When a request may be sent: retries, a cool-down that all threads share, a pause after giving up."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from attrs import frozen

from lamella.errors import ModelRateLimited, ModelTransient

log = logging.getLogger(__name__)
T = TypeVar("T")

LONGEST_WAIT = 60.0
# Windows of rate limits are a minute long; an overload or a cut connection is often over at once.
_FIRST_WAIT_RATE_LIMIT = 2.0
_FIRST_WAIT = 0.5
_JITTER = 0.25


class Clock(Protocol):
    def now(self) -> float:
        """Seconds; never goes back."""

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Return after that time, or as soon as `stop` is set."""


class SystemClock:
    def now(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float, stop: threading.Event) -> None:
        stop.wait(seconds)


@frozen(slots=True)
class Effort:
    """How hard one call tries: number of tries, seconds for a try, seconds for all (None: no limit)."""

    tries: int
    timeout: float
    limit: float | None = None


class Stopped(Exception):
    """Another request of the same call failed; this one is not needed any more."""


class Pace:
    """Lets requests of one embedder through. May be used from several threads."""

    def __init__(self, concurrency: int, cooldown: float, clock: Clock | None = None) -> None:
        self._slots = threading.BoundedSemaphore(concurrency)
        self._clock: Clock = clock or SystemClock()
        self._cooldown = cooldown
        self._lock = threading.Lock()
        self._not_before = 0.0
        self._closed_until = 0.0
        self._closed_by = ""

    def run(self, send: Callable[[float], T], effort: Effort, stop: threading.Event) -> T:
        """`send(timeout)` until it succeeds, tries or time are used up, or the error is no transient one.

        Raises what `send` raised last; `ModelTransient` at once during the pause that follows such
        a failure; `Stopped`.
        """
        self._refuse_while_closed()
        deadline = None if effort.limit is None else self._clock.now() + effort.limit
        attempt = 0
        while True:
            attempt += 1
            self._wait_for_turn(stop, deadline)
            try:
                with self._slots:
                    if stop.is_set():
                        raise Stopped
                    return send(self._time_left(effort.timeout, deadline))
            except ModelTransient as error:
                delay = backoff(error, attempt)
                late = deadline is not None and self._clock.now() + delay >= deadline
                if attempt >= effort.tries or late:
                    self._close(error)
                    raise
                self._hold_off(delay)
                log.info("%s; try %d of %d in %.1f s", error, attempt + 1, effort.tries, delay)

    def _wait_for_turn(self, stop: threading.Event, deadline: float | None) -> None:
        while not stop.is_set():
            now = self._clock.now()
            left = self._not_before - now
            if left <= 0:
                return
            if deadline is not None and self._not_before >= deadline:
                raise ModelTransient(f"the provider asked to wait {left:.0f} s", retry_after=left)
            self._clock.wait(left, stop)
        raise Stopped

    def _time_left(self, timeout: float, deadline: float | None) -> float:
        return timeout if deadline is None else max(0.01, min(timeout, deadline - self._clock.now()))

    def _hold_off(self, seconds: float) -> None:
        with self._lock:
            self._not_before = max(self._not_before, self._clock.now() + seconds)

    def _close(self, error: ModelTransient) -> None:
        wait = max(self._cooldown, min(error.retry_after or 0.0, LONGEST_WAIT)) if self._cooldown else 0.0
        with self._lock:
            self._closed_until = self._clock.now() + wait
            self._closed_by = str(error)

    def _refuse_while_closed(self) -> None:
        with self._lock:
            left, reason = self._closed_until - self._clock.now(), self._closed_by
        if left > 0:
            raise ModelTransient(f"{reason} (not asked again for {left:.0f} s)", retry_after=left)


def backoff(error: ModelTransient, attempt: int) -> float:
    """Seconds before the next try: what the server asks for, else doubled each time; never less.

    Up to a quarter more at random, so that those who failed together do not return together.
    """
    if error.retry_after is not None:
        wait = error.retry_after
    else:
        first = _FIRST_WAIT_RATE_LIMIT if isinstance(error, ModelRateLimited) else _FIRST_WAIT
        wait = first * 2 ** (attempt - 1)
    return min(wait, LONGEST_WAIT) * (1 + _JITTER * random.random())
