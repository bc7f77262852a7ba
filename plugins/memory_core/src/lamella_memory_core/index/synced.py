"""When an agent's memory was last brought up to date, and what went wrong: known to later processes."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from attrs import frozen

from lamella.text.files import write_atomic
from lamella.types.memory import SyncReport

NAME = "memory-sync.json"
# A sync without news is noted this seldom, so that searches do not write a file each.
_SELDOM_MS = 60_000

log = logging.getLogger(__name__)


@frozen(slots=True)
class Synced:
    """`at`: when the last sync began that came to its end, in Unix milliseconds. `error`: what went wrong
    in the last one, or nothing."""

    at: int | None = None
    error: str = ""


def read_synced(state_dir: Path, backend: str) -> Synced:
    """What is noted in a state folder of a backend; a file that cannot be read says nothing, nor does what
    another backend left."""
    try:
        noted = json.loads((state_dir / NAME).read_bytes())
        at, error, whose = noted["at"], noted["error"], noted.get("backend", backend)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Synced()
    if whose != backend:
        return Synced()
    return Synced(at if isinstance(at, int) else None, error if isinstance(error, str) else "")


def note_synced(state_dir: Path, backend: str, *, at: int | None = None, error: str | None = None) -> None:
    """Note a sync; None keeps what was noted before. A folder that cannot be written is left alone."""
    before = read_synced(state_dir, backend)
    now = Synced(before.at if at is None else at, before.error if error is None else error)
    if now.error == before.error and abs((now.at or 0) - (before.at or 0)) < _SELDOM_MS:  # clocks are set back, too
        return
    try:
        noted = {"at": now.at, "error": now.error, "backend": backend}
        write_atomic(state_dir / NAME, json.dumps(noted).encode())
    except OSError as failure:
        log.debug("the sync is not noted: %s", failure)


def what_failed(report: SyncReport) -> str:
    """What a sync that came to its end could not do, or nothing."""
    failed = [f"{problem.path}: {problem.reason}" for problem in report.failed[:3]]
    more = len(report.failed) - len(failed)
    more_files = [f"{more} more files"] if more else []
    return "; ".join([*failed, *more_files, *filter(None, (report.degraded, report.problem))])
