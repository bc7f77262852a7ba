"""A workspace for the contract: notes that change, and backends that are opened on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lamella.memory.reading import read_memory
from lamella.testing.contract.checks import check_report, check_results
from lamella.types.memory import (
    BackendContext,
    BackendRegistration,
    EmbedderRegistration,
    MemoryBackend,
    MemoryHit,
    MemoryResults,
    SearchQuery,
    SyncReport,
)

# Notes that have nothing to do with what the tests look for.
FILLER = {
    "memory/garden.md": "# Garden\n\nThe tomatoes were planted along the southern wall.\n\nWater them every evening.\n",
    "memory/travel.md": "# Travel\n\nThe night train to Lisbon leaves from platform four.\n\nSeats are reserved.\n",
    "memory/books.md": "# Books\n\nThe library wants its atlas back.\n\nThe novel about lighthouses was dull.\n",
    "memory/zh.md": "# 笔记\n\n周末去爬山，带上水和面包。\n\n图书馆的书下周要还。\n",
    "memory/ja.md": "# メモ\n\n週末は山に登る予定だ。\n\n図書館の本を返す。\n",
    "memory/ko.md": "# 메모\n\n주말에는 산에 오를 예정이다.\n\n도서관 책을 반납한다.\n",
}


class Notebook:
    """A workspace, a state folder, and the backends that were opened on them."""

    def __init__(
        self,
        registration: BackendRegistration,
        folder: Path,
        embedders: Mapping[str, EmbedderRegistration],
        settle: Callable[[MemoryBackend], None],
    ) -> None:
        self.registration = registration
        self.workspace = folder / "notes"
        self.state_dir = folder / "state"
        self.outside = folder / "outside"
        self._embedders = embedders
        self._settle = settle
        self._opened: list[MemoryBackend] = []
        self.workspace.mkdir()
        self.state_dir.mkdir()
        self.outside.mkdir()

    # --- notes -------------------------------------------------------------------------------------

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file of the workspace; its time always differs from the one before."""
        return self._write(self.workspace / name, text)

    def write_outside(self, name: str, text: str | bytes) -> Path:
        """Write a file beside the workspace."""
        return self._write(self.outside / name, text)

    def fill(self) -> None:
        """Write notes that no test looks for."""
        for name, text in FILLER.items():
            self.write(name, text)

    def remove(self, name: str) -> None:
        (self.workspace / name).unlink()

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the workspace, with its content."""
        return {
            p.relative_to(self.workspace).as_posix(): p.read_bytes() for p in self.workspace.rglob("*") if p.is_file()
        }

    # --- backends ----------------------------------------------------------------------------------

    def open(self, *, state_dir: Path | None = None, workspace: Path | None = None, **context: Any) -> MemoryBackend:
        """Open a backend; it is closed at the end of the test. `context`: fields of `BackendContext`."""
        backend = self.registration.factory(
            BackendContext(
                "main", workspace or self.workspace, state_dir or self.state_dir, dict(self._embedders), **context
            )
        )
        self._opened.append(backend)
        return backend

    def synced(self, **context: Any) -> MemoryBackend:
        """Open a backend and bring it up to date."""
        backend = self.open(**context)
        self.sync(backend)
        return backend

    def sync(self, backend: MemoryBackend, *, force: bool = False) -> SyncReport:
        """Sync, wait until that is done, and check the report's form."""
        report = backend.sync(force=force)
        self._settle(backend)
        check_report(report, self.workspace)
        return report

    def search(self, backend: MemoryBackend, text: str, **fields: Any) -> MemoryResults:
        """Search, and check whatever holds for every answer."""
        query = SearchQuery(text, **fields)
        results = backend.search(query)
        check_results(results, query, self.registration.name)
        return results

    def found(self, backend: MemoryBackend, text: str, **fields: Any) -> list[str]:
        """The paths that a search finds, each once, best first; every hit is checked against its file."""
        results = self.search(backend, text, **fields)
        for hit in results.hits:
            self.check_place(hit)
        return list(dict.fromkeys(hit.path for hit in results.hits))

    def check_place(self, hit: MemoryHit, extra_paths: tuple[str, ...] = ()) -> None:
        """A hit's snippet must stand in the lines that it names. Transcripts are not read as memory files."""
        if hit.source != "memory":
            return
        lines = hit.end_line - hit.start_line + 1
        read = read_memory(self.workspace, hit.path, start_line=hit.start_line, lines=lines, extra_paths=extra_paths)
        assert read.status == "ok", f"{hit.citation} cannot be read: {read.status}"
        assert read.end_line == hit.end_line, f"{hit.citation} goes beyond the file, which has {read.total_lines} lines"
        shown, there = _plain(hit.snippet), _plain(read.text)
        assert shown in there, (
            f"{hit.citation}: the snippet does not stand in these lines.\nsnippet: {hit.snippet!r}\n"
            f"lines: {read.text!r}"
        )

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def _write(self, path: Path, text: str | bytes) -> Path:
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        if path.stat().st_mtime_ns <= before:
            os.utime(path, ns=(before + 1_000_000, before + 1_000_000))
        return path


def _plain(text: str) -> str:
    """A text without the marks of a cut at its ends, and with single blanks."""
    text = text.strip()
    for mark in ("…", "..."):
        text = text.removeprefix(mark).removesuffix(mark)
    return " ".join(text.split())
