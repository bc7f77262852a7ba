"""Walking through the files of a workspace, without what .gitignore leaves out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from lamella.tools.globs import IgnoreRules
from lamella.tools.workspace import Workspace


@frozen(slots=True)
class Found:
    """A file or folder: its place, and its path relative to the workspace."""

    path: Path
    relative: str
    is_folder: bool


def walk(workspace: Workspace, start: Path) -> Iterator[Found]:
    """Everything below `start`, by name, folders before what they hold.

    Hidden files are included, `.git` is not. Links to folders are not followed, and links that
    lead outside the workspace are left out.
    """
    rules = IgnoreRules()
    folder = workspace.display(start)
    for parent in _parents(folder):
        rules = rules.within(workspace.root, parent)
    yield from _below(workspace, start, "" if folder == "." else folder, rules)


def _parents(folder: str) -> list[str]:
    parts = [] if folder == "." else folder.split("/")
    return ["/".join(parts[:n]) for n in range(len(parts))]


def _below(workspace: Workspace, folder: Path, relative: str, outer: IgnoreRules) -> Iterator[Found]:
    rules = outer.within(workspace.root, relative)
    for entry in _entries(folder):
        name = f"{relative}/{entry.name}" if relative else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if (is_folder and entry.name == ".git") or rules.ignores(name, is_folder):
            continue
        if is_folder:
            yield Found(Path(entry.path), name, True)
            yield from _below(workspace, Path(entry.path), name, rules)
        elif _is_file_inside(workspace, entry):
            yield Found(Path(entry.path), name, False)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []  # a folder that vanished or may not be read holds nothing for us


def _is_file_inside(workspace: Workspace, entry: os.DirEntry[str]) -> bool:
    if not entry.is_symlink():
        return entry.is_file(follow_symlinks=False)
    real = Path(os.path.realpath(entry.path))
    return real.is_file() and real.is_relative_to(workspace.root)
