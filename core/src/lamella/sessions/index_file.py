"""The bytes of sessions.json: decoding that tells damage from content, encoding, and a cache by file status."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from attrs import frozen

from lamella.errors import SessionError
from lamella.sessions.lines import encode_line
from lamella.text.files import BOM

SessionEntry: TypeAlias = dict[str, Any]
Sessions: TypeAlias = dict[str, SessionEntry]

_RENAMED = {"provider": "channel", "lastProvider": "lastChannel", "room": "groupChannel"}
# A file system's clock ticks. A file that was changed less than this before it was read may be changed
# again without its status telling so.
_SETTLED_NS = 50_000_000


@frozen(slots=True)
class IndexContent:
    """What a file holds. `problem` says what is wrong with it; `sessions` is what could be read all the same."""

    sessions: Sessions
    problem: str | None = None


@frozen(slots=True)
class _Read:
    """Bytes of a file (None: there is none), and its status when they were read (empty: not to be relied on)."""

    data: bytes | None
    status: tuple[int, ...] = ()


class IndexFile:
    """One sessions.json, read and decoded again only when its status tells that it has changed.

    Status: device, inode, size, and the times of the last changes. A writer that replaces the file, as
    lamella and OpenClaw do, changes the inode; one that writes into it changes the times.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[tuple[int, ...], IndexContent] | None = None

    def content(self) -> IndexContent:
        """The content, shared with later calls: not to be changed. Raises `SessionError`."""
        known = self._known
        if known is not None and known[0] == _status(self.path):
            return known[1]
        read = _read(self.path)
        content = decode_index(self.path, read.data)
        self._known = (read.status, content) if read.status else None
        return content

    def fresh(self) -> IndexContent:
        """The content as it is now, read without the cache: the caller's own. Raises `SessionError`."""
        return decode_index(self.path, _read(self.path).data)


def decode_index(path: Path, data: bytes | None) -> IndexContent:
    """The content of a file. None is a file that is not there, which is an empty index; an empty file is damage.

    `path` is for messages. Fields under the names of older versions are renamed.
    """
    if data is None:
        return IndexContent({})
    if not data.strip(b"\x00 \t\r\n"):
        return IndexContent({}, f"{path}: the file is empty")
    try:
        value = _decode(data.removeprefix(BOM))
    except (ValueError, RecursionError) as error:
        return IndexContent({}, f"{path}: not valid JSON ({error})")
    if not isinstance(value, dict):
        return IndexContent({}, f"{path}: expected an object, found {type(value).__name__}")
    sessions = {k: _migrated(v) for k, v in value.items() if isinstance(v, dict)}
    wrong = [k for k in value if k not in sessions]
    return IndexContent(sessions, f"{path}: entry {wrong[0]!r} is not an object" if wrong else None)


def encode_index(sessions: Sessions) -> bytes:
    """The bytes of an index: strict UTF-8, two blanks of indentation."""
    return msgspec.json.format(encode_line(sessions).rstrip(b"\n"), indent=2) + b"\n"


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):  # such as halves of surrogate pairs, which others write
        return json.loads(data.decode("utf-8"))


def _read(path: Path) -> _Read:
    try:
        with path.open("rb") as file:
            data = file.read()
            status = os.fstat(file.fileno())
    except FileNotFoundError:
        return _Read(None)
    except OSError as error:
        raise SessionError(f"{path}: cannot be read: {error.strerror or error}") from error
    settled = time.time_ns() - status.st_mtime_ns > _SETTLED_NS
    return _Read(data, _of_interest(status) if settled else ())


def _status(path: Path) -> tuple[int, ...] | None:
    try:
        return _of_interest(path.stat())
    except OSError:
        return None


def _of_interest(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _migrated(entry: SessionEntry) -> SessionEntry:
    """An entry with the field names of older versions renamed."""
    for old, new in _RENAMED.items():
        if old in entry and new not in entry:
            entry[new] = entry.pop(old)
    return entry
