"""Reading memory files: opening them safely, and cutting out lines."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from attrs import frozen

from lamella.errors import LamellaError
from lamella.memory.paths import MemoryFile, memory_file, refusal
from lamella.text.files import decode_text, split_lines
from lamella.types.memory import MemoryText


@frozen(slots=True)
class Content:
    """The bytes of a memory file, and its stat from before they were read."""

    data: bytes
    stat: os.stat_result


def load(file: MemoryFile) -> Content | None:
    """Read a memory file; None when it does not exist.

    Raises `MemoryPathError` when it is a link or no regular file (also when it became one just now),
    `OSError` when the system refuses.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        seen = file.path.lstat()
        if not _plain(seen):
            raise refusal(file.name)
        fd = os.open(file.path, flags)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as opened:
        status = os.fstat(fd)
        if not _plain(status) or (status.st_dev, status.st_ino) != (seen.st_dev, seen.st_ino):
            raise refusal(file.name)
        return Content(opened.read(), status)


def read_memory(workspace: Path, name: str, *, start_line: int = 1, lines: int | None = None) -> MemoryText:
    """Lines of a memory file, joined by `\\n`, without byte-order mark.

    `start_line` below 1 means 1; `lines` None means all. Raises `MemoryPathError` for a name that is
    no memory file, `LamellaError` when the system refuses to read it.
    """
    file = memory_file(workspace, name)
    try:
        content = load(file)
    except OSError as error:
        raise LamellaError(f"cannot read {file.name}: {error.strerror}") from error
    if content is None:
        return MemoryText("missing", file.name)
    return slice_lines(file.name, decode_text(content.data).text, start_line, lines)


def slice_lines(name: str, text: str, start_line: int, lines: int | None) -> MemoryText:
    """A range of lines of a text as a `MemoryText`; `truncated` when lines follow the range."""
    every = split_lines(text)
    first = max(start_line, 1)
    wanted = every[first - 1 :] if lines is None else every[first - 1 : first - 1 + max(lines, 0)]
    if not wanted:
        return MemoryText("empty", name, total_lines=len(every))
    last = first + len(wanted) - 1
    return MemoryText("ok", name, "\n".join(wanted), first, last, len(every), truncated=last < len(every))


def _plain(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1
