"""Finding a workspace's memory files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import field, frozen

from lamella.memory.paths import CURATED, CURATED_LOWER, FOLDER, MemoryFile, is_memory_name, names_in, real_workspace
from lamella.types.memory import FileProblem


@frozen(slots=True)
class FoundFile:
    """A memory file with the stat that tells whether it has changed since it was last read."""

    file: MemoryFile
    stat: os.stat_result = field(repr=False)

    @property
    def name(self) -> str:
        return self.file.name


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


def scan_memory(workspace: Path) -> Scan:
    """All memory files: the curated one (`memory.md` only where there is no `MEMORY.md`), and notes.

    Raises `UsageError` when the workspace is missing.
    """
    root = real_workspace(workspace)
    findings = list(_curated(root)) + list(_walk(root))
    return Scan(
        root,
        tuple(sorted((f for f in findings if isinstance(f, FoundFile)), key=lambda f: f.name)),
        _problems(findings, _Failed),
        _problems(findings, _Skipped),
        tuple(f.problem.path for f in findings if isinstance(f, _Failed) and f.unseen),
    )


@frozen(slots=True)
class _Failed:
    problem: FileProblem
    unseen: bool = False


@frozen(slots=True)
class _Skipped:
    problem: FileProblem


_Finding = FoundFile | _Failed | _Skipped


def _problems(findings: Sequence[_Finding], kind: type[_Failed | _Skipped]) -> tuple[FileProblem, ...]:
    return tuple(sorted((f.problem for f in findings if isinstance(f, kind)), key=lambda p: p.path))


def _curated(root: Path) -> Iterator[_Finding]:
    names = names_in(root)
    for name in (CURATED, CURATED_LOWER):
        if name in names:
            yield from _look(root, name)
            return


def _walk(root: Path) -> Iterator[_Finding]:
    if (root / FOLDER).is_symlink():
        yield _Skipped(FileProblem(FOLDER, "a symbolic link"))
        return
    folders = [FOLDER]
    while folders:
        name = folders.pop()
        try:
            with os.scandir(root / name) as entries:
                found = list(entries)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            yield _Failed(FileProblem(name, f"cannot be listed: {error.strerror}"), unseen=True)
            continue
        for entry in found:
            below = f"{name}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                folders.append(below)
                if entry.name.endswith(".md"):
                    yield _Failed(FileProblem(below, "is a folder, expected a file"))
            elif entry.is_symlink() or entry.name.endswith(".md"):
                yield from _look(root, below)


def _look(root: Path, name: str) -> Iterator[_Finding]:
    path = root / name
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        yield _Failed(FileProblem(_shown(name), f"cannot be read: {error.strerror}"), unseen=True)
        return
    if stat.S_ISLNK(status.st_mode):
        yield _Skipped(FileProblem(_shown(name), "a symbolic link"))
    elif not is_memory_name(name):
        yield _Skipped(FileProblem(_shown(name), "a name that no memory file may have"))
    elif not stat.S_ISREG(status.st_mode):
        yield _Failed(FileProblem(name, "is not a regular file"))
    elif status.st_nlink > 1:
        yield _Skipped(FileProblem(name, f"a file with {status.st_nlink} names (hard links)"))
    else:
        yield FoundFile(MemoryFile(name, path), status)


def _shown(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()
