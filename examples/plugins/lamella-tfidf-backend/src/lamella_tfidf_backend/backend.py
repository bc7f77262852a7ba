"""The backend: follows the files, keeps the index in `tfidf.json`, and lets several threads and processes in."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from attrs import evolve

from lamella.errors import MemoryPathError, MemoryUnavailable
from lamella.memory.reading import load
from lamella.memory.scan import FoundFile, Scan, scan_memory
from lamella.text.files import write_atomic
from lamella.types.memory import (
    BackendContext,
    FileProblem,
    MemoryResults,
    ProgressListener,
    SearchQuery,
    SyncProgress,
    SyncReport,
)
from lamella_tfidf_backend.index import Index, Indexed, Stamp, decode, encode, passages_of


class TfidfBackend:
    """Implements `lamella.types.memory.MemoryBackend`.

    The index in memory is a value that is replaced as a whole, so a search needs no lock. The file is
    replaced as a whole too: of two processes the last one wins, and the next sync of either mends what
    it has not seen.
    """

    name = "tfidf"

    def __init__(self, context: BackendContext, passage_tokens: int) -> None:
        self._context = context
        self._empty = Index(str(context.workspace), passage_tokens)
        self._path = context.state_dir / "tfidf.json"
        self._known: tuple[Stamp | None, Index] = (None, self._empty)
        self._one_sync = threading.Lock()

    def search(self, query: SearchQuery) -> MemoryResults:
        """Search, after a sync unless the query is `as_is`."""
        if not query.as_is:
            self.sync()
        return MemoryResults(self._index()[0].search(query), self.name, mode="keyword", in_step=not query.as_is)

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        """Take in what has changed. Raises `UsageError` for a missing workspace, `MemoryUnavailable`
        when the index cannot be kept."""
        with self._one_sync:
            scan = self._scan()
            before, trouble = self._index()
            before = self._empty if force else before
            files, failed = self._take_in(scan, before, progress)
            if trouble or force or files != before.files:
                self._keep(evolve(self._empty, files=files))
        earlier = before.files
        return SyncReport(
            str(self._context.workspace),
            seen=len(files) + len(failed),
            added=len(files.keys() - earlier.keys()),
            updated=sum(1 for name in files.keys() & earlier.keys() if files[name] != earlier[name]),
            unchanged=sum(1 for name in files.keys() & earlier.keys() if files[name] == earlier[name]),
            removed=len(earlier.keys() - files.keys() - {f.path for f in failed}),
            failed=tuple(failed),
            skipped=scan.skipped,
            chunks=sum(len(f.passages) for f in files.values()),
            rebuilt="it was asked for" if force else trouble,
        )

    def status(self) -> dict[str, Any]:
        """Facts about the index as it is."""
        facts: dict[str, Any] = {"backend": self.name, "mode": "keyword", "database": str(self._path)}
        try:
            index, trouble = self._index()
        except MemoryUnavailable as error:
            return {**facts, "problem": str(error), "files": 0, "chunks": 0}
        return {**facts, "problem": trouble or None, "files": len(index.files), "chunks": index.size}

    def close(self) -> None:
        """Nothing is held open."""

    def _scan(self) -> Scan:
        context = self._context
        return scan_memory(context.workspace, context.extra_paths, context.transcripts)

    def _take_in(
        self, scan: Scan, before: Index, progress: ProgressListener | None
    ) -> tuple[dict[str, Indexed], list[FileProblem]]:
        """All files as they are now, those that have not changed as they were known."""
        files: dict[str, Indexed] = {n: f for n, f in before.files.items() if scan.hides(n)}
        failed = [f for f in scan.failed if f.path not in files]
        for done, found in enumerate(scan.files, 1):
            known = before.files.get(found.name)
            try:
                taken = known if known is not None and known.stamp == _stamp(found) else self._read(found)
            except (OSError, MemoryPathError) as error:
                failed.append(FileProblem(found.name, f"cannot be read: {error}"))
                continue
            if taken is not None:
                files[found.name] = taken
            if progress is not None:
                progress(SyncProgress("files", done, len(scan.files)))
        return files, failed

    def _read(self, found: FoundFile) -> Indexed | None:
        """A file taken in; None when it has gone since the scan."""
        content = load(found.file)
        if content is None:
            return None
        return Indexed(_stamp(found), found.source, passages_of(content.data, found.source, self._empty.passage_tokens))

    def _index(self) -> tuple[Index, str]:
        """The index as it was kept last, by whomever; or an empty one, and why it had to be that."""
        stamp, index = self._known
        try:
            status = self._path.stat()
            now = (status.st_mtime_ns, status.st_size, status.st_ino)
            if now != stamp:
                index = decode(self._path.read_bytes())
        except FileNotFoundError:
            return self._empty, ""
        except OSError as error:
            raise MemoryUnavailable(f"the index {self._path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            return self._empty, f"the index was damaged: {error}"
        if (index.workspace, index.passage_tokens) != (self._empty.workspace, self._empty.passage_tokens):
            return self._empty, "the index was made for another workspace, or with other settings"
        self._known = (now, index)
        return index, ""

    def _keep(self, index: Index) -> None:
        try:
            Path(self._path.parent).mkdir(parents=True, exist_ok=True)
            write_atomic(self._path, encode(index))
        except OSError as error:
            raise MemoryUnavailable(f"the index {self._path} cannot be written: {error.strerror}") from error


def _stamp(found: FoundFile) -> Stamp:
    return found.stat.st_mtime_ns, found.stat.st_size, found.stat.st_ino
