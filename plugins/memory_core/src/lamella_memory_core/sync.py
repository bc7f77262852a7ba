"""Bringing the index up to date with the files."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

from lamella.memory.scan import FoundFile, Scan, scan_memory
from lamella.types.memory import FileProblem, ProgressListener, SyncReport
from lamella_memory_core.chunking import Chunking
from lamella_memory_core.database import Database

MAX_FILE_BYTES = 16 * 1024 * 1024

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
    workspace: Path,
    chunking: Chunking,
    *,
    force: bool = False,
    progress: ProgressListener = lambda _progress: None,
) -> SyncReport:
    """Take in new and changed files, drop those that are gone; `force` makes the index anew.

    Each file is one transaction, so a crash leaves whole files. `force` is one transaction for all:
    until it is done, other processes find what was there before. Files that cannot be read keep what
    is known of them and are reported. `progress` is told before each changed file; what it raises ends
    the sync there. Raises `UsageError` for a missing workspace.
    """
    scan = scan_memory(workspace)
    database.prepare()
    with database.read() as connection:
        known, total = _known_files(connection), _chunk_count(connection)
    plan = _plan(scan, known, force=force)
    outcomes = ["unchanged"] * len(plan.current)
    failed = list(plan.failed)
    removed = 0
    if plan.changed or plan.removed or force:
        from lamella_memory_core.changes import remove, take_in_all  # loads SQLAlchemy, which takes a while

        with database.session() as connection:
            if force:
                with connection.begin():
                    database.recreate(connection)
                    fresh = take_in_all(connection, plan.changed, chunking, failed, nested=True, progress=progress)
                outcomes += ["updated" if f.name in known and o == "added" else o for f, o in fresh]
            else:
                outcomes += [o for _, o in take_in_all(connection, plan.changed, chunking, failed, progress=progress)]
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


def _plan(scan: Scan, known: Mapping[str, Stamp], *, force: bool) -> _Plan:
    usable = [f for f in scan.files if f.stat.st_size <= MAX_FILE_BYTES]
    large = [f for f in scan.files if f.stat.st_size > MAX_FILE_BYTES]
    limit = f"is larger than {MAX_FILE_BYTES // 1024**2} MiB"
    current = [] if force else [f for f in usable if known.get(f.name) == _stamp(f)]
    names = {f.name for f in usable}
    settled = {f.name for f in current}
    return _Plan(
        current=tuple(current),
        changed=tuple(f for f in usable if f.name not in settled),
        removed=tuple(name for name in known if name not in names and not scan.hides(name)),
        failed=(*scan.failed, *(FileProblem(f.name, limit) for f in large)),
    )


def _stamp(found: FoundFile) -> Stamp:
    status = found.stat
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _known_files(connection: sqlite3.Connection) -> dict[str, Stamp]:
    rows = connection.execute("SELECT path, size, mtime_ns, ctime_ns FROM files")
    return {path: (size, modified, changed) for path, size, modified, changed in rows}


def _chunk_count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])
