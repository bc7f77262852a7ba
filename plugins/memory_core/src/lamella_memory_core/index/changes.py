"""Writing changes of files into the index, whole files in a transaction."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Literal

from sqlalchemy import Connection

from lamella.errors import MemoryPathError
from lamella.memory.scan import FoundFile
from lamella.text.chunk import Chunk
from lamella.text.segment import search_text
from lamella.types.memory import FileProblem, ProgressListener, SyncProgress
from lamella_memory_core.index.chunking import Chunking
from lamella_memory_core.index.database import MARK_CHANGED, driver
from lamella_memory_core.index.texts import Content, read_content

# A file that was written this shortly ago may be written again without a new time stamp.
_SETTLED_NS = 2_000_000_000
# Statements go to SQLite's driver: SQLAlchemy would take longer to arrange them than SQLite to carry them out.
_INSERT_CHUNK = (
    "INSERT INTO chunks (id, file_id, start_line, end_line, start_char, end_char, hash, text)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_WORDS = "INSERT INTO chunks_fts (rowid, body, name) VALUES (?, ?, ?)"
_INSERT_FILE = (
    "INSERT INTO files (size, mtime_ns, ctime_ns, hash, line_map, path, source, version)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, (SELECT number FROM generation))"
)
_STAMP_FILE = "UPDATE files SET size = ?, mtime_ns = ?, ctime_ns = ? WHERE id = ?"
_UPDATE_FILE = (
    "UPDATE files SET size = ?, mtime_ns = ?, ctime_ns = ?, hash = ?, line_map = ?,"
    " version = (SELECT number FROM generation) WHERE id = ?"
)

log = logging.getLogger(__name__)

Outcome = Literal["added", "updated", "unchanged", "gone"]


def take_in_all(
    connection: Connection,
    found: Sequence[FoundFile],
    chunking: Chunking,
    failed: list[FileProblem],
    *,
    together: int = 0,
    nested: bool = False,
    progress: ProgressListener = lambda _progress: None,
) -> list[tuple[FoundFile, Outcome]]:
    """Take in files; problems go to `failed`. Each has a transaction of its own, or shares it with others
    while they have at most `together` bytes, or is part of the caller's when `nested`.

    `progress` is told before each file; what it raises ends the work there.
    """
    outcomes: list[tuple[FoundFile, Outcome]] = []
    done = 0
    for group in grouped(found, together):
        read: list[tuple[FoundFile, Content]] = []
        for file in group:
            progress(SyncProgress("files", done, len(found)))
            done += 1
            try:
                content = read_content(file)
            except (OSError, MemoryPathError) as error:
                reason = error.strerror if isinstance(error, OSError) else "became a link"
                failed.append(FileProblem(file.name, f"cannot be read: {reason}"))
                continue
            if content is None:
                outcomes.append((file, "gone"))
            else:
                read.append((file, content))
        with nullcontext() if nested else connection.begin():
            outcomes += [(file, _take_in(driver(connection), file, content, chunking)) for file, content in read]
    return outcomes


def grouped(found: Sequence[FoundFile], together: int) -> Iterator[Sequence[FoundFile]]:
    """The files in order, as many in a group as have at most so many bytes; at least one."""
    first, size = 0, 0
    for number, file in enumerate(found):
        size += file.stat.st_size
        if size > together and number > first:
            yield found[first:number]
            first, size = number, file.stat.st_size
    if found:
        yield found[first:]


def _take_in(db: sqlite3.Connection, file: FoundFile, content: Content, chunking: Chunking) -> Outcome:
    """Index one file. Looks at its row again, since another process may have been quicker."""
    stamp = stamps(content.stat, time.time_ns())
    row = db.execute("SELECT id, hash FROM files WHERE path = ?", (file.name,)).fetchone()
    if row is not None and row[1] == content.hash:
        db.execute(_STAMP_FILE, (*stamp, row[0]))
        return "unchanged"
    db.execute(MARK_CHANGED)
    if row is None:
        made = db.execute(_INSERT_FILE, (*stamp, content.hash, content.line_map, file.name, file.source))
        file_id = int(made.lastrowid or 0)
    else:
        file_id = row[0]
        db.execute(_UPDATE_FILE, (*stamp, content.hash, content.line_map, file_id))
        _delete_chunks(db, file_id)
    _insert_chunks(db, file_id, content.topic, chunking.cut(file.name, content.text))
    return "added" if row is None else "updated"


def stamps(stat: os.stat_result, now_ns: int) -> tuple[int, int, int]:
    """Size, and times of the last write and of the last change: what tells later, without reading, that the
    file is the same. No times when it was just written."""
    settled = now_ns - max(stat.st_mtime_ns, stat.st_ctime_ns) > _SETTLED_NS
    return (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) if settled else (stat.st_size, 0, 0)


def _insert_chunks(db: sqlite3.Connection, file_id: int, topic: str, cut: Sequence[Chunk]) -> None:
    if not cut:
        return
    first = db.execute("SELECT coalesce(max(id), 0) FROM chunks").fetchone()[0] + 1
    db.executemany(
        _INSERT_CHUNK,
        [
            (number, file_id, c.start_line, c.end_line, c.start, c.end, _digest(c.text), c.text)
            for number, c in enumerate(cut, first)
        ],
    )
    named = search_text(topic)
    db.executemany(_INSERT_WORDS, [(number, search_text(c.text), named) for number, c in enumerate(cut, first)])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def remove(connection: Connection, name: str) -> int:
    """Drop a file; by its name, since its id may belong to another file by now."""
    with connection.begin():
        db = driver(connection)
        row = db.execute("SELECT id FROM files WHERE path = ?", (name,)).fetchone()
        if row is None:
            return 0
        db.execute(MARK_CHANGED)
        _delete_chunks(db, row[0])
        db.execute("DELETE FROM files WHERE id = ?", row)
        return 1


def _delete_chunks(db: sqlite3.Connection, file_id: int) -> None:
    of_file = (file_id,)
    db.execute("DELETE FROM chunks_fts WHERE rowid IN (SELECT id FROM chunks WHERE file_id = ?)", of_file)
    db.execute("INSERT INTO dropped SELECT hash FROM chunks WHERE file_id = ?", of_file)
    db.execute("DELETE FROM chunks WHERE file_id = ?", of_file)
