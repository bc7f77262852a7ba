"""Linux's reports of changes in folders, to the moment of asking.

The kernel queues a report before the call that made the change returns, so an empty queue says that
nothing has changed. Nothing is waited for, and no thread is needed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from lamella_memory_core.following.folders import Root

_MODIFY, _ATTRIB = 0x2, 0x4
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
_OVERFLOW, _ONLY_FOLDERS, _IS_FOLDER = 0x4000, 0x1000000, 0x40000000
_WANTED = _MODIFY | _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
# A folder that is gone may have been made again at its place, even under the same inode.
_OTHER_FOLDERS = _OVERFLOW | _IS_FOLDER | _DELETE_SELF | _MOVE_SELF
_HEADER = struct.Struct("iIII")  # watch, what, cookie, length of the name
_ALL: frozenset[str] = frozenset()


class Inotify:
    """Follows folders, also those that come later into deep ones. Raises `OSError`, as when no watches are left."""

    exact = True

    def __init__(self, roots: Sequence[Root]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._roots = tuple(roots)
        self._names: dict[int, frozenset[str]] = {}  # by watch, what counts in it; nothing named: everything
        self._queue = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._watch_all()
        except OSError:
            self.close()
            raise

    def changed(self) -> bool:
        """Whether anything that counts has happened since the last call."""
        found = other_folders = False
        for watch, what, name in self._reports():
            found = found or bool(what & _OVERFLOW) or self._counts(watch, name)
            other_folders = other_folders or bool(what & _OTHER_FOLDERS)
        if other_folders:
            self._watch_all()
        return found

    def close(self) -> None:
        os.close(self._queue)

    def _counts(self, watch: int, name: str) -> bool:
        names = self._names.get(watch, _ALL)
        return not name or not names or name in names

    def _reports(self) -> Iterator[tuple[int, int, str]]:
        """(watch, what, name in the folder) of all that is queued."""
        while True:
            try:
                data = os.read(self._queue, 1 << 16)
            except BlockingIOError:
                return
            place = 0
            while place < len(data):
                watch, what, _, length = _HEADER.unpack_from(data, place)
                place += _HEADER.size + length
                yield watch, what, os.fsdecode(data[place - length : place].rstrip(b"\0"))

    def _watch_all(self) -> None:
        """Watch every folder that is there now; those that are watched already stay so."""
        for root in self._roots:
            for folder in root.folders():
                self._watch(folder, root.names)

    def _watch(self, folder: Path, names: frozenset[str]) -> None:
        try:
            watch = self._checked(self._libc.inotify_add_watch(self._queue, os.fsencode(folder), _WANTED))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return  # gone again, or closed to us: then its content is no memory either
        before = self._names.get(watch, names)
        self._names[watch] = before | names if before and names else _ALL

    @staticmethod
    def _checked(result: int) -> int:
        if result >= 0:
            return result
        number = ctypes.get_errno()
        if number == errno.ENOSPC:
            raise OSError(number, "no watches are left; fs.inotify.max_user_watches is their number")
        raise OSError(number, os.strerror(number))
