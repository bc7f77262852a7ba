"""Writing changes of files into the index: one file, one transaction."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Sequence
from typing import Literal

from sqlalchemy import Connection, delete, func, insert, select, update

from lamella.errors import MemoryPathError
from lamella.memory.scan import FoundFile
from lamella.text.chunk import Chunk
from lamella.text.segment import search_text
from lamella.types.memory import FileProblem, ProgressListener, SyncProgress
from lamella_memory_core.index.chunking import Chunking
from lamella_memory_core.index.database import mark_changed
from lamella_memory_core.index.schema import chunks, files
from lamella_memory_core.index.texts import Content, read_content

# A file that was written this shortly ago may be written again without a new time stamp.
_SETTLED_NS = 2_000_000_000
# SQLAlchemy would take longer to arrange the values than SQLite to store them.
_INSERT_CHUNK = (
    "INSERT INTO chunks (id, file_id, start_line, end_line, start_char, end_char, hash, text)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)

log = logging.getLogger(__name__)

Outcome = Literal["added", "updated", "unchanged", "gone"]


def take_in_all(
    connection: Connection,
    found: Sequence[FoundFile],
    chunking: Chunking,
    failed: list[FileProblem],
    *,
    nested: bool = False,
    progress: ProgressListener = lambda _progress: None,
) -> list[tuple[FoundFile, Outcome]]:
    """Take in files, in one transaction each unless `nested` in the caller's; problems go to `failed`.

    `progress` is told before each file; what it raises ends the work there.
    """
    outcomes: list[tuple[FoundFile, Outcome]] = []
    for done, file in enumerate(found):
        progress(SyncProgress("files", done, len(found)))
        try:
            content = read_content(file)
        except (OSError, MemoryPathError) as error:
            reason = error.strerror if isinstance(error, OSError) else "became a link"
            failed.append(FileProblem(file.name, f"cannot be read: {reason}"))
            continue
        if content is None:
            outcomes.append((file, "gone"))
        elif nested:
            outcomes.append((file, _take_in(connection, file, content, chunking)))
        else:
            with connection.begin():
                outcomes.append((file, _take_in(connection, file, content, chunking)))
    return outcomes


def _take_in(connection: Connection, file: FoundFile, content: Content, chunking: Chunking) -> Outcome:
    """Index one file. Looks at its row again, since another process may have been quicker."""
    values = {"hash": content.hash, "line_map": content.line_map, **stamps(content.stat, time.time_ns())}
    row = connection.execute(select(files.c.id, files.c.hash).where(files.c.path == file.name)).one_or_none()
    if row is None:
        made = connection.execute(insert(files).values(path=file.name, source=file.source, **values))
        file_id = int(made.lastrowid)
    else:
        file_id = row.id
        connection.execute(update(files).where(files.c.id == file_id).values(**values))
        if row.hash == content.hash:
            return "unchanged"
        _delete_chunks(connection, file_id)
    mark_changed(connection, file_id)
    _insert_chunks(connection, file_id, content.topic, chunking.cut(file.name, content.text))
    return "added" if row is None else "updated"


def stamps(stat: os.stat_result, now_ns: int) -> dict[str, int]:
    """What tells later, without reading, that the file is the same; zeros when it was just written."""
    settled = now_ns - max(stat.st_mtime_ns, stat.st_ctime_ns) > _SETTLED_NS
    return {
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns if settled else 0,
        "ctime_ns": stat.st_ctime_ns if settled else 0,
    }


def _insert_chunks(connection: Connection, file_id: int, topic: str, cut: Sequence[Chunk]) -> None:
    if not cut:
        return
    first = connection.execute(select(func.coalesce(func.max(chunks.c.id), 0))).scalar_one() + 1
    connection.exec_driver_sql(
        _INSERT_CHUNK,
        [
            (number, file_id, c.start_line, c.end_line, c.start, c.end, _digest(c.text), c.text)
            for number, c in enumerate(cut, first)
        ],
    )
    named = search_text(topic)
    connection.exec_driver_sql(
        "INSERT INTO chunks_fts (rowid, body, name) VALUES (?, ?, ?)",
        [(number, search_text(c.text), named) for number, c in enumerate(cut, first)],
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def remove(connection: Connection, name: str) -> int:
    """Drop a file; by its name, since its id may belong to another file by now."""
    with connection.begin():
        file_id = connection.execute(select(files.c.id).where(files.c.path == name)).scalar_one_or_none()
        if file_id is None:
            return 0
        mark_changed(connection)
        _delete_chunks(connection, file_id)
        connection.execute(delete(files).where(files.c.id == file_id))
        return 1


def _delete_chunks(connection: Connection, file_id: int) -> None:
    connection.exec_driver_sql(
        "DELETE FROM chunks_fts WHERE rowid IN (SELECT id FROM chunks WHERE file_id = ?)", (file_id,)
    )
    connection.exec_driver_sql("INSERT INTO dropped SELECT hash FROM chunks WHERE file_id = ?", (file_id,))
    connection.execute(delete(chunks).where(chunks.c.file_id == file_id))
