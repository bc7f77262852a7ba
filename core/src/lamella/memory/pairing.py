"""Parts of `lamella.memory.fallback`: backends that are opened when they are needed, and what is said of two."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from attrs import evolve

from lamella.errors import LamellaError, MemoryUnavailable
from lamella.memory.cooling import Cooling, shown
from lamella.memory.gate import Pair
from lamella.plugins.threads import Escaped
from lamella.text.redact import redact
from lamella.text.unicode import one_line
from lamella.types.events import Notice
from lamella.types.memory import Degraded, MemoryBackend, ProgressListener, SyncProgress, SyncReport

FELL_BACK, RESTORED = "memory_fallback", "memory_restored"
# Longest reason that is told: the beginning of what a program printed may be a whole page.
_MOST_REASON = 300
_MOST_READ = 10_000
_OPENING_SECONDS = 30.0

log = logging.getLogger(__name__)


class Lazily:
    """A backend that is opened when it is first needed; if that fails, it is tried again the next time."""

    def __init__(self, name: str, factory: Callable[[], MemoryBackend]) -> None:
        self.name = name
        self._factory = factory
        self._backend: MemoryBackend | None = None
        self._one_opens = threading.Lock()
        self._closed = False

    @property
    def is_open(self) -> bool:
        return self._backend is not None

    def get(self) -> MemoryBackend:
        """Raises what opening it raises, and `MemoryUnavailable` after `close`, or when another caller's
        opening takes too long."""
        if self._backend is not None:
            return self._backend
        if not self._one_opens.acquire(timeout=_OPENING_SECONDS):
            raise MemoryUnavailable(f"{self.name} is still being opened")
        try:
            if self._backend is None:
                if self._closed:
                    raise MemoryUnavailable("the memory is closed")
                backend = self._factory()
                if not isinstance(backend, MemoryBackend):
                    raise MemoryUnavailable(f"its factory gave {type(backend).__name__}, expected a MemoryBackend")
                self._backend = backend
            return self._backend
        finally:
            self._one_opens.release()

    def close(self) -> None:
        """Close it if it was opened; one that is being opened is left to itself."""
        self._closed = True
        if self._backend is not None:
            self._backend.close()


class Listening:
    """A listener to a sync that knows whether it was the listener who ended it."""

    def __init__(self, progress: ProgressListener | None) -> None:
        self._progress = progress
        self.objected = False

    @property
    def progress(self) -> ProgressListener | None:
        """What a backend is given: nothing when nobody listens, so that it may leave more for later."""
        return None if self._progress is None else self._told

    def _told(self, state: SyncProgress) -> None:
        assert self._progress is not None
        try:
            self._progress(state)
        except BaseException:
            self.objected = True
            raise


class Teller:
    """Tells of each change of who answers, once."""

    def __init__(self, names: Pair, told: Callable[[Notice], None], clock: Callable[[], float]) -> None:
        self._names = names
        self._listener = told
        self._clock = clock
        self._told: object = None
        self._one_tells = threading.Lock()

    def absent(self, why: Degraded) -> None:
        self._tell("absent", why)

    def cooling(self, state: Cooling) -> None:
        self._tell((state.since, state.failures), state.degraded(), state.hint)

    def well(self) -> None:
        self._tell(None, None)

    def _tell(self, state: object, why: Degraded | None, hint: str = "") -> None:
        with self._one_tells:
            if self._told == state:
                return
            self._told = state
        try:
            self._listener(self._notice(why, hint))
        except Exception:  # who listens is no reason for a search to fail
            log.warning("a change of the memory backend could not be told", exc_info=True)

    def _notice(self, why: Degraded | None, hint: str) -> Notice:
        first, active = self._names.first, self._names.fallback
        if why is None:
            data = {"backend": first, "active": first, "fallback": None}
            return Notice(RESTORED, f"memory is searched by {first} again", data)
        wait = "" if why.retry_at is None else f"; {first} is asked again in {round(why.retry_at - self._clock())} s"
        text = f"memory is searched by {active}: {why.reason}{wait}{f' ({hint})' if hint else ''}"
        return Notice(FELL_BACK, text, {"backend": first, "active": active, "fallback": shown(why, first)})


def named(backend: str, error: Exception) -> str:
    """Why a backend failed, in one line that names it, without the secrets of an address or a command."""
    text = redact(one_line(" ".join(str(error)[:_MOST_READ].split())))
    if not isinstance(error, LamellaError | Escaped):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    text = text if len(text) <= _MOST_REASON else f"{text[: _MOST_REASON - 1]}…"
    return text if backend in text else f"{backend}: {text or 'failed'}"


def summed_up(wanted: SyncReport | Exception, kept: SyncReport | Exception, names: Pair) -> SyncReport:
    """One report of the syncs of both. Raises `MemoryUnavailable` when both failed."""
    if isinstance(wanted, SyncReport):
        if isinstance(kept, SyncReport):
            return wanted
        return evolve(wanted, problem=_joined(wanted.problem, f"not up to date: {named(names.fallback, kept)}"))
    reason = named(names.first, wanted)
    if isinstance(kept, SyncReport):
        return evolve(kept, problem=_joined(f"not up to date: {reason}", kept.problem))
    hint = wanted.hint if isinstance(wanted, LamellaError) else ""
    raise MemoryUnavailable(f"{reason}; {named(names.fallback, kept)}, too", hint=hint) from wanted


def _joined(*problems: str) -> str:
    return "; ".join(filter(None, problems))
