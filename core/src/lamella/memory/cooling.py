"""When a memory backend that failed is asked again: known to all processes of an agent.

    ok -> cooling (60 s, doubled with each failure up to 10 minutes) -> one caller tries -> ok, or cooling again

The state is a small file in the agent's folder, so that a command that runs for one question does not
wait again for a backend that the command before it has found hanging. No file: all is well.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from attrs import asdict, evolve, frozen

from lamella.text.files import write_atomic
from lamella.types.memory import Degraded

NAME = "memory-fallback.json"
FIRST_SECONDS = 60.0
LONGEST_SECONDS = 600.0
_LOCK_SECONDS = 2.0
# Nobody is left alone for longer: such a time comes from a damaged file, or a clock that was wrong.
_MOST_SECONDS = 2 * 86_400.0
_LAST_TIME = 253_402_300_799.0  # the end of the year 9999

log = logging.getLogger(__name__)


@frozen(slots=True)
class Cooling:
    """A backend that failed, and is left alone until `retry_at`; `answered_by` answers instead.

    Times in Unix seconds: `since` the first of these failures, `failed_at` the last one. `failures` counts
    them. `hint` says what would help, or is empty.
    """

    backend: str
    answered_by: str
    reason: str
    since: float
    failed_at: float
    retry_at: float
    failures: int = 1
    hint: str = ""

    def due(self, now: float) -> bool:
        """Whether it may be asked again; a clock that was set back makes nobody wait longer."""
        return not self.failed_at <= now < self.retry_at or self.retry_at - now > _MOST_SECONDS

    def claimed(self, until: float) -> Cooling:
        """For the time in which one caller tries: the others see it cool on. A caller that dies frees it so."""
        return evolve(self, retry_at=until)

    def degraded(self) -> Degraded:
        return Degraded(self.reason, self.answered_by, self.since, self.retry_at)


def shown(why: Degraded, first: str) -> dict[str, Any]:
    """Why the first backend does not answer, for programs. Times in Unix seconds."""
    return {"from": first, "reason": why.reason, "since": why.since, "retryAt": why.retry_at}


Step: TypeAlias = Callable[[Cooling | None], Cooling | None]


class CoolingFile:
    """The state of one backend in an agent's folder. Where it cannot be kept, it holds for this object."""

    def __init__(self, state_dir: Path, backend: str) -> None:
        self._folder = state_dir
        self._backend = backend
        self._alone = False
        self._own: Cooling | None = None

    def read(self) -> Cooling | None:
        """The state now; None when all is well, and for a file that cannot be read."""
        return self._own if self._alone else read_cooling(self._folder, self._backend)

    def change(self, step: Step) -> Cooling | None:
        """Replace the state by what `step` makes of it, as one action among all processes; the new state."""
        if self._alone:
            self._own = step(self._own)
            return self._own
        try:
            with _locked(self._folder):
                before = self.read()
                after = step(before)
                if after != before:
                    self._write(after)
                return after
        except OSError as error:
            log.debug("the state of memory backend %s is kept by this process alone: %s", self._backend, error)
            before = self.read()
            self._alone = True
            self._own = step(before)
            return self._own

    def _write(self, state: Cooling | None) -> None:
        if state is None:
            (self._folder / NAME).unlink(missing_ok=True)
        else:
            write_atomic(self._folder / NAME, json.dumps(_to_json(state), ensure_ascii=False).encode())


def read_cooling(state_dir: Path, backend: str) -> Cooling | None:
    """What an agent's folder says of a backend; None when it says nothing that can be understood."""
    try:
        state = _from_json(json.loads((state_dir / NAME).read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None
    return state if state.backend == backend else None


_FIELDS = {
    "backend": str,
    "answered_by": str,
    "reason": str,
    "since": float,
    "failed_at": float,
    "retry_at": float,
    "failures": int,
    "hint": str,
}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _to_json(state: Cooling) -> dict[str, Any]:
    return {_camel(name): value for name, value in asdict(state).items()}


def _from_json(stored: Any) -> Cooling:
    """Raises `ValueError`, `TypeError`, `KeyError` or `OverflowError` for anything else."""
    state = Cooling(**{name: kind(stored[_camel(name)]) for name, kind in _FIELDS.items()})
    if not all(0 <= moment <= _LAST_TIME for moment in (state.since, state.failed_at, state.retry_at)):
        raise ValueError("a time that is none")
    return state


@contextlib.contextmanager
def _locked(state_dir: Path) -> Iterator[None]:
    """Raises `OSError` (`TimeoutError` is one) when the lock cannot be had."""
    import filelock

    folder = state_dir / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    # filelock.Timeout is a TimeoutError, and so an OSError
    with filelock.FileLock(folder / "memory-fallback.lock", timeout=_LOCK_SECONDS):
        yield
