"""Memory beside the usual places: files and folders that the configuration names.

They are read and searched, but never written. Links are not followed: neither a configured path
that is one, nor any below it. Folders above may be links, as for the workspace itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from lamella.errors import LamellaError, MemoryPathError
from lamella.memory.paths import (
    MemoryFile,
    free_of_links,
    is_note,
    is_usable,
    memory_file,
    real_workspace,
    refusal,
)


@frozen(slots=True)
class ExtraRoot:
    """A configured file or folder, which need not exist.

    `path` is absolute, with links above it resolved; `given` the same as it was configured; `name`
    is what results call it: relative to the workspace, with `/` and `..` as needed.
    """

    name: str
    path: str
    given: str


def extra_roots(workspace: Path, configured: Sequence[str]) -> tuple[ExtraRoot, ...]:
    """The configured paths, in order; blank and repeated ones are dropped.

    Relative ones start at the workspace, which must be a real path; `~` is the home folder.
    """
    roots: dict[str, ExtraRoot] = {}
    for text in (c.strip() for c in configured):
        if text:
            given = os.path.abspath(os.path.join(workspace, os.path.expanduser(text)))  # noqa: PTH100, PTH111, PTH118
            above, own = os.path.split(given)
            path = os.path.join(os.path.realpath(above), own)  # noqa: PTH118
            roots.setdefault(path, ExtraRoot(name_of(workspace, path), path, given))
    return tuple(roots.values())


def name_of(workspace: Path, path: str) -> str:
    """What results call a file or folder: its path from the workspace, or an absolute one on another drive."""
    try:
        return os.path.relpath(path, workspace).replace(os.sep, "/")
    except ValueError:  # pragma: no cover - Windows
        return path.replace(os.sep, "/")


def readable_file(workspace: Path, name: str, extra_paths: Sequence[str] = ()) -> MemoryFile:
    """The memory file that a name means: relative to the workspace, or absolute; in its usual place or an extra one.

    Raises `MemoryPathError` for anything else, `UsageError` for a missing workspace.
    """
    root = real_workspace(workspace)
    text = name.strip()
    path = _absolute(root, workspace, text)
    if path is None:
        raise refusal(name)
    try:
        return memory_file(workspace, name_of(root, path) if os.path.isabs(text) else text)  # noqa: PTH117
    except MemoryPathError:
        for extra in extra_roots(root, extra_paths):
            parts = _parts_below(extra, path)
            if parts is not None and _is_contained(extra, parts):
                full = Path(extra.path, *parts)
                return MemoryFile(name_of(root, str(full)), full)
        raise refusal(name) from None


def _absolute(root: Path, workspace: Path, text: str) -> str | None:
    """An absolute path without `..`; one below the workspace as it was given is one below the real one."""
    if not text or text.startswith("~") or not is_usable(text):
        return None
    path = os.path.normpath(os.path.join(root, text))  # noqa: PTH118
    below = _below(os.path.abspath(workspace), path)  # noqa: PTH100
    return path if below is None else os.path.join(root, *below)  # noqa: PTH118


def _parts_below(extra: ExtraRoot, path: str) -> tuple[str, ...] | None:
    below = _below(extra.path, path)
    return _below(extra.given, path) if below is None else below


def _below(folder: str, path: str) -> tuple[str, ...] | None:
    """The parts of a path below a folder, by their letters; none for the folder itself, None outside."""
    if path == folder:
        return ()
    start = folder.rstrip(os.sep) + os.sep
    return Path(path[len(start) :]).parts if path.startswith(start) else None


def _is_contained(extra: ExtraRoot, parts: tuple[str, ...]) -> bool:
    """Whether the path is a plain Markdown file in the root, or the root itself; or one that could be made there."""
    root = Path(extra.path)
    try:
        if not parts:
            return is_note(root.name) and free_of_links(root.parent, (root.name,))
        return is_note(parts[-1]) and _is_folder(root) and free_of_links(root, parts)
    except OSError as error:
        raise LamellaError(f"cannot look at {extra.name}: {error.strerror}") from error


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
