"""Reading a file that must lie in a folder: no link leads out of it, and nothing but text comes back.

For files that somebody else may have laid there, such as those of a workspace. Links to other files
of the folder are followed. A file with a second name (a hard link) may be anybody's, so it is refused.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from lamella.text.files import decode_text

_READ_ONLY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_MOST_LOOKS = 20
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes that go on with a character of UTF-8


class Refused(ValueError):
    """A file that is there and is not read; the text says why."""


def read_inside(root: Path, path: Path, max_bytes: int, *, only_end: bool = False) -> str | None:
    """The text of a file in `root` (or of what a link there leads to); None when there is no file.

    Raises `Refused`: the real path lies outside `root`, it is no regular file with one name, it has
    more than `max_bytes`, or the system does not let us read it. With `only_end`, the last `max_bytes`
    of a larger file are read, from the beginning of a character.
    """
    try:
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(os.path.realpath(root)):
            raise Refused("it lies outside its folder, or a link leads out")
        file = open_plain(real)
    except NotADirectoryError:
        return None
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}") from error
    if file is None:
        return None
    with file:
        return decode_text(_bytes_of(file, max_bytes, only_end)).text


def open_plain(path: Path) -> BinaryIO | None:
    """Open a regular file with one name to read it; None when there is none.

    No link is followed at the path's end, and no writer of a pipe is waited for. A file that is
    replaced or removed just then, as editors do, is looked at again. Raises `Refused` for what is no
    such file, `OSError` when the system refuses.
    """
    for _ in range(_MOST_LOOKS):
        try:
            seen = path.lstat()
            if seen.st_nlink == 0:  # another file is just taking its place
                continue
            if fault := fault_of(seen):
                raise Refused(fault)
            file = os.fdopen(os.open(path, _READ_ONLY), "rb")
        except FileNotFoundError:
            return None
        status = os.fstat(file.fileno())
        if not fault_of(status) and (status.st_dev, status.st_ino) == (seen.st_dev, seen.st_ino):
            return file
        file.close()
    raise Refused("it is replaced all the time")


def fault_of(status: os.stat_result) -> str:
    """Why this is no regular file with one name; empty when it is one. With a second name it may well be a
    file from elsewhere."""
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    return f"a file with {status.st_nlink} names (hard links)" if status.st_nlink != 1 else ""


def _bytes_of(file: BinaryIO, max_bytes: int, only_end: bool) -> bytes:
    """All bytes of a file, or its last ones from the beginning of a character."""
    size = os.fstat(file.fileno()).st_size
    if size <= max_bytes:
        return file.read(max_bytes)
    if not only_end:
        raise Refused(f"{size} bytes, more than {max_bytes}")
    file.seek(size - max_bytes)
    return file.read(max_bytes).lstrip(_CONTINUATION)
