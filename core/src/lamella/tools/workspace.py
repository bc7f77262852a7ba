"""Paths that a model names, confined to the workspace."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from lamella.errors import ToolError

_ODD_BLANKS = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")


class Workspace:
    """A folder that paths are resolved in. Nothing outside it can be reached, not even by a link."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def resolve(self, raw: str) -> Path:
        """The real path behind `raw`: a leading `@` removed, `~` expanded, relative to the workspace.

        Raises `ToolError` for a path outside the workspace. The file need not exist.
        """
        if "\0" in raw:
            raise ToolError("A path cannot hold a NUL character")
        path = self._located(raw)
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self.root):
            through = " through a link" if Path(os.path.normpath(path)).is_relative_to(self.root) else ""
            raise ToolError(f"{raw} leads{through} outside the workspace; only files inside {self.root} can be used")
        return real

    def existing(self, raw: str) -> Path:
        """As `resolve`, for a file or folder that must be there."""
        path = self.resolve(raw)
        if not path.exists():
            raise ToolError(f"Path not found: {raw}")
        return path

    def folder(self, raw: str) -> Path:
        """As `existing`, for a folder."""
        path = self.existing(raw)
        if not path.is_dir():
            raise ToolError(f"Not a directory: {raw}")
        return path

    def file(self, raw: str) -> Path:
        """As `resolve`, for a regular file that must be there."""
        path = self.resolve(raw)
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            raise ToolError(f"File not found: {raw}") from None
        except OSError as error:
            raise ToolError(f"Cannot open {raw}: {error.strerror}") from error
        if stat.S_ISDIR(mode):
            raise ToolError(f"{raw} is a directory; use ls to list it")
        if not stat.S_ISREG(mode):
            raise ToolError(f"{raw} is not a regular file")
        return path

    def display(self, path: Path) -> str:
        """A real path as the model should name it: relative to the workspace, with slashes."""
        return path.relative_to(self.root).as_posix()

    def _located(self, raw: str) -> Path:
        """Where the name points; an existing file with exactly that name is preferred to a cleaned one."""
        literal = self.root / raw
        if raw and os.path.lexists(literal):
            return literal
        cleaned = _ODD_BLANKS.sub(" ", raw).strip().removeprefix("@")
        return self.root / Path(cleaned).expanduser()


def read_file(path: Path, shown: str, limit: int | None = None) -> bytes:
    """The bytes of a file (the first `limit`), with the system's complaint as a `ToolError`."""
    try:
        with path.open("rb") as file:
            return file.read() if limit is None else file.read(limit)
    except OSError as error:
        raise ToolError(f"Cannot read {shown}: {error.strerror}") from error
