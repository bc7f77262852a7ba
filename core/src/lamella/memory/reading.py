"""Reading memory files: opening them safely, and cutting out lines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from attrs import frozen

from lamella.errors import LamellaError
from lamella.memory.paths import CURATED, CURATED_LOWER, MemoryFile, names_in, refusal
from lamella.memory.roots import readable_file
from lamella.text import inside
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
    opened = open_plain(file)
    if opened is None:
        return None
    with opened:
        status = os.fstat(opened.fileno())
        return Content(opened.read(), status)


def open_plain(file: MemoryFile) -> BinaryIO | None:
    """Open a memory file to read it; None when it does not exist. Raises as `load`."""
    try:
        return inside.open_plain(file.path)
    except inside.Refused:
        raise refusal(file.name) from None


def read_memory(
    workspace: Path, name: str, *, start_line: int = 1, lines: int | None = None, extra_paths: Sequence[str] = ()
) -> MemoryText:
    """Lines of a memory file, joined by `\\n`, without byte-order mark.

    `start_line` below 1 means 1; `lines` None means all. Raises `MemoryPathError` for a name that is
    no memory file (or `memory.md` where `MEMORY.md` stands for it), `LamellaError` when the system
    refuses to read it.
    """
    file = readable_file(workspace, name, extra_paths)
    if file.name == CURATED_LOWER and CURATED in names_in(file.path.parent):
        raise refusal(name)
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
