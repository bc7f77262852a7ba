"""How the files differ from what QMD's index holds. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from lamella.memory.scan import FoundFile, Scan
from lamella.memory.transcripts import SOURCE as SESSIONS
from lamella_qmd_backend.collections import is_passed_by

# Each search reads the notes that QMD does not know; the newest ones when there are many.
_MOST_NOTES = 64
_MOST_BYTES = 2_000_000


@frozen(slots=True)
class Changes:
    """How the files differ from what the index holds, by name. `passed_by` are never in it."""

    added: frozenset[str] = frozenset()
    updated: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    passed_by: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.added or self.updated or self.removed)

    @property
    def names(self) -> frozenset[str]:
        return self.added | self.updated


def stamp(found: FoundFile) -> tuple[int, int]:
    """What tells whether a file has changed: its size, and the time of its last write in ns."""
    return found.stat.st_size, found.stat.st_mtime_ns


def changes_of(scan: Scan, known: Mapping[str, tuple[int, int]]) -> Changes:
    """A scan beside the stamps of the files that an index holds."""
    seen = {found.name: stamp(found) for found in scan.files}
    return Changes(
        added=frozenset(name for name in seen if name not in known),
        updated=frozenset(name for name in seen if name in known and known[name] != seen[name]),
        removed=frozenset(name for name in known if name not in seen and not scan.hides(name)),
        passed_by=frozenset(found.name for found in scan.files if is_passed_by(found)),
    )


def unknown_notes(scan: Scan, changes: Changes) -> tuple[list[FoundFile], int]:
    """Notes that QMD does not know as they are, the newest first; and how many there are beyond the most.

    Transcripts can wait for the next update: their newest part is in view anyway.
    """
    names = changes.names | changes.passed_by
    notes = [f for f in scan.files if f.name in names and f.source != SESSIONS and f.stat.st_size]
    notes.sort(key=lambda found: -found.stat.st_mtime_ns)
    taken: list[FoundFile] = []
    size = 0
    for found in notes[:_MOST_NOTES]:
        size += found.stat.st_size
        if size > _MOST_BYTES:
            break
        taken.append(found)
    return taken, len(notes) - len(taken)
