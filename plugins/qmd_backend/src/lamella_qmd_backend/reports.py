"""What is told of the index: reports of a sync, and the facts of `lamella memory status`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lamella.memory.scan import FoundFile
from lamella.text.days import utc_iso
from lamella.types.memory import SyncReport
from lamella_qmd_backend.changes import changes_of
from lamella_qmd_backend.config import STATUS_SECONDS
from lamella_qmd_backend.health import check_health
from lamella_qmd_backend.index import PrivateIndex, Updated
from lamella_qmd_backend.own import OwnIndex


def report_of(done: Updated) -> SyncReport:
    """A sync in files. `chunks` is the number of documents that QMD holds: it indexes whole files."""
    changes, scan = done.changes, done.scan
    failed = {problem.path for problem in (*scan.failed, *done.problems)}
    added = len(changes.added - failed)
    updated = len(changes.updated - failed)
    return SyncReport(
        str(scan.workspace),
        seen=len(scan.files) + len(scan.failed),
        added=added,
        updated=updated,
        unchanged=len({f.name for f in scan.files} - changes.added - changes.updated - failed),
        removed=len(changes.removed),
        failed=(*scan.failed, *done.problems),
        chunks=done.state.documents,
        rebuilt=done.rebuilt,
        skipped=scan.skipped,
        embedded=done.embedded,
        degraded=done.embed_problem,
    )


def private_facts(index: PrivateIndex) -> dict[str, Any]:
    """Facts of the private index. Raises `QmdFailed` when QMD does not work."""
    version, command = index.version(), index.runner().command
    scan, state = index.look(), index.state()
    found = check_health(index, STATUS_SECONDS) if state.settings else None
    changes = changes_of(scan, state.files)
    database = index.database(state)
    exists = database.exists()
    collections = [
        {"name": c.name, "path": c.path, "pattern": c.pattern, "missing": not Path(c.path).is_dir()}
        for c in index.collections(scan)
    ]
    facts: dict[str, Any] = {
        "command": " ".join(command),
        "version": str(version),
        "database": str(database),
        "databaseBytes": database.stat().st_size if exists else 0,
        "files": len(state.files),
        "documents": state.documents if found is None or found.documents is None else found.documents,
        "behind": len(changes.names) + len(changes.removed),
        "skipped": [{"path": p.path, "reason": p.reason} for p in scan.skipped],
        "collections": collections,
        "pendingEmbeddings": found.pending if found is not None and index.embeds else None,
        "lastUpdate": _iso(state.updated_at),
        "updateError": state.error or None,
        "updateErrorAt": _iso(state.error_at),
        "embedError": state.embed_error or None,
        "embedRetryAt": _iso(state.embed_after),
    }
    if found is not None and found.documents == 0 and _expected(scan.files):
        facts["problem"] = "QMD's index is empty; `lamella memory index --force` makes it anew"
    return facts


def own_facts(index: OwnIndex) -> dict[str, Any]:
    """Facts of the user's own index. Raises `QmdFailed` when QMD does not work."""
    version, command = index.version(), index.runner().command
    found = check_health(index, STATUS_SECONDS)
    collections = index.collections()
    outside = [c.path for c in collections if not index.is_in_memory(c)]
    facts: dict[str, Any] = {
        "command": " ".join(command),
        "version": str(version),
        "ownIndex": True,
        "documents": found.documents,
        "pendingEmbeddings": found.pending,
        "collections": [{"name": c.name, "path": c.path, "pattern": c.pattern} for c in collections],
    }
    if outside:
        keys = "plugins.config.memory-core.extra_paths"
        facts["problem"] = f"no memory lies in {', '.join(outside)}; {keys} takes it in"
    return facts


def _expected(files: tuple[FoundFile, ...]) -> bool:
    return any(found.stat.st_size for found in files)


def _iso(seconds: float) -> str | None:
    return utc_iso(datetime.fromtimestamp(seconds, UTC)) if seconds else None
