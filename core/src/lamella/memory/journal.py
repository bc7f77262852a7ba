"""The journal of memory writes: one JSON line for each, appended before the file is replaced.

So every write is in the journal. A process that is killed between the two leaves a line whose
write did not happen: the file's content then never had the hash in `after`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from attrs import fields, frozen

from lamella.errors import LamellaError, UsageError
from lamella.memory.hunks import Hunk
from lamella.types.memory import Provenance

NAME = "memory-journal.jsonl"

Mode: TypeAlias = Literal["append", "replace", "undo"]


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One write: its id, when (UTC, ISO), which file of which workspace, and what changed in it.

    `start_line` and `end_line` are what was asked for; the title of a new daily note stands above them.
    `bytes` were added (negative: fewer). `before` and `after` are SHA-256 of the whole file, empty when
    there is none. `undoes` is the id of the write that an undo takes back. The last five are a `Provenance`.
    """

    id: str
    time: str
    workspace: str
    path: str
    mode: Mode
    start_line: int
    end_line: int
    bytes: int
    before: str
    after: str
    hunks: tuple[Hunk, ...]
    undoes: str = ""
    actor: str
    session_key: str = ""
    session_id: str = ""
    entry_id: str = ""
    trigger: str = ""

    @property
    def provenance(self) -> Provenance:
        return Provenance(**{a.name: getattr(self, a.name) for a in fields(Provenance)})

    @property
    def created(self) -> bool:
        """Whether the write made its file."""
        return not self.before

    def to_json(self) -> dict[str, Any]:
        return dict(msgspec.to_builtins(self))


@frozen(slots=True)
class Journal:
    """Entries, oldest first, and how many lines could not be read (a killed writer leaves one)."""

    entries: tuple[JournalEntry, ...]
    damaged: int = 0

    def find(self, beginning: str) -> JournalEntry:
        """The entry whose id is or begins so. Raises `UsageError` for none, and for several."""
        found = [e for e in self.entries if beginning and e.id.startswith(beginning)]
        if len(found) != 1:
            count = str(len(found) or "no")
            raise UsageError(
                f"{count} memory writes have ids that begin with {beginning!r}",
                hint="`lamella memory log` shows the ids.",
            )
        return found[0]

    def undone_by(self, entry_id: str) -> JournalEntry | None:
        """The undo of a write that holds, that is, has not been undone itself."""
        undos = (e for e in reversed(self.entries) if e.undoes == entry_id)
        return next((e for e in undos if self.undone_by(e.id) is None), None)


_decode = msgspec.json.Decoder(JournalEntry).decode


def read_journal(state_dir: Path) -> Journal:
    """The journal of an agent's state folder; empty when there is none. Raises `LamellaError`."""
    path = state_dir / NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Journal(())
    except OSError as error:
        raise LamellaError(f"cannot read {path}: {error.strerror}") from error
    entries: list[JournalEntry] = []
    damaged = 0
    for line in data.split(b"\n"):
        if not line.strip(b" \t\r\x00"):
            continue
        try:
            entries.append(_decode(line))
        except msgspec.MsgspecError:
            damaged += 1
    return Journal(tuple(entries), damaged)


def append_entry(state_dir: Path, entry: JournalEntry) -> int:
    """Append a line and return the journal's size before, for `roll_back`. Raises `OSError`.

    The caller holds the writer's lock. A torn last line is closed first, so that it spoils no other;
    an append that fails leaves the journal as it was.
    """
    path = state_dir / NAME
    line = msgspec.json.encode(entry) + b"\n"
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
