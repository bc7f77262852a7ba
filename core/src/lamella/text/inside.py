"""Reading a file that must lie in a folder: no link leads out of it, and nothing but text comes back.

For files that somebody else may have laid there, such as those of a workspace. Links to other files
of the folder are followed. A file with a second name (a hard link) may be anybody's, so it is refused.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lamella.text.files import decode_text


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
        return decode_text(_read_plain(real, max_bytes, only_end)).text
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}") from error


def _read_plain(real: Path, max_bytes: int, only_end: bool) -> bytes:
    """The bytes of a file that is opened without following links or waiting for a writer."""
    _check(real.lstat())
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(real, flags), "rb") as file:
        status = os.fstat(file.fileno())
        _check(status)  # another file may have taken its place
        too_many = status.st_size - max_bytes
        if too_many > 0 and not only_end:
            raise Refused(f"{status.st_size} bytes, more than {max_bytes}")
        file.seek(max(too_many, 0))
        data = file.read(max_bytes)
    return data.lstrip(_CONTINUATION) if too_many > 0 else data


_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes that go on with a character of UTF-8


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Refused("not a regular file")
    if status.st_nlink > 1:
        raise Refused(f"a file with {status.st_nlink} names (hard links)")
