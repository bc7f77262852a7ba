"""Appending to a transcript so that every entry is whole or absent, and on disk when acknowledged."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from lamella.errors import TranscriptError
from lamella.sessions.lines import encode_line
from lamella.text.days import file_stamp
from lamella.text.files import read_at, sync_directory, write_atomic
from lamella.types.messages import JsonObject

_APPEND = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)  # O_BINARY: Windows


def new_entry_id() -> str:
    """16 random hex digits: no look-up is needed, since a file may be open from its end only."""
    return secrets.token_hex(8)


class Appender:
    """A kept descriptor on one transcript. Not thread-safe; hold the transcript's lock.

    `size` is the file's length after the last append; a different length on disk means that
    somebody else has written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self.size = 0

    def open(self, *, expected_size: int | None = None) -> None:
        """Open for appending; raises `TranscriptError` when the file is not as long as expected."""
        if self._fd is None:
            self._fd = os.open(self.path, _APPEND)
            self.size = os.fstat(self._fd).st_size
        if expected_size is not None and expected_size != self.size:
            raise self._changed(expected_size, self.size)

    def _changed(self, expected: int, found: int) -> TranscriptError:
        return TranscriptError(
            self.path,
            f"was changed by another process (expected {expected} bytes, found {found})",
            hint="Nothing was written. Open the session again to continue from its new end.",
        )

    def create(self, objects: Iterable[JsonObject]) -> None:
        """Make the file with these lines; it must not exist."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = b"".join(encode_line(o) for o in objects)
        try:
            fd = os.open(self.path, _APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise TranscriptError(self.path, "already exists; a new session needs a new file") from None
        self._fd, self.size = fd, 0
        try:
            self._write(data)
        except BaseException:
            self.close()
            self.path.unlink(missing_ok=True)
            raise
        sync_directory(self.path.parent)

    def append(self, line: bytes) -> None:
        """Append one encoded line. On failure the file is as it was before, and the error is raised."""
        self._check()
        self._write(line)

    def append_all(self, lines: bytes) -> None:
        """Append several encoded lines as one step: whatever happens, readers see all of them or none.

        The file is replaced by one with the lines behind the old bytes.
        """
        self._check()
        self.close()
        try:
            write_atomic(self.path, self.path.read_bytes() + lines, mode=0o600)
        except OSError as error:
            raise self._unwritable(error) from error
        self.open()

    def _check(self) -> None:
        """Raise `TranscriptError` unless the file is the one that is known here, unchanged."""
        self.open()
        assert self._fd is not None
        if not self.in_place:
            raise TranscriptError(
                self.path,
                "was removed or replaced while it was open",
                hint="Nothing was written. Open the session again to continue from what is there.",
            )
        actual = os.fstat(self._fd).st_size
        if actual != self.size:
            raise self._changed(self.size, actual)

    @property
    def in_place(self) -> bool:
        """Whether the path still leads to the file that is open here."""
        if self._fd is None:
            return True
        try:
            return os.path.samestat(os.fstat(self._fd), self.path.stat())
        except OSError:
            return False

    def end_line(self) -> None:
        """Give the file a final line feed if its last line lacks one."""
        self.open()
        assert self._fd is not None
        if self.size and read_at(self._fd, 1, self.size - 1) != b"\n":
            self._write(b"\n")

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write(self, data: bytes) -> None:
        assert self._fd is not None
        before = self.size
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
            os.fdatasync(self._fd) if hasattr(os, "fdatasync") else os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, before)
            raise self._unwritable(error) from error
        self.size = before + len(data)

    def _unwritable(self, error: OSError) -> TranscriptError:
        return TranscriptError(
            self.path,
            f"cannot be written: {error.strerror or error}",
            hint="Nothing was stored. Check disk space and permissions, then try again.",
        )


def rewrite(path: Path, objects: Iterable[bytes]) -> Path:
    """Replace a damaged or old transcript by readable lines, the original kept beside it.

    Returns the path of the copy, named as OpenClaw names archives: `<file>.bak.<time>`.
    """
    original = path.read_bytes()
    copy = path.with_name(f"{path.name}.bak.{file_stamp()}")
    write_atomic(copy, original, mode=0o600)
    write_atomic(path, b"".join(line.rstrip(b"\r\n") + b"\n" for line in objects))
    return copy
