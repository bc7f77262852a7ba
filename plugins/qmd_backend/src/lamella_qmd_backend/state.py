"""What is known of the private index, in `state.json`: written whole, read by all processes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, field, fields, frozen

from lamella.text.files import write_atomic

log = logging.getLogger(__name__)

_FORMAT = 1


@frozen(slots=True)
class State:
    """The index as the last update left it.

    `generation` counts indexes made anew, 0 when there is none; each has a cache folder of its own.
    `settings` tells the collections and the version of QMD that it was made with. `files`: size and time
    of the last write in ns of each file that it holds, by name. Times in Unix seconds. `embed_failures`
    in a row put the next attempt off to `embed_after`.
    """

    generation: int = 0
    settings: str = ""
    updated_at: float = 0.0
    documents: int = 0
    files: Mapping[str, tuple[int, int]] = field(factory=dict, repr=False)
    pending: int = 0
    embedded_at: float = 0.0
    embed_failures: int = 0
    embed_after: float = 0.0
    embed_error: str = ""
    error: str = ""
    error_at: float = 0.0

    @property
    def identity(self) -> str:
        """Tells this state of the index from any other."""
        return f"{self.generation}/{self.updated_at}"


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    field.name: type(field.default) for field in fields(State) if field.name != "files"
}
_LARGEST = 253_402_300_799  # the end of the year 9999 in Unix seconds


class StateFile:
    """Reads `state.json` when it has changed, and replaces it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._state = State()

    def read(self) -> State:
        try:
            status = self._path.stat()
        except OSError:
            self._stamp = None
            return State()
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if stamp != self._stamp:
            self._state, self._stamp = _decode(self._path), stamp
        return self._state

    def write(self, state: State) -> None:
        document = {"format": _FORMAT, **asdict(state)}
        write_atomic(self._path, json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())


def _decode(path: Path) -> State:
    """A file that is no such state is as none: the index is made anew."""
    try:
        document: Any = json.loads(path.read_bytes())
        if document.pop("format") != _FORMAT:
            raise ValueError("another format")
        files = {name: (int(size), int(time)) for name, (size, time) in document.pop("files").items()}
        values = {name: _KINDS[name](value) for name, value in document.items()}
        if not all(0 <= value <= _LARGEST for value in values.values() if not isinstance(value, str)):
            raise ValueError("a number that none of its fields has")
        return State(files=files, **values)
    except (OSError, ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
        log.warning("%s is not what lamella wrote (%s); QMD's index is made anew", path, error)
        return State()
