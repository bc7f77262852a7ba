"""The only door through which memory files are written, by whomever.

Every write is contained in the workspace, made under a lock between processes, whole or absent,
and journalled with who made it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import filelock
from attrs import asdict, frozen

from lamella.errors import LamellaError, MemoryConflict, UsageError
from lamella.memory import journal
from lamella.memory.hunks import Hunk, content_hash, hunks_between
from lamella.memory.paths import FOLDER, MemoryFile, memory_file, real_workspace
from lamella.memory.reading import load
from lamella.text.days import human_day, utc_iso, utc_now, zone
from lamella.text.files import BOM, decode_text, main_newline, sync_directory, write_atomic
from lamella.text.unicode import well_formed
from lamella.types.memory import MemoryWrite, Provenance

_DAILY = re.compile(rf"{FOLDER}/(\d{{4}}-\d\d-\d\d)\.md")
_LINE_END = re.compile(r"\r\n|\r|\n")
_LOCK = "memory-writer.lock"


class MemoryWriter:
    """Writes the memory files of one workspace. Any number of writers and processes may exist.

    `state_dir` holds the locks and the journal; `timezone` decides which day it is. Methods raise
    `MemoryPathError` for a path that is no memory file, `UsageError` for a missing workspace or
    nothing to write, and `LamellaError` when the system refuses (disk full, no permission) or the
    lock is not free in time. After any error the files are as they were.
    """

    def __init__(
        self,
        workspace: Path,
        state_dir: Path,
        timezone: str = "",
        *,
        clock: Callable[[], datetime] = utc_now,
        lock_timeout: float = 30.0,
    ) -> None:
        zone(timezone)  # a wrong name is an error now, not at the first write
        self.workspace = workspace
        self.state_dir = state_dir
        self.timezone = timezone
        self.lock_timeout = lock_timeout
        self._clock = clock

    def today(self) -> str:
        """The name of today's note."""
        return f"{FOLDER}/{human_day(self._clock(), self.timezone)}.md"

    def hash_of(self, path: str) -> str | None:
        """The hash of a memory file's content, for `replace`; None when it does not exist."""
        data = self._read(memory_file(self.workspace, path))
        return None if data is None else content_hash(data)

    def append(self, path: str | None, text: str, provenance: Provenance) -> MemoryWrite:
        """Append lines to a memory file; None means today's note. What stood there stays byte for byte.

        A missing file is made, a daily note with its date as title. The text gets the file's own
        line ends and ends with one.
        """
        name = self.today() if path is None else path
        lines = _LINE_END.sub("\n", well_formed(text)).strip("\n")
        if not lines.strip():
            raise UsageError("nothing to remember: the text is empty")
        with self._locked():
            try:
                return self._append(name, lines, provenance)
            except MemoryConflict:
                return self._append(name, lines, provenance)

    def replace(self, path: str, text: str, expected_hash: str | None, provenance: Provenance) -> MemoryWrite:
        """Replace a memory file's content if its hash is still `expected_hash` (None: it must not exist).

        A byte-order mark is kept; a text with `\\n` only gets the line ends that the file had. Raises
        `MemoryConflict` when the file is another one by now.
        """
        with self._locked():
            file = memory_file(self.workspace, path)
            old = self._read(file)
            if (None if old is None else content_hash(old)) != expected_hash:
                raise _conflict(file.name)
            return self._commit(file, old, _plan_replace(file.name, old, well_formed(text)), provenance)

    def undo(self, entry_id: str, provenance: Provenance) -> MemoryWrite:
        """Take a write back, by its id in the journal or the beginning of it; the undo is a write too.

        What it added goes, what it replaced comes back, and all other lines stay byte for byte. A file
        that the write made goes when nothing else is in it. Raises `MemoryConflict` with a diff when its
        lines are not there any more as they were written, and `UsageError` for a write that does not
        exist, has been undone, or replaced what the journal does not keep.
        """
        from lamella.memory.undo import undone  # seldom needed, and it loads difflib

        with self._locked():
            written = journal.read_journal(self.state_dir)
            entry = written.find(entry_id)
            if entry.workspace != str(real_workspace(self.workspace)):
                raise UsageError(f"write {entry.id} was made in workspace {entry.workspace}")
            earlier = written.undone_by(entry.id)
            if earlier is not None:
                raise UsageError(
                    f"write {entry.id} is undone already, by {earlier.id}", hint="Undo that one to have it again."
                )
            file = memory_file(self.workspace, entry.path)
            old = self._read(file)
            data = undone(entry, old or b"")
            hunks = hunks_between(old or b"", data or b"")
            plan = _Plan("undo", data, hunks[0].line, hunks[-1].end_line, hunks, entry.id)
            return self._commit(file, old, plan, provenance)

    def _append(self, name: str, lines: str, provenance: Provenance) -> MemoryWrite:
        file = memory_file(self.workspace, name)
        old = self._read(file)
        return self._commit(file, old, _plan_append(file.name, old, lines), provenance)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self.state_dir / "locks"
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / _LOCK, timeout=self.lock_timeout)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise LamellaError(
                f"memory of {self.workspace} is being written by another process (waited {self.lock_timeout:g} s)",
                hint="Try again in a moment.",
            ) from None
        try:
            yield
        finally:
            lock.release()

    def _read(self, file: MemoryFile) -> bytes | None:
        with _explained(file.name, verb="read"):
            content = load(file)
        return None if content is None else content.data

    def _commit(self, file: MemoryFile, old: bytes | None, plan: _Plan, provenance: Provenance) -> MemoryWrite:
        write = MemoryWrite(file.name, plan.start_line, plan.end_line, len(plan.data or b"") - len(old or b""))
        entry = journal.JournalEntry(
            id=os.urandom(6).hex(),
            time=utc_iso(self._clock()),
            workspace=str(real_workspace(self.workspace)),
            path=file.name,
            mode=plan.mode,
            start_line=write.start_line,
            end_line=write.end_line,
            bytes=write.bytes_written,
            before="" if old is None else content_hash(old),
            after="" if plan.data is None else content_hash(plan.data),
            hunks=plan.hunks,
            undoes=plan.undoes,
            **asdict(provenance),
        )
        with _explained(file.name):
            self._make_folders(file)
            # Programs that do not know the lock may have written meanwhile.
            if self._read(memory_file(self.workspace, file.name)) != old:
                raise _conflict(file.name)
            size = journal.append_entry(self.state_dir, entry)
            try:
                _put(file.path, plan.data)
            except BaseException:
                if self._read(file) != plan.data:
                    journal.roll_back(self.state_dir, size)
                raise
        return write

    def _make_folders(self, file: MemoryFile) -> None:
        missing = [p for p in (file.path.parent, *file.path.parent.parents) if not p.exists()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            sync_directory(folder.parent)


@frozen(slots=True)
class _Plan:
    """A file's new content (None: no file), which of its lines are new, and all that changes."""

    mode: journal.Mode
    data: bytes | None
    start_line: int
    end_line: int
    hunks: tuple[Hunk, ...]
    undoes: str = ""


def _plan_append(name: str, old: bytes | None, lines: str) -> _Plan:
    end = lines.count("\n")
    if not old or old == BOM:
        daily = _DAILY.fullmatch(name)
        title = (old or b"") + (f"# {daily[1]}\n\n" if daily else "").encode()
        start = title.count(b"\n") + 1
        data = title + f"{lines}\n".encode()
        # The title is a change of its own: it stays when the text is taken back and others follow it.
        hunks = (*hunks_between(b"", title), *hunks_between(title, data))
        return _Plan("append", data, start, start + end, hunks)
    newline = main_newline(_utf8(name, old)).encode()
    joint = b"" if old.endswith(b"\n") else newline
    start = old.count(b"\n") + len(joint.strip(b"\r")) + 1
    data = old + joint + lines.encode().replace(b"\n", newline) + newline
    return _Plan("append", data, start, start + end, hunks_between(old, data))


def _plan_replace(name: str, old: bytes | None, text: str) -> _Plan:
    if old:
        newline = main_newline(_utf8(name, old))
        if "\r" not in text:
            text = text.replace("\n", newline)
        if old.startswith(BOM) and not text.startswith("\ufeff"):
            text = "\ufeff" + text
    data = text.encode()
    end = max(text.count("\n") + (not text.endswith("\n")), 1)
    return _Plan("replace", data, 1, end, hunks_between(old or b"", data))


def _put(path: Path, data: bytes | None) -> None:
    """Replace a file's content, or remove it."""
    if data is not None:
        write_atomic(path, data)
        return
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def _utf8(name: str, old: bytes) -> str:
    decoded = decode_text(old)
    if decoded.encoding != "utf-8":
        raise UsageError(f"{name} is {decoded.encoding.upper()} text", hint="Save it as UTF-8 first.")
    return decoded.text


def _conflict(name: str) -> MemoryConflict:
    return MemoryConflict(f"{name} changed since it was read; nothing was written", hint="Read it again, then retry.")


@contextlib.contextmanager
def _explained(what: Path | str, verb: str = "write") -> Iterator[None]:
    """Turns the system's refusals into one-line errors."""
    try:
        yield
    except OSError as error:
        if isinstance(error, LamellaError):
            raise
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "Free some disk space and try again; nothing was changed." if full else ""
        raise LamellaError(f"cannot {verb} {what}: {error.strerror or error}", hint=hint) from error
