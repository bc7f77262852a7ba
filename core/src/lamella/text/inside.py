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


def read_inside(root: Path, path: Path, max_bytes: int) -> str | None:
    """The text of a file in `root` (or of what a link there leads to); None when there is no file.

    Raises `Refused`: the real path lies outside `root`, it is no regular file with one name, it has
    more than `max_bytes`, or the system does not let us read it.
    """
    try:
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(os.path.realpath(root)):
            raise Refused("a link that leads out of its folder")
        return decode_text(_read_plain(real, max_bytes)).text
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}") from error


def _read_plain(real: Path, max_bytes: int) -> bytes:
    """The bytes of a file that is opened without following links or waiting for a writer."""
    _check(real.lstat(), max_bytes)
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(real, flags), "rb") as file:
        _check(os.fstat(file.fileno()), max_bytes)  # another file may have taken its place
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise Refused(f"larger than {max_bytes} bytes")
    return data


def _check(status: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Refused("not a regular file")
    if status.st_nlink > 1:
        raise Refused(f"a file with {status.st_nlink} names (hard links)")
    if status.st_size > max_bytes:
        raise Refused(f"{status.st_size} bytes, more than {max_bytes}")
