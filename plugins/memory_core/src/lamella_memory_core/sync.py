"""Bringing the index up to date with the files."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from attrs import frozen
from sqlalchemy import Connection, delete, func, insert, select, update

from lamella.errors import MemoryPathError
from lamella.memory.paths import CURATED, CURATED_LOWER
from lamella.memory.reading import Content, load
from lamella.memory.scan import FoundFile, Scan, scan_memory
from lamella.text import chunk, segment
from lamella.text.chunk import Chunk, chunk_text
from lamella.text.files import decode_text
from lamella.text.segment import search_text
from lamella.types.memory import FileProblem, SyncReport
from lamella_memory_core.database import Database
from lamella_memory_core.schema import chunks, files

MAX_FILE_BYTES = 16 * 1024 * 1024
SOURCE = "memory"
# A file that was written this shortly ago may be written again without a new time stamp.
_SETTLED_NS = 2_000_000_000

log = logging.getLogger(__name__)

Outcome = Literal["added", "updated", "unchanged", "gone"]


@frozen(slots=True)
class Chunking:
    """How files are cut, in estimated tokens."""

    size: int = 128
    overlap: int = 32

    @property
    def identity(self) -> str:
        """Changes when the same files would give another index."""
        return f"{chunk.IDENTITY}/{self.size}/{self.overlap}/{segment.IDENTITY}"

    def cut(self, name: str, text: str) -> list[Chunk]:
        """The curated file holds one fact an entry, so it is cut by entries."""
        return chunk_text(text, size=self.size, overlap=self.overlap, by_entry=name in (CURATED, CURATED_LOWER))


@frozen(slots=True)
class _Known:
    """A file as the index has it."""

    id: int
    size: int
    mtime_ns: int
    ctime_ns: int

    def is_current(self, found: FoundFile) -> bool:
        stat = found.stat
        return (self.size, self.mtime_ns, self.ctime_ns) == (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


@frozen(slots=True)
class _Plan:
    """What a sync has to look at."""

    current: tuple[FoundFile, ...]
    changed: tuple[FoundFile, ...]
    removed: tuple[str, ...]
    failed: tuple[FileProblem, ...] = ()


def sync_index(database: Database, workspace: Path, chunking: Chunking, *, force: bool = False) -> SyncReport:
    """Take in new and changed files, drop those that are gone; `force` makes the index anew.

    Each file is one transaction, so a crash leaves whole files. `force` is one transaction for all:
    until it is done, other processes find what was there before. Files that cannot be read keep what
    is known of them and are reported. Raises `UsageError` for a missing workspace.
    """
    scan = scan_memory(workspace)
    database.prepare()
    with database.read() as connection:
        known, total = _known_files(connection), _chunk_count(connection)
    plan = _plan(scan, known, force=force)
    outcomes: list[Outcome] = ["unchanged"] * len(plan.current)
    failed = list(plan.failed)
    removed = 0
    if plan.changed or plan.removed or force:
        with database.session() as connection:
            if force:
                with connection.begin():
                    database.recreate(connection)
                    fresh = _take_in_all(connection, plan.changed, chunking, failed, nested=True)
                outcomes += ["updated" if f.name in known and o == "added" else o for f, o in fresh]
            else:
                outcomes += [o for _, o in _take_in_all(connection, plan.changed, chunking, failed)]
                removed = sum(_remove(connection, name) for name in plan.removed)
        with database.read() as connection:
            total = _chunk_count(connection)
    return SyncReport(
        workspace=str(scan.workspace),
        seen=len(scan.files) + len(scan.failed),
        added=outcomes.count("added"),
        updated=outcomes.count("updated"),
        unchanged=outcomes.count("unchanged"),
        removed=removed + (len(plan.removed) if force else 0),
        failed=tuple(failed),
        chunks=total,
        rebuilt=database.take_rebuilt(),
        skipped=scan.skipped,
    )


def _plan(scan: Scan, known: Mapping[str, _Known], *, force: bool) -> _Plan:
    usable = [f for f in scan.files if f.stat.st_size <= MAX_FILE_BYTES]
    large = [f for f in scan.files if f.stat.st_size > MAX_FILE_BYTES]
    limit = f"is larger than {MAX_FILE_BYTES // 1024**2} MiB"
    current = [] if force else [f for f in usable if f.name in known and known[f.name].is_current(f)]
    names = {f.name for f in usable}
    settled = {f.name for f in current}
    return _Plan(
        current=tuple(current),
        changed=tuple(f for f in usable if f.name not in settled),
        removed=tuple(name for name in known if name not in names and not scan.hides(name)),
        failed=(*scan.failed, *(FileProblem(f.name, limit) for f in large)),
    )


def _known_files(connection: Connection) -> dict[str, _Known]:
    rows = connection.execute(select(files.c.path, files.c.id, files.c.size, files.c.mtime_ns, files.c.ctime_ns))
    return {path: _Known(*rest) for path, *rest in rows}


def _chunk_count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(chunks)).scalar_one()


def _take_in_all(
    connection: Connection,
    found: Sequence[FoundFile],
    chunking: Chunking,
    failed: list[FileProblem],
    *,
    nested: bool = False,
) -> list[tuple[FoundFile, Outcome]]:
    """Take in files, in one transaction each unless `nested` in the caller's; problems go to `failed`."""
    outcomes: list[tuple[FoundFile, Outcome]] = []
    for file in found:
        try:
            content = load(file.file)
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
    digest = hashlib.sha256(content.data).hexdigest()
    values = {"hash": digest, **stamps(content, time.time_ns())}
    row = connection.execute(select(files.c.id, files.c.hash).where(files.c.path == file.name)).one_or_none()
    if row is None:
        made = connection.execute(insert(files).values(path=file.name, source=SOURCE, **values))
        file_id = int(made.lastrowid)
    else:
        file_id = row.id
        connection.execute(update(files).where(files.c.id == file_id).values(**values))
        if row.hash == digest:
            return "unchanged"
        _delete_chunks(connection, file_id)
    decoded = decode_text(content.data)
    if decoded.replaced:
        log.warning("%s: %d places are not valid %s", file.name, decoded.replaced, decoded.encoding)
    _insert_chunks(connection, file_id, file.name, chunking.cut(file.name, decoded.text))
    return "added" if row is None else "updated"


def stamps(content: Content, now_ns: int) -> dict[str, int]:
    """What tells later, without reading, that the file is the same; zeros when it was just written."""
    stat = content.stat
    settled = now_ns - max(stat.st_mtime_ns, stat.st_ctime_ns) > _SETTLED_NS
    return {
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns if settled else 0,
        "ctime_ns": stat.st_ctime_ns if settled else 0,
    }


def _insert_chunks(connection: Connection, file_id: int, name: str, cut: Sequence[Chunk]) -> None:
    if not cut:
        return
    first = connection.execute(select(func.coalesce(func.max(chunks.c.id), 0))).scalar_one() + 1
    connection.execute(
        insert(chunks),
        [
            {
                "id": number,
                "file_id": file_id,
                "start_line": c.start_line,
                "end_line": c.end_line,
                "start_char": c.start,
                "end_char": c.end,
                "hash": hashlib.sha256(c.text.encode()).hexdigest(),
                "text": c.text,
            }
            for number, c in enumerate(cut, first)
        ],
    )
    named = search_text(topic_of(name))
    connection.exec_driver_sql(
        "INSERT INTO chunks_fts (rowid, body, name) VALUES (?, ?, ?)",
        [(number, search_text(c.text), named) for number, c in enumerate(cut, first)],
    )


def topic_of(name: str) -> str:
    """The telling part of a file's name: without the folder and the ending that all notes share."""
    return name.removeprefix("memory/").removesuffix(".md")


def _remove(connection: Connection, name: str) -> int:
    """Drop a file; by its name, since its id may belong to another file by now."""
    with connection.begin():
        file_id = connection.execute(select(files.c.id).where(files.c.path == name)).scalar_one_or_none()
        if file_id is None:
            return 0
        _delete_chunks(connection, file_id)
        connection.execute(delete(files).where(files.c.id == file_id))
        return 1


def _delete_chunks(connection: Connection, file_id: int) -> None:
    connection.exec_driver_sql(
        "DELETE FROM chunks_fts WHERE rowid IN (SELECT id FROM chunks WHERE file_id = ?)", (file_id,)
    )
    connection.execute(delete(chunks).where(chunks.c.file_id == file_id))
