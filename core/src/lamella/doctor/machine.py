"""Checks of what the machine does to files: permissions and clocks."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.doctor.finding import FIX, Finding
from lamella.doctor.sessions import store_files
from lamella.sessions.index import SessionIndex
from lamella.sessions.index_file import Sessions
from lamella.text.days import unix_ms, utc_iso

if TYPE_CHECKING:
    from lamella.runtime import Runtime

# Clocks of machines that share a folder differ a little.
SLACK_MS = 5 * 60_000
_TIMES = ("updatedAt", "lastInteractionAt")


def check_permissions(runtime: Runtime) -> Iterator[Finding]:
    """What lamella cannot read or write, and what everybody on the machine may change."""
    own = (runtime.paths.home, runtime.paths.config_file, runtime.state_dir)
    for path in (*own, *store_files(runtime.store)):
        if not path.exists() or (os.name == "nt" and path.is_dir()):
            continue
        needed = os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0)
        if not os.access(path, needed):
            rights = "u+rwx" if path.is_dir() else "u+rw"
            yield Finding("error", str(path), "cannot be read and written", f"chmod {rights} '{path}'")
        elif os.name != "nt" and path.stat().st_mode & stat.S_IWOTH:
            text = "everybody on this machine may change it"
            yield Finding("warning", str(path), text, FIX, partial(_close, path))


def _close(path: Path) -> str:
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~stat.S_IWOTH)
    return "only you and your group may change it now"


def check_clocks(runtime: Runtime) -> Iterator[Finding]:
    """Times that lie ahead: of sessions, which would never be old, and of transcripts."""
    now, store = unix_ms(), runtime.store
    for key, entry in store.index.load().sessions.items():
        ahead = [name for name in _TIMES if _lies_ahead(entry.get(name), now)]
        if ahead:
            text = f"{' and '.join(ahead)} in sessions.json lies ahead of this machine's clock ({utc_iso()})"
            yield Finding("warning", key, text, FIX, partial(_set_back, store.index, key))
    for path in store_files(store):
        if path.is_file() and _lies_ahead(path.stat().st_mtime * 1000, now):
            yield Finding("warning", str(path), "was changed in the future", FIX, partial(_touch, path))


def _lies_ahead(value: object, now: int) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > now + SLACK_MS


def _set_back(index: SessionIndex, key: str) -> str:
    now = unix_ms()

    def change(sessions: Sessions) -> None:
        entry = sessions.get(key, {})
        entry.update({name: now for name in _TIMES if _lies_ahead(entry.get(name), now)})

    index.transact(change)
    return "set to this moment"


def _touch(path: Path) -> str:
    os.utime(path)
    return "set to this moment"
