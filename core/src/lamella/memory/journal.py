"""The journal of memory writes: one JSON line for each, appended before the file is replaced.

So every write is in the journal. A process that is killed between the two leaves a line whose
write did not happen: the file's content then never had the hash in `after`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
from attrs import frozen

from lamella.types.memory import Provenance

NAME = "memory-journal.jsonl"


@frozen(slots=True)
class JournalEntry:
    """One write: when (UTC, ISO), which file, first and last new line, bytes added (negative: fewer).

    `before` and `after` are SHA-256 of the whole file; `before` is empty for a new file.
    """

    time: str
    path: str
    mode: str
    start_line: int
    end_line: int
    bytes: int
    before: str
    after: str
    provenance: Provenance

    def to_json(self) -> dict[str, Any]:
        who = self.provenance
        return {
            "time": self.time,
            "path": self.path,
            "mode": self.mode,
            "startLine": self.start_line,
            "endLine": self.end_line,
            "bytes": self.bytes,
            "before": self.before,
            "after": self.after,
            "actor": who.actor,
            "sessionKey": who.session_key,
            "sessionId": who.session_id,
            "entryId": who.entry_id,
            "trigger": who.trigger,
        }


@frozen(slots=True)
class Journal:
    """Entries, oldest first, and how many lines could not be read (a killed writer leaves one)."""

    entries: tuple[JournalEntry, ...]
    damaged: int = 0


class _Line(msgspec.Struct, rename="camel"):
    time: str
    path: str
    mode: str
    start_line: int
    end_line: int
    bytes: int
    before: str
    after: str
    actor: str
    session_key: str = ""
    session_id: str = ""
    entry_id: str = ""
    trigger: str = ""


_decode = msgspec.json.Decoder(_Line).decode


def read_journal(state_dir: Path) -> Journal:
    """The journal of an agent's state folder; empty when there is none. Raises `OSError`."""
    try:
        data = (state_dir / NAME).read_bytes()
    except FileNotFoundError:
        return Journal(())
    entries: list[JournalEntry] = []
    damaged = 0
    for line in data.split(b"\n"):
        if not line.strip(b" \t\r\x00"):
            continue
        try:
            entries.append(_entry(_decode(line)))
        except msgspec.MsgspecError:
            damaged += 1
    return Journal(tuple(entries), damaged)


def append_entry(state_dir: Path, entry: JournalEntry) -> int:
    """Append a line and return the journal's size before, for `roll_back`. Raises `OSError`.

    The caller holds the writer's lock. A torn last line is closed first, so that it spoils no other;
    an append that fails leaves the journal as it was.
    """
    path = state_dir / NAME
    line = msgspec.json.encode(entry.to_json()) + b"\n"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600)
    try:
        size = os.fstat(fd).st_size
        if size and not _ends_with_newline(fd, size):
            line = b"\n" + line
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, size)
            raise
    finally:
        os.close(fd)
    return size


def roll_back(state_dir: Path, size: int) -> None:
    """Take the last line back, since its write failed."""
    os.truncate(state_dir / NAME, size)


def _ends_with_newline(fd: int, size: int) -> bool:
    os.lseek(fd, size - 1, os.SEEK_SET)
    return os.read(fd, 1) == b"\n"


def _entry(line: _Line) -> JournalEntry:
    who = Provenance(line.actor, line.session_key, line.session_id, line.entry_id, line.trigger)
    return JournalEntry(
        line.time,
        line.path,
        line.mode,
        line.start_line,
        line.end_line,
        line.bytes,
        line.before,
        line.after,
        who,
    )
