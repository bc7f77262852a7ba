"""Passages of memory files, and what tells a file that has changed."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence

from attrs import evolve, field, frozen

from lamella.memory.paths import is_curated
from lamella.memory.reading import load, open_plain
from lamella.memory.scan import FoundFile
from lamella.memory.transcripts import SOURCE as SESSIONS
from lamella.memory.transcripts import read_talk
from lamella.text import chunk, segment
from lamella.text.chunk import chunk_text
from lamella.text.files import decode_text

# A file that was written this shortly ago may be written again without a new time stamp.
_SETTLED_NS = 2_000_000_000


@frozen(slots=True)
class Passage:
    """A piece of a file: `text` is its characters from `start` to `end`; lines count from 1, both included.

    `number` counts the passages of a file from 1; 0 is the file's own row, whose `hash` is that of its content
    and whose `stamp` tells, unless it is empty, that the file has not changed.
    """

    path: str
    number: int
    hash: str
    source: str = "memory"
    start_line: int = 0
    end_line: int = 0
    start: int = 0
    end: int = 0
    text: str = field(default="", repr=False)
    stamp: str = ""


@frozen(slots=True)
class Cutting:
    """How files are cut, in estimated tokens."""

    size: int = 128
    overlap: int = 32

    @property
    def identity(self) -> str:
        """Changes when the same files would give other passages, or these other words."""
        return f"{chunk.IDENTITY}/{self.size}/{self.overlap}/{segment.IDENTITY}"


@frozen(slots=True)
class Taken:
    """A file as it was read: its own row, and its passages."""

    file: Passage
    passages: tuple[Passage, ...] = field(repr=False)

    @property
    def rows(self) -> tuple[Passage, ...]:
        return (self.file, *self.passages)


def stamp_of(stat: os.stat_result) -> str:
    """What stays the same while a file does."""
    return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}"


def take_in(found: FoundFile, cutting: Cutting) -> Taken | None:
    """Read a file and cut it; None when it is gone. Raises `OSError`, and `MemoryPathError` when it became
    a link."""
    lines: Sequence[int] | None = None
    if found.source == SESSIONS:
        opened = open_plain(found.file)
        if opened is None:
            return None
        with opened:
            stat, talk = os.fstat(opened.fileno()), read_talk(opened)
        text, lines = talk.text, talk.lines
        digest = _digest(f"{text}\n{lines}".encode())
    else:
        content = load(found.file)
        if content is None:
            return None
        text, stat, digest = decode_text(content.data).text, content.stat, _digest(content.data)
    settled = time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > _SETTLED_NS
    file = Passage(found.name, 0, digest, found.source, stamp=stamp_of(stat) if settled else "")
    return Taken(file, tuple(_cut(file, text, lines, cutting)))


def _cut(file: Passage, text: str, lines: Sequence[int] | None, cutting: Cutting) -> list[Passage]:
    """`lines`: where a transcript's lines stand in it. The curated file holds one fact an entry."""
    by_entry = is_curated(file.path)
    return [
        evolve(
            file,
            number=number,
            hash=_digest(piece.text.encode()),
            start_line=piece.start_line if lines is None else lines[piece.start_line - 1],
            end_line=piece.end_line if lines is None else lines[piece.end_line - 1],
            start=piece.start,
            end=piece.end,
            text=piece.text,
            stamp="",
        )
        for number, piece in enumerate(
            chunk_text(text, size=cutting.size, overlap=cutting.overlap, by_entry=by_entry), 1
        )
    ]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
