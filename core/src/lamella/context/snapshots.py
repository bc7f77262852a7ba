"""What a plugin keeps for a session, so that its prompt stays the same as long as the session lasts.

A small JSON file in the agent's state folder, `prompts/<sessionId>.<name>.json`. It is derived: where
it is missing, what it holds is made again.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from lamella.sessions.keys import is_session_id
from lamella.text.files import write_atomic

if TYPE_CHECKING:
    from lamella.types.hooks import PromptContext

T = TypeVar("T")

log = logging.getLogger(__name__)


def session_file(state_dir: Path, session_id: str, suffix: str) -> Path | None:
    """A file beside a session's transcript; None for a session that has not begun, or an id that no file
    name may hold."""
    return state_dir / "prompts" / f"{session_id}.{suffix}" if is_session_id(session_id) else None


class Snapshots(Generic[T]):
    """One plugin's snapshots; `kind` is a type that msgspec reads and writes."""

    def __init__(self, name: str, kind: type[T]) -> None:
        self._name = name
        self._kind = kind
        self._state_dir: Path | None = None

    def of(self, context: PromptContext, make: Callable[[], T]) -> T:
        """The session's value, made when there is none yet. It is kept unless the prompt is only shown."""
        self._state_dir = context.state_dir
        file = session_file(context.state_dir, context.session_id, f"{self._name}.json")
        if file is None:
            return make()
        value = self._read(file)
        if value is None:
            value = make()
            if not context.preview:
                _write(file, value)
        return value

    def forget(self, session_id: str) -> None:
        """Remove the value of a session that is over."""
        file = session_file(self._state_dir, session_id, f"{self._name}.json") if self._state_dir else None
        if file is not None:
            with contextlib.suppress(FileNotFoundError):
                file.unlink()

    def _read(self, file: Path) -> T | None:
        import msgspec

        try:
            return msgspec.json.decode(file.read_bytes(), type=self._kind)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s cannot be used and is made anew: %s", file, error)
            return None


def _write(file: Path, value: object) -> None:
    """A folder that cannot be written costs stability after a restart, not the turn."""
    import msgspec

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, msgspec.json.encode(value), mode=0o600)
    except OSError as error:
        log.warning("%s cannot be written: %s", file, error)
