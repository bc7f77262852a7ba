"""Which files are memory: `MEMORY.md` and `memory/**/*.md` of a workspace.

What is configured beside them can be read, but not written: see `lamella.memory.roots`.

Names from outside (a model, a command line, a search result) become paths only here. Links are
never followed below the workspace, so that neither a `..` nor a link leads out of it. One message
answers every refusal, so that it does not tell whether a file outside exists.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from lamella.errors import LamellaError, MemoryPathError, UsageError
from lamella.text.inside import fault_of

CURATED = "MEMORY.md"
CURATED_LOWER = "memory.md"
FOLDER = "memory"
_SUFFIX = ".md"
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 1024
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]|%(?:2e|2f|5c|00|25)", re.IGNORECASE)


@frozen(slots=True)
class MemoryFile:
    """A memory file, which need not exist: its name in the workspace (with `/`) and its real path."""

    name: str
    path: Path


def is_curated(name: str) -> bool:
    """Whether a name in a workspace is that of the curated file."""
    return name in (CURATED, CURATED_LOWER)


def real_workspace(workspace: Path) -> Path:
    """The workspace's real path. Raises `UsageError` when there is no such folder."""
    real = Path(os.path.realpath(workspace))
    if not real.is_dir():
        what = "is not a folder" if real.exists() else "does not exist"
        raise UsageError(
            f"workspace {workspace} {what}", hint="Create the folder, or name another one with --workspace."
        )
    return real


def memory_file(workspace: Path, name: str) -> MemoryFile:
    """The memory file that a relative name means.

    `MEMORY.md` and `memory.md` mean the one that exists (each itself when both do). Raises
    `MemoryPathError` for anything that is not a memory file, `UsageError` for a missing workspace.
    """
    root = real_workspace(workspace)
    parts = _parts(name)
    if len(parts) == 1:
        parts = (_curated(root, parts[0]),)
    try:
        contained = free_of_links(root, parts)
    except OSError as error:
        raise LamellaError(f"cannot look at {'/'.join(parts)}: {error.strerror}") from error
    if not contained:
        raise refusal(name)
    return MemoryFile("/".join(parts), root.joinpath(*parts))


def is_usable(text: str) -> bool:
    """Whether a name, or a part of one, has only letters that the name of a memory file may have."""
    if text.isascii() and text.isprintable() and "%" not in text and "\\" not in text:
        return len(text) <= _MAX_PATH_BYTES  # the usual name, of which a scan meets thousands
    if _FORBIDDEN.search(text):
        return False
    try:
        return len(text.encode("utf-8")) <= _MAX_PATH_BYTES
    except UnicodeEncodeError:
        return False


def is_note(name: str) -> bool:
    """Whether a name, alone or with its folders, is that of a Markdown file."""
    return name.endswith(_SUFFIX) and name != _SUFFIX and not name.endswith("/" + _SUFFIX)


def is_plain(status: os.stat_result) -> bool:
    """A regular file with one name."""
    return not fault_of(status)


def names_in(root: Path) -> set[str]:
    """The names in a folder as they are stored, whatever the disk ignores. Raises `LamellaError`."""
    try:
        return set(os.listdir(root))  # noqa: PTH208
    except OSError as error:
        raise LamellaError(f"cannot list {root}: {error.strerror}") from error


def memory_name(workspace: Path, path: str | Path) -> str | None:
    """The memory name of a file-system path (absolute, or relative to the workspace), else None.

    For tools that write arbitrary files: links, `..` and the case of names are resolved as the
    system does it, so a memory file is recognised under every name that reaches it.
    """
    root = Path(os.path.realpath(workspace))
    try:
        real = Path(os.path.realpath(root / path))
    except ValueError:  # NUL, or half a character: no system has such a name
        return None
    if real.suffix == _SUFFIX and real.is_relative_to(root):
        parts = real.relative_to(root).parts
        if parts in ((CURATED,), (CURATED_LOWER,)) or (len(parts) > 1 and parts[0] == FOLDER):
            return "/".join(parts)
    return _name_by_identity(root, real)


def is_memory_path(workspace: Path, path: str | Path) -> bool:
    """Whether writing to a path would write a memory file, so that it must go through the writer."""
    return memory_name(workspace, path) is not None


def free_of_links(root: Path, parts: Sequence[str]) -> bool:
    """Whether every existing part below a folder is a real folder, and the last, if it exists, a plain file.

    Raises `OSError` when the system does not let us look.
    """
    current = root
    for part in parts[:-1]:
        current = current / part
        kind = _lstat(current)
        if kind is None:
            return True
        if not stat.S_ISDIR(kind.st_mode):
            return False
    last = _lstat(current / parts[-1])
    return last is None or is_plain(last)


def refusal(name: object) -> MemoryPathError:
    """The error for a name that is no memory file."""
    shown = str(name)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return MemoryPathError(
        f"{shown!r} is not a memory file", hint=f"Memory files are {CURATED} and the .md files in {FOLDER}/."
    )


def _parts(name: str) -> tuple[str, ...]:
    """A name taken apart and checked by its letters alone."""
    text = name.strip()
    if not text or not is_usable(text) or text.startswith(("/", "~")):
        raise refusal(name)
    parts = tuple(p for p in text.split("/") if p not in ("", "."))
    in_folder = len(parts) > 1 and parts[0] == FOLDER
    if (
        not (in_folder or parts in ((CURATED,), (CURATED_LOWER,)))
        or ".." in parts
        or not is_note(parts[-1])
        or (os.name == "nt" and ":" in text)
        or max(len(p.encode()) for p in parts) > _MAX_NAME_BYTES
    ):
        raise refusal(name)
    return parts


def _curated(root: Path, wanted: str) -> str:
    """The spelling of the curated file that the folder has; the usual one when it has none."""
    present = names_in(root) & {CURATED, CURATED_LOWER}
    if wanted in present:
        return wanted
    return present.pop() if present else CURATED


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _name_by_identity(root: Path, real: Path) -> str | None:
    """The name of a file that is spelt differently: on a disk that ignores case, or through a link."""
    if real.suffix.lower() != _SUFFIX:
        return None
    for curated in (CURATED, CURATED_LOWER):
        if _same(real, root / curated):
            return curated
    below, folder = [real.name], real.parent
    while folder != folder.parent:
        if _same(folder, root / FOLDER):
            return "/".join([FOLDER, *below])
        below.insert(0, folder.name)
        folder = folder.parent
    return None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
