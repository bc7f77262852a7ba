"""Transcripts as Markdown that QMD can index: what was said, one line a message, without secrets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection as Names
from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from lamella.errors import MemoryPathError
from lamella.memory.reading import open_plain
from lamella.memory.scan import FoundFile
from lamella.memory.transcripts import SOURCE as SESSIONS
from lamella.memory.transcripts import Talk, read_talk
from lamella.text.files import write_atomic
from lamella.types.memory import FileProblem

_LINES = ".lines.json"


@frozen(slots=True)
class Exports:
    """A folder with one `.md` for each transcript, and beside it where its lines stand in the transcript."""

    folder: Path

    def path_of(self, found: FoundFile) -> Path:
        return self.folder / f"{found.name.removeprefix(f'{SESSIONS}/')}.md"

    def by_path(self, files: Iterable[FoundFile]) -> dict[str, FoundFile]:
        """The transcripts of a scan by the paths of their exports."""
        return {str(self.path_of(found)): found for found in files if found.source == SESSIONS}

    def bring_up_to_date(self, files: Iterable[FoundFile], changed: Names[str]) -> list[FileProblem]:
        """Export transcripts that changed or have no export, and remove exports of those that are gone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        problems: list[FileProblem] = []
        wanted: set[str] = set()
        for found in files:
            if found.source != SESSIONS:
                continue
            path = self.path_of(found)
            wanted |= {path.name, _lines_of(path).name}
            if found.name in changed or not path.exists():
                problems += self._export(found, path)
        for path in self.folder.iterdir():
            if path.name not in wanted and not path.name.startswith("."):
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
        return problems

    def read(self, found: FoundFile) -> Talk | None:
        """What was exported of a transcript; None when there is nothing that belongs together."""
        path = self.path_of(found)
        try:
            text = path.read_text("utf-8")
            lines = tuple(json.loads(_lines_of(path).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        return Talk(text, lines) if text.count("\n") == len(lines) else None

    def _export(self, found: FoundFile, path: Path) -> list[FileProblem]:
        try:
            opened = open_plain(found.file)
            if opened is None:
                return []
            with opened:
                talk = read_talk(opened)
        except (OSError, MemoryPathError) as error:
            reason = error.strerror if isinstance(error, OSError) else "became a link"
            return [FileProblem(found.name, f"cannot be read: {reason}")]
        write_atomic(_lines_of(path), json.dumps(talk.lines, separators=(",", ":")).encode())
        write_atomic(path, talk.text.encode())
        return []


def _lines_of(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix('.md')}{_LINES}")
