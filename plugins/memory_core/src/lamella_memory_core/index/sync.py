"""Bringing the index up to date with the files."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from lamella.memory.scan import FoundFile, Scan
from lamella.memory.transcripts import SOURCE as SESSIONS
from lamella.types.memory import FileProblem, ProgressListener, SyncReport
from lamella_memory_core.index.chunking import Chunking
from lamella_memory_core.index.database import Database
from lamella_memory_core.index.growth import Growth

MAX_FILE_BYTES = 16 * 1024 * 1024
# An index that knows no file yet is filled with so many bytes a transaction: a tenth of a second or two.
FILLED_AT_ONCE = 2097152

# Size in bytes, time of the last write and of the last change, in ns: what tells whether a file is the same.
Stamp: TypeAlias = tuple[int, int, int]


@frozen(slots=True)
class _Plan:
    """What a sync has to look at."""

    current: tuple[FoundFile, ...]
    changed: tuple[FoundFile, ...]
    removed: tuple[str, ...]
    failed: tuple[FileProblem, ...] = ()


def sync_index(
    database: Database,
    scan: Scan,
    chunking: Chunking,
    *,
    force: bool = False,
    growth: Growth | None = None,
    progress: ProgressListener = lambda _progress: None,
) -> SyncReport:
    """Take in new and changed files of a scan, drop those that are gone; `force` makes the index anew.

    A transaction holds whole files, so a crash leaves none in part: one file, or several when there was none
    in the index. `force` is one transaction for all: until it is done, other processes find what was there
    before. Files that cannot be read keep what
    is known of them and are reported. `growth` tells which changed transcripts can wait; without it
    none does. `progress` is told before each changed file; what it raises ends the sync there.
    """
    database.prepare()
    with database.read() as connection:
        known = _known_files(connection)
    plan = _plan(scan, known, growth, force=force)
    outcomes = ["unchanged"] * len(plan.current)
    failed = list(plan.failed)
    removed = 0
    if plan.changed or plan.removed or force:
        from lamella_memory_core.index.changes import remove, take_in_all  # loads SQLAlchemy, which takes a while

        with database.session() as connection:
            if force:
                with connection.begin():
                    database.recreate(connection)
                    fresh = take_in_all(connection, plan.changed, chunking, failed, nested=True, progress=progress)
                outcomes += ["updated" if f.name in known and o == "added" else o for f, o in fresh]
            else:
                together = 0 if known else FILLED_AT_ONCE
                taken = take_in_all(connection, plan.changed, chunking, failed, together=together, progress=progress)
                outcomes += [outcome for _, outcome in taken]
                removed = sum(remove(connection, name) for name in plan.removed)
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


def is_too_large(found: FoundFile) -> bool:
    """Whether a file is left out for its size; of transcripts only what was said is held."""
    return found.stat.st_size > MAX_FILE_BYTES and found.source != SESSIONS


def _plan(scan: Scan, known: Mapping[str, Stamp], growth: Growth | None, *, force: bool) -> _Plan:
    large: list[FoundFile] = []
    current: list[FoundFile] = []
    changed: list[FoundFile] = []
    for file in scan.files:
        stamp, status = known.get(file.name), file.stat
        if status.st_size > MAX_FILE_BYTES and is_too_large(file):
            large.append(file)
        elif force or stamp != (status.st_size, status.st_mtime_ns, status.st_ctime_ns):
            (current if not force and _can_wait(file, stamp, growth) else changed).append(file)
        else:
            current.append(file)
    limit = f"is larger than {MAX_FILE_BYTES // 1024**2} MiB"
    names = {file.name for file in current}
    names.update(file.name for file in changed)
    return _Plan(
        current=tuple(current),
        changed=tuple(changed),
        removed=tuple(name for name in known if name not in names and not scan.hides(name)),
        failed=(*scan.failed, *(FileProblem(f.name, limit) for f in large)),
    )


def _can_wait(found: FoundFile, stamp: Stamp | None, growth: Growth | None) -> bool:
    return growth is not None and found.source == SESSIONS and growth.can_wait(found, stamp[0] if stamp else 0)


def _known_files(connection: sqlite3.Connection) -> dict[str, Stamp]:
    rows = connection.execute("SELECT path, size, mtime_ns, ctime_ns FROM files")
    return {row[0]: row[1:] for row in rows}


def _chunk_count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])
