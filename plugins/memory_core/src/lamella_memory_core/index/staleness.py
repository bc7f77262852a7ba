"""How far an index is behind the notes, without changing it."""

from __future__ import annotations

import sqlite3

from lamella.errors import MemoryPathError
from lamella.memory.reading import open_plain
from lamella.memory.scan import FoundFile, Scan
from lamella_memory_core.index.sync import is_too_large
from lamella_memory_core.index.texts import read_content


def files_behind(connection: sqlite3.Connection, scan: Scan) -> int:
    """How many files a sync would take in or drop: new, changed and gone ones, but none that it cannot read."""
    known = {
        path: (digest, tuple(stamp))
        for path, digest, *stamp in connection.execute("SELECT path, hash, size, mtime_ns, ctime_ns FROM files")
    }
    found = {file.name: file for file in scan.files if not is_too_large(file)}
    gone = sum(name not in found and not scan.hides(name) for name in known)
    new = sum(name not in known and _can_be_read(file) for name, file in found.items())
    return gone + new + sum(name in known and not _is_same(file, *known[name]) for name, file in found.items())


def _can_be_read(found: FoundFile) -> bool:
    try:
        opened = open_plain(found.file)
    except (OSError, MemoryPathError):
        return False
    if opened is not None:
        opened.close()
    return opened is not None


def _is_same(found: FoundFile, digest: str, stamp: tuple[int, ...]) -> bool:
    """By its stamp; by its content where that is not sure, as for a file that was just written."""
    status = found.stat
    if stamp == (status.st_size, status.st_mtime_ns, status.st_ctime_ns):
        return True
    try:
        content = read_content(found)
    except (OSError, MemoryPathError):
        return True  # what is known of a file that cannot be read is kept
    return content is not None and content.hash == digest
