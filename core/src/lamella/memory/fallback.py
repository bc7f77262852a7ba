"""A memory backend with another one behind it, which answers when the first cannot.

See `lamella.memory.cooling` for when the first is asked again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any, TypeVar

from attrs import evolve

from lamella.errors import LamellaError, MemoryUnavailable, UsageError
from lamella.memory.cooling import FIRST_SECONDS, CoolingFile, shown
from lamella.memory.errand import StillRunning
from lamella.memory.gate import Gate, Leave, Pair
from lamella.memory.pairing import Lazily, Listening, Teller, named, summed_up
from lamella.memory.queueing import SyncQueue
from lamella.memory.results import checked_results
from lamella.plugins.threads import start
from lamella.types.events import Notice
from lamella.types.memory import (
    Degraded,
    MemoryBackend,
    MemoryResults,
    ProbingBackend,
    ProgressListener,
    SearchQuery,
    SyncReport,
)

# A caller that died while it tried frees the backend for others so long after its own time was over.
_CLAIM_MARGIN_SECONDS = 5.0
_CLOSING_SECONDS = 2.0
# Faults of the caller, or of nobody: they say nothing about the backend.
_NO_FAILURES = (UsageError, futures.CancelledError)

log = logging.getLogger(__name__)

T = TypeVar("T")


class FallbackBackend:
    """Implements `lamella.types.memory.MemoryBackend`: asks `first`, and `fallback` in the same call when that fails.

    A failure is anything that `first` raises but `UsageError` and cancellation, and no answer within `seconds`;
    an empty answer is none. It is left alone then. All methods may be called at once; each backend still
    sees one search, and one sync, at a time.
    """

    def __init__(
        self,
        first: Lazily,
        fallback: Lazily,
        state: CoolingFile,
        *,
        absent: MemoryUnavailable | None = None,
        seconds: float = 10.0,
        retry_seconds: float = FIRST_SECONDS,
        told: Callable[[Notice], None] = lambda _notice: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`absent`: why there is no first backend at all. `seconds` is what a search of the first may take,
        `retry_seconds` how long it is left alone after one failure. `told` hears of each change of who
        answers. `clock` gives Unix seconds."""
        self._first = first
        self._fallback = fallback
        self._names = Pair(first.name, fallback.name)
        self._gate = Gate(
            state, self._names, claim_seconds=seconds + _CLAIM_MARGIN_SECONDS, retry_seconds=retry_seconds, clock=clock
        )
        self._teller = Teller(self._names, told, clock)
        self._absent = absent
        self._seconds = seconds
        self._one_asks_first = threading.Lock()  # released by the thread that asks, however long that takes
        self._one_asks_fallback = threading.Lock()
        self._syncs_of_first = SyncQueue(seconds)
        self._one_syncs_fallback = threading.Lock()
        self._closed = False
        if absent is not None:
            self._teller.absent(self._why_absent(absent))

    @property
    def name(self) -> str:
        return self._first.name

    def search(self, query: SearchQuery) -> MemoryResults:
        """Raises `MemoryUnavailable`, the first's reason first, when neither answers."""
        if self._absent is not None:
            return self._instead(query, self._why_absent(self._absent))
        leave = self._gate.ask()
        if leave.refused is not None:
            self._teller.cooling(leave.refused)
            return self._instead(query, leave.refused.degraded(), leave.refused.hint)
        try:
            found = self._results_of_first(query, leave)
        except _Occupied as error:
            return self._instead(query, Degraded(str(error), self._fallback.name))
        except Exception as error:
            if self._is_no_failure(error):
                self._gate.returned(leave)
                raise
            return self._instead(query, self._note_failure(leave, error), _hint(error))
        except BaseException:
            self._gate.returned(leave)
            raise
        self._note_success(leave)
        return found

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        """Bring both up to date, the fallback first. A first backend that is left alone stays alone, unless
        `force` is set; that it could not be brought up to date does not change who answers. A sync of the first
        that hangs holds up no later one.

        Raises `MemoryUnavailable` when neither could be.
        """
        listening = Listening(progress)
        with self._one_syncs_fallback:
            kept = self._synced(self._fallback, force, listening)
        why = None if force and self._absent is None else self._known_problem()
        wanted = MemoryUnavailable(why.reason) if why is not None else self._synced_first(force, listening)
        if isinstance(wanted, SyncReport) and force:
            self._gate.let_next_try()
        return summed_up(wanted, kept, self._names)

    def status(self) -> dict[str, Any]:
        """The facts of the backend that answers now; `backend` is the first, `active` the one that answers,
        `fallback` says why, if that is another one."""
        why = self._known_problem()
        facts: dict[str, Any] = {}
        if why is None:
            try:
                facts = self._call_first(self._facts_of_first, patient=True)
            except _Occupied as error:
                facts = {"problem": str(error)}
            except Exception as error:
                if self._is_no_failure(error):
                    raise
                why = self._note_failure(Leave(), error)
        if why is not None:
            facts = self._facts_of_fallback()
        names = {"backend": self._first.name, "active": self._fallback.name if why else self._first.name}
        return {**facts, **names, "fallback": shown(why, self.name) if why else None}

    def probe(self) -> None:
        """Ask the first now, also when it is left alone. Raises `MemoryUnavailable` that says why it cannot answer.

        One that offers no probe is only opened, which does not take back an earlier failure.
        """
        if self._absent is not None:
            raise self._absent
        leave = self._gate.ask(now_too=True)
        try:
            proven = self._call_first(self._prove, patient=True)
        except Exception as error:
            if self._is_no_failure(error) or isinstance(error, _Occupied):
                self._gate.returned(leave)
                raise
            raise MemoryUnavailable(self._note_failure(leave, error).reason, hint=_hint(error)) from error
        if leave.before is not None and not proven:
            self._gate.returned(leave)
            raise MemoryUnavailable(
                f"{leave.before.reason}; it is asked again at a later search", hint=leave.before.hint
            )
        self._note_success(leave)

    def close(self) -> None:
        """Close both. A first backend that does not close at once is left to itself."""
        self._closed = True
        self._fallback.close()
        if self._first.is_open:
            futures.wait([start(self._first.close)], _CLOSING_SECONDS)

    # --- what came of it ----------------------------------------------------------------------------------

    def _known_problem(self) -> Degraded | None:
        """Why the first is not asked now, or None. A state that has cooled down is a problem still."""
        if self._absent is not None:
            return self._why_absent(self._absent)
        cooling = self._gate.state()
        return cooling.degraded() if cooling is not None else None

    def _why_absent(self, absent: MemoryUnavailable) -> Degraded:
        hint = f" ({absent.hint})" if absent.hint else ""
        return Degraded(f"{named(self.name, absent)}{hint}", self._fallback.name)

    def _note_failure(self, leave: Leave, error: Exception) -> Degraded:
        reason = named(self.name, error)
        expected = isinstance(error, LamellaError)
        log.warning("memory backend %s failed: %s", self.name, reason)
        if not expected:
            log.debug("memory backend %s failed", self.name, exc_info=error)
        state = self._gate.failed(leave, reason, _hint(error))
        if state is None:
            return Degraded(reason, self._fallback.name)
        self._teller.cooling(state)
        return evolve(state.degraded(), reason=reason)

    def _note_success(self, leave: Leave) -> None:
        self._gate.succeeded(leave)
        self._teller.well()

    def _is_no_failure(self, error: Exception) -> bool:
        return self._closed or isinstance(error, _NO_FAILURES)

    # --- asking them --------------------------------------------------------------------------------------

    def _results_of_first(self, query: SearchQuery, leave: Leave) -> MemoryResults:
        def search() -> MemoryResults:
            backend = self._first.get()
            if leave.claim is not None and isinstance(backend, ProbingBackend):
                backend.probe()
            return backend.search(query)

        return checked_results(self._call_first(search, patient=leave.claim is None))

    def _call_first(self, action: Callable[[], T], *, patient: bool) -> T:
        """Do something with the first, within its time. `patient`: before that, wait half as long while
        another caller asks it.

        Raises what it raises, `_Occupied`, and `MemoryUnavailable` when the time is over.
        """
        if not self._one_asks_first.acquire(timeout=self._seconds / 2 if patient else 0):
            if patient:
                raise _Occupied(f"{self.name} is busy with another question")
            raise MemoryUnavailable("it has not answered an earlier question yet")

        def work() -> T:
            try:
                return action()
            finally:
                self._one_asks_first.release()

        try:
            calling = start(work)
        except RuntimeError:  # no thread can be started
            self._one_asks_first.release()
            raise
        if not futures.wait([calling], self._seconds).done:
            raise MemoryUnavailable(f"it did not answer within {self._seconds:g} s")
        return calling.result()

    def _instead(self, query: SearchQuery, why: Degraded, hint: str = "") -> MemoryResults:
        try:
            with self._one_asks_fallback:
                found = self._fallback.get().search(query)
        except UsageError:
            raise
        except Exception as error:
            both = f"{why.reason}; {named(self._fallback.name, error)}, too"
            raise MemoryUnavailable(both, hint=hint or _hint(error)) from error
        own = f"; {found.degraded.reason}" if found.degraded is not None else ""
        return evolve(found, degraded=evolve(why, reason=why.reason + own))

    def _synced(self, backend: Lazily, force: bool, listening: Listening) -> SyncReport | Exception:
        """The report of one backend, or why there is none. What the listener raises is raised."""
        try:
            report: object = backend.get().sync(force=force, progress=listening.progress)
            if not isinstance(report, SyncReport):
                raise MemoryUnavailable(f"its sync gave {type(report).__name__}, expected a SyncReport")
            return report
        except UsageError:
            raise
        except Exception as error:
            if self._closed or listening.objected:
                raise
            log.warning("memory backend %s is not up to date: %s", backend.name, named(backend.name, error))
            return error

    def _synced_first(self, force: bool, listening: Listening) -> SyncReport | Exception:
        try:
            return self._syncs_of_first.run(lambda again: self._synced(self._first, force and not again, listening))
        except StillRunning:
            return MemoryUnavailable("an earlier sync has not come to an end")

    def _facts_of_first(self) -> dict[str, Any]:
        """Raises when the first cannot answer; that its facts cannot be had is only one of them."""
        self._prove()
        try:
            return dict(self._first.get().status())
        except Exception as error:  # noqa: BLE001 - it is told
            return {"problem": named(self.name, error)}

    def _facts_of_fallback(self) -> dict[str, Any]:
        try:
            return dict(self._fallback.get().status())
        except Exception as error:  # noqa: BLE001 - it is told
            return {"problem": named(self._fallback.name, error)}

    def _prove(self) -> bool:
        """Open the first, and let it look whether it could answer; whether it did look. Raises why it cannot."""
        backend: MemoryBackend = self._first.get()
        if isinstance(backend, ProbingBackend):
            backend.probe()
            return True
        return False


class _Occupied(LamellaError):
    """Another caller asks the first backend, and has not come to an end."""


def _hint(error: Exception) -> str:
    return error.hint if isinstance(error, LamellaError) else ""
