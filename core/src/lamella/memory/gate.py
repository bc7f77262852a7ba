"""Who may ask a backend that failed, and when: one caller at a time among all processes."""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import frozen

from lamella.memory.cooling import FIRST_SECONDS, LONGEST_SECONDS, Cooling, CoolingFile

_MOST_DOUBLINGS = 20  # any first wait is at its longest by then


@frozen(slots=True)
class Pair:
    """The names of a backend and of the one that answers when it fails."""

    first: str
    fallback: str


@frozen(slots=True)
class Leave:
    """Whether the backend may be asked: `refused` is the state that forbids it.

    With a `claim` its caller is the one who tries, after the state `before`; `early`: while it is still left
    alone. Neither: all is well.
    """

    refused: Cooling | None = None
    before: Cooling | None = None
    claim: Cooling | None = None
    early: bool = False


class Gate:
    """Gives leave to ask the first backend of a pair, and hears what came of it.

    `claim_seconds`: after so long a caller who tries, and was never heard of again, is in nobody's way.
    """

    def __init__(
        self,
        state: CoolingFile,
        names: Pair,
        *,
        claim_seconds: float,
        retry_seconds: float = FIRST_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._state = state
        self._names = names
        self._claim_seconds = claim_seconds
        self._retry_seconds = retry_seconds
        self._clock = clock

    def state(self) -> Cooling | None:
        """The failure that is not known to be over; also when the backend may be asked again."""
        return self._state.read()

    def ask(self, *, now_too: bool = False) -> Leave:
        """`now_too`: also in the time in which it is left alone."""
        cooling = self._state.read()
        if cooling is None:
            return Leave()
        now = self._clock()
        return self._claim(now, now_too=now_too) if now_too or cooling.due(now) else Leave(cooling)

    def failed(self, leave: Leave, reason: str, hint: str = "") -> Cooling | None:
        """The state after a failure; None when another process has repaired the backend meanwhile.

        One that was asked early is not left alone for longer because of it.
        """
        now = self._clock()

        def step(state: Cooling | None) -> Cooling | None:
            if state != leave.claim:
                return state  # that of another caller, who noted a failure of his own or tries now
            if leave.early:
                return leave.before
            return cooled(self._names, leave.before, reason, hint, now, self._retry_seconds)

        return self._state.change(step)

    def succeeded(self, leave: Leave) -> None:
        if leave.claim is not None:
            self._state.change(lambda state: None if state == leave.claim else state)

    def returned(self, leave: Leave) -> None:
        """Nothing was found out; what held before holds again."""
        if leave.claim is not None:
            self._state.change(lambda state: leave.before if state == leave.claim else state)

    def let_next_try(self) -> None:
        """End the time in which it is left alone."""
        now = self._clock()
        self._state.change(lambda state: None if state is None else state.claimed(now))

    def _claim(self, now: float, *, now_too: bool) -> Leave:
        """Become the one who tries, unless another caller or process has become it."""
        claimed: list[Leave] = []

        def step(state: Cooling | None) -> Cooling | None:
            if state is None or not (now_too or state.due(now)):
                return state
            claimed.append(Leave(None, state, state.claimed(now + self._claim_seconds), not state.due(now)))
            return claimed[-1].claim

        state = self._state.change(step)
        return claimed[-1] if claimed else Leave(state)


def cooled(
    names: Pair, before: Cooling | None, reason: str, hint: str, now: float, first_wait: float = FIRST_SECONDS
) -> Cooling:
    """The state after a failure; `before` is that after the failure before it, if there was one. Pure."""
    failures = 1 if before is None else before.failures + 1
    since = now if before is None else min(before.since, now)
    wait = min(first_wait * 2 ** min(failures - 1, _MOST_DOUBLINGS), max(LONGEST_SECONDS, first_wait))
    return Cooling(names.first, names.fallback, reason, since, now, now + wait, failures, hint)
