"""Finding a workspace's memory files.

Every search begins with this, so it is close to bare `os.scandir`: one look at each file, names and
places as strings.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Sequence
from pathlib import Path

from attrs import define, field, frozen

from lamella.memory.paths import (
    CURATED,
    CURATED_LOWER,
    FOLDER,
    MemoryFile,
    is_note,
    is_plain,
    is_usable,
    names_in,
    real_workspace,
)
from lamella.memory.roots import ExtraRoot, extra_roots
from lamella.memory.transcripts import SOURCE as SESSIONS
from lamella.memory.transcripts import is_transcript
from lamella.types.memory import FileProblem

# Folders of tools: below an extra path they are no notes, however many Markdown files they hold.
IGNORED_FOLDERS = frozenset({".git", "node_modules", ".pnpm-store", ".venv", "venv", ".tox", "__pycache__"})


@frozen(slots=True)
class FoundFile:
    """A memory file: its name, its absolute path, and the stat that tells whether it has changed.

    `source` is `memory` for Markdown, `sessions` for a transcript.
    """

    name: str
    path: str = field(repr=False)
    stat: os.stat_result = field(repr=False)
    source: str = "memory"

    @property
    def file(self) -> MemoryFile:
        return MemoryFile(self.name, Path(self.path))


@frozen(slots=True)
class Scan:
    """Memory files in order of their names, what could not be looked at, and what is left out on purpose.

    `unseen` are names of files and folders that the system did not let us look at: nothing says that
    what was known of them, and of everything below them, is out of date.
    """

    workspace: Path
    files: tuple[FoundFile, ...]
    failed: tuple[FileProblem, ...] = ()
    skipped: tuple[FileProblem, ...] = ()
    unseen: tuple[str, ...] = ()

    def hides(self, name: str) -> bool:
        """Whether a file that was not found may well be there."""
        return any(name == u or name.startswith(f"{u}/") for u in self.unseen)


def scan_memory(workspace: Path, extra_paths: Sequence[str] = (), transcripts: Path | None = None) -> Scan:
    """All memory files: the curated one (`memory.md` only where there is no `MEMORY.md`), notes, and
    Markdown in the extra paths, each file once; and the session transcripts of a folder.

    Raises `UsageError` when the workspace is missing.
    """
    root = real_workspace(workspace)
    found = _Findings(str(root))
    _take_curated(root, found)
    if (root / FOLDER).is_symlink():
        found.skip(FOLDER, "a symbolic link")
    else:
        _walk(str(root / FOLDER), FOLDER, found)
    for extra in extra_roots(root, extra_paths):
        _take_extra(extra, found)
    if transcripts is not None:
        _take_transcripts(str(transcripts), found)
    return Scan(
        root,
        tuple(found.files[name] for name in sorted(found.files)),
        _problems(found.failed),
        _problems(found.skipped),
        tuple(found.unseen),
    )


@define(slots=True)
class _Findings:
    """What a scan has come upon so far, by name."""

    root: str
    files: dict[str, FoundFile] = field(factory=dict)
    failed: dict[str, str] = field(factory=dict)
    skipped: dict[str, str] = field(factory=dict)
    unseen: list[str] = field(factory=list)
    folders: set[str] = field(factory=set)
    _seen: set[tuple[int, int]] = field(factory=set)

    def add(self, name: str, path: str, status: os.stat_result, source: str = "memory") -> None:
        """A memory file, unless it is there already, or `MEMORY.md` stands for it."""
        inode = (status.st_dev, status.st_ino)
        shadowed = name == CURATED_LOWER and CURATED in self.files
        if inode not in self._seen and not shadowed:
            self._seen.add(inode)
            self.files[name] = FoundFile(name, path, status, source)

    def skip(self, name: str, reason: str) -> None:
        self.skipped[_shown(name)] = reason

    def fail(self, name: str, reason: str) -> None:
        self.failed[_shown(name)] = reason

    def lose(self, name: str, reason: str) -> None:
        """A place that could not be looked at."""
        self.fail(name, reason)
        self.unseen.append(name)


def _problems(found: dict[str, str]) -> tuple[FileProblem, ...]:
    return tuple(FileProblem(name, reason) for name, reason in sorted(found.items()))


def _take_curated(root: Path, found: _Findings) -> None:
    names = names_in(root)
    for name in (CURATED, CURATED_LOWER):
        if name in names:
            _look(str(root / name), name, found)
            return


def _take_extra(extra: ExtraRoot, found: _Findings) -> None:
    try:
        status = os.lstat(extra.path)
    except (FileNotFoundError, NotADirectoryError):
        found.skip(extra.name, "does not exist")
        return
    except OSError as error:
        found.lose(extra.name, f"cannot be looked at: {error.strerror}")
        return
    if stat.S_ISLNK(status.st_mode):
        found.skip(extra.name, "a symbolic link")
    elif stat.S_ISDIR(status.st_mode):
        _walk(extra.path, "" if extra.name == "." else extra.name, found, ignored=IGNORED_FOLDERS)
    elif is_note(extra.name):
        _take(extra.path, extra.name, status, found)
    else:
        found.skip(extra.name, "neither a folder nor a Markdown file (.md)")


def _take_transcripts(folder: str, found: _Findings) -> None:
    """The transcripts directly in a folder, which need not exist."""
    for entry in _listed(folder, SESSIONS, found):
        if not is_transcript(entry.name):
            continue
        name = f"{SESSIONS}/{entry.name}"
        status = _status(entry.path, name, found, entry)
        if status is None:
            continue
        if is_plain(status) and is_usable(name):
            found.add(name, entry.path, status, SESSIONS)
        else:
            found.skip(name, "a transcript must be a regular file with one name")


def _walk(path: str, name: str, found: _Findings, *, ignored: Container[str] = ()) -> None:
    """Take in the Markdown files of a folder and of all below it. `name` is what results call it.

    A folder above the workspace comes upon it again, where files have their usual names.
    """
    folders = [(path, name)]
    while folders:
        path, name = folders.pop()
        if name in found.folders:
            continue
        found.folders.add(name)
        start = f"{name}/" if name else ""
        for entry in _listed(path, name or ".", found):
            below = start + entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name.lower() in ignored:
                    continue
                folders.append((entry.path, "" if entry.path == found.root else below))
                if entry.name.endswith(".md"):
                    found.fail(below, "is a folder, expected a file")
            elif entry.name.endswith(".md") or entry.is_symlink():
                _look(entry.path, below, found, entry)


def _listed(path: str, name: str, found: _Findings) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing when it is gone or cannot be listed, which is noted."""
    try:
        with os.scandir(path) as scanned:
            return list(scanned)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        found.lose(name, f"cannot be listed: {error.strerror}")
    return []


def _look(path: str, name: str, found: _Findings, entry: os.DirEntry[str] | None = None) -> None:
    """Take in one file, or say why not."""
    status = _status(path, name, found, entry)
    if status is not None:
        _take(path, name, status, found)


def _status(path: str, name: str, found: _Findings, entry: os.DirEntry[str] | None) -> os.stat_result | None:
    """The stat of a file itself, links not followed; None when it is gone or cannot be read, which is noted."""
    try:
        # What Windows tells of an entry does not say how many names it has.
        return os.lstat(path) if entry is None or os.name == "nt" else entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        pass
    except OSError as error:
        found.lose(name, f"cannot be read: {error.strerror}")
    return None


def _take(path: str, name: str, status: os.stat_result, found: _Findings) -> None:
    if stat.S_ISLNK(status.st_mode):
        found.skip(name, "a symbolic link")
    elif not (is_note(name) and is_usable(name)):
        found.skip(name, "a name that no memory file may have")
    elif not stat.S_ISREG(status.st_mode):
        found.fail(name, "is not a regular file")
    elif status.st_nlink > 1:
        found.skip(name, f"a file with {status.st_nlink} names (hard links)")
    else:
        found.add(name, path, status)


def _shown(name: str) -> str:
    """A name on one line, as it can be printed: what cannot is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
