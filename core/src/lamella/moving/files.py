"""Carrying files over: found without following links, compared byte by byte, never overwritten.

What is there already stays, with one exception: a file whose bytes are the beginning of its source's
is continued. So a second run changes nothing, and a source that has grown goes on here.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from attrs import frozen

from lamella.errors import SessionLocked
from lamella.moving.report import Action, Item, Kind
from lamella.sessions.locks import locked
from lamella.text.files import write_pieces

Relation: TypeAlias = Literal["missing", "same", "grown", "behind", "differs"]

_BLOCK = 1 << 20
# Folders of a workspace that others fill and can fill again.
DERIVED_FOLDERS = frozenset({".git", ".hg", "node_modules", "__pycache__", ".venv", ".openclaw"})

_OUTCOMES: dict[Relation, tuple[Action, str]] = {
    "missing": ("add", ""),
    "grown": ("grow", ""),
    "same": ("same", ""),
    "behind": ("kept", "it went on here"),
    "differs": ("kept", "both have changed"),
}


@frozen(slots=True)
class Content:
    """What a file is to hold: another file's bytes, or what `convert` makes of it, which is made whenever it
    is needed, since all files of a folder together may be more than memory takes."""

    file: Path
    convert: Callable[[Path], bytes] | None = None

    def open(self) -> BinaryIO:
        """A stream of it. Raises `OSError`."""
        return self.file.open("rb") if self.convert is None else io.BytesIO(self.convert(self.file))

    def pieces(self) -> Iterator[bytes]:
        with self.open() as stream:
            yield from iter(lambda: stream.read(_BLOCK), b"")


@frozen(slots=True)
class Move:
    """A file to carry over. `lock`: it is a transcript here, which a session may be using; `timeout` is how
    long to wait for that, in seconds."""

    kind: Kind
    source: str
    content: Content
    target: Path
    lock: bool = False
    timeout: float = 5.0

    def item(self) -> Item:
        """What would become of it. Raises no error: a source that cannot be read is left out."""
        try:
            action, reason = _OUTCOMES[relation(self.content, self.target)]
        except OSError as error:
            return self.left_out(f"cannot be read: {error.strerror or error}")
        return Item(self.kind, self.source, str(self.target), action, reason)

    def carry(self) -> Item:
        """Do it, and tell what was done. Raises `OSError` when the target cannot be written."""
        item = self.item()
        if item.action not in ("add", "grow"):
            return item
        self.target.parent.mkdir(parents=True, exist_ok=True)
        if not self.lock:
            self._write()
            return item
        try:
            with locked(self.target, timeout=self.timeout):
                item = self.item()  # a turn may have ended meanwhile
                if item.action in ("add", "grow"):
                    self._write()
                return item
        except SessionLocked as error:
            return Item(self.kind, self.source, str(self.target), "kept", str(error))

    def left_out(self, reason: str) -> Item:
        return Item(self.kind, self.source, "", "left_out", reason)

    def _write(self) -> None:
        write_pieces(self.target, self.content.pieces(), mode=0o600 if self.lock else None)
        when = self.content.file.stat()
        os.utime(self.target, ns=(when.st_atime_ns, when.st_mtime_ns))


def relation(content: Content, target: Path) -> Relation:
    """How a target stands to its source: `grown` when the source has more behind the same bytes, `behind`
    when the target has. Raises `OSError` when the source cannot be read."""
    with content.open() as theirs:
        if not os.path.lexists(target):
            return "missing"
        if not target.is_file():
            return "differs"
        with target.open("rb") as ours:
            return _compared(theirs, ours)


def _compared(theirs: BinaryIO, ours: BinaryIO) -> Relation:
    while True:
        left, right = theirs.read(_BLOCK), ours.read(_BLOCK)
        if left == right:
            if not left:
                return "same"
            continue
        shared = min(len(left), len(right))
        if left[:shared] != right[:shared]:
            return "differs"
        return "grown" if len(left) > len(right) else "behind"


@frozen(slots=True)
class Found:
    """A file of a folder; `problem` says why it is not to be read."""

    path: Path
    problem: str = ""


def regular_files(folder: Path, *, deep: bool = False) -> Iterator[Found]:
    """The files of a folder, sorted by name, those of its sub-folders too with `deep`.

    Links are not followed; links, pipes, devices and folders that cannot be read come with their problem.
    """
    waiting = [folder]
    while waiting:
        try:
            entries = sorted(os.scandir(waiting[-1]), key=lambda entry: entry.name)
        except FileNotFoundError:
            waiting.pop()
            continue
        except OSError as error:
            yield Found(waiting.pop(), f"cannot be read: {error.strerror or error}")
            continue
        waiting.pop()
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield _found(entry)
        if deep:
            below = [e for e in entries if e.is_dir(follow_symlinks=False) and e.name not in DERIVED_FOLDERS]
            waiting += [Path(entry.path) for entry in reversed(below)]


def _found(entry: os.DirEntry[str]) -> Found:
    path = Path(entry.path)
    if entry.is_symlink():
        return Found(path, "is a symbolic link")
    regular = stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode)
    return Found(path, "" if regular else "is not a regular file")
