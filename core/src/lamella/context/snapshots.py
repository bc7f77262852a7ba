"""What a plugin keeps for one session: a small JSON file in the agent's state folder.

`prompts/<sessionId>.<name>.json`. It is derived: without it the source is read again.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import TypeVar

import msgspec

from lamella.sessions.keys import is_session_id
from lamella.text.files import write_atomic

T = TypeVar("T")
FOLDER = "prompts"

log = logging.getLogger(__name__)


def kept(state_dir: Path, session_id: str, name: str, kind: type[T]) -> T | None:
    """What is kept for a session, of a type that msgspec knows; None when nothing can be read."""
    path = _path(state_dir, session_id, name)
    if path is None:
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        log.warning("%s cannot be used and is made anew: %s", path, error)
        return None


def keep(state_dir: Path, session_id: str, name: str, value: object) -> None:
    """Keep a value for a session. A folder that cannot be written is logged; the value is then made anew
    by the next process."""
    path = _path(state_dir, session_id, name)
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, msgspec.json.encode(value), mode=0o600)
    except OSError as error:
        log.warning("%s cannot be written: %s", path, error)


def forget(state_dir: Path, session_id: str, name: str) -> None:
    """Remove what is kept for a session that is over."""
    path = _path(state_dir, session_id, name)
    if path is not None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _path(state_dir: Path, session_id: str, name: str) -> Path | None:
    """Where it lies; None for a session that has not begun, or an id that is no file name."""
    return state_dir / FOLDER / f"{session_id}.{name}.json" if is_session_id(session_id) else None
