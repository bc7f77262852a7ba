"""Bringing the table of passages up to date with the files."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from lamella.errors import MemoryPathError, MemoryUnavailable
from lamella.memory.meaning import QUESTION_SECONDS, Meaning, NoMeaning
from lamella.memory.scan import FoundFile, Scan, scan_memory
from lamella.types.memory import BackendContext, Embedder, FileProblem, ProgressListener, SyncProgress, SyncReport
from lamella_memory_lancedb.notes.passages import Cutting, Passage, Taken, stamp_of, take_in
from lamella_memory_lancedb.notes.schema import Label
from lamella_memory_lancedb.notes.table import Table
from lamella_memory_lancedb.store.queries import groups

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles

_FORMAT = 1
_GROUP = 128  # texts that are embedded at once
# So many new texts get their vectors before they are written; of more, words can be found first.
_FEW = 256
_SAVED_AT_ONCE = 2048
_NEW = "there was none"
_OTHER_VECTORS = "its vectors were not of"


@frozen(slots=True)
class _Work:
    """What a sync has to do. `rebuilt`: why all is made anew, or empty."""

    known: Mapping[str, Passage] = field(repr=False)
    changed: tuple[FoundFile, ...] = ()
    gone: tuple[str, ...] = ()
    rebuilt: str = ""

    @property
    def is_needed(self) -> bool:
        return bool(self.changed or self.gone or self.rebuilt)


class Follower:
    """Blocking. Several threads and processes may sync one table; one of them writes at a time."""

    def __init__(self, context: BackendContext, cutting: Cutting, embedding: Meaning, table: Table) -> None:
        self._context = context
        self._cutting = cutting
        self._embedding = embedding
        self._table = table

    def sync(self, force: bool, told: ProgressListener) -> SyncReport:
        """Read files that have changed, and make vectors of texts that are new. Raises `UsageError` for a
        missing workspace, `MemoryUnavailable` when the table cannot be written."""
        context = self._context
        scan = scan_memory(context.workspace, context.extra_paths, context.transcripts)
        embedder, problem = self.embedder()
        work = self._work(scan, force, embedder)
        taken: dict[str, Taken] = {}
        failed: list[FileProblem] = []
        embedded = 0
        if work.is_needed:
            with self._table.writing():
                work = self._work(scan, force, embedder)  # another process may have been quicker
                taken, failed = self._read(work.changed, told)
                embedded = self._write(work, taken, embedder)
        if embedder is not None:
            more, problem = self._fill(embedder, told)
            embedded += more
        report = self._report(scan, work, taken, failed)
        return evolve(report, embedded=embedded, degraded=problem, chunks=self._table.count())

    def embedder(self) -> tuple[Embedder | None, str]:
        """The embedder, or why there is none now, unless none is wanted."""
        if not self._embedding.wanted:
            return None, ""
        try:
            return self._embedding.embedder(QUESTION_SECONDS), ""
        except NoMeaning as error:
            return None, str(error)

    def _work(self, scan: Scan, force: bool, embedder: Embedder | None) -> _Work:
        """What the files and the table differ in."""
        why, known = self._reason(embedder), {}
        if force:
            why = "it was asked for"
        elif not why or why.startswith(_OTHER_VECTORS):
            known = self._table.files()
        changed = tuple(f for f in scan.files if why or f.name not in known or _differs(f, known[f.name]))
        names = {f.name for f in scan.files}
        gone = tuple(name for name in known if name not in names and not scan.hides(name))
        return _Work(known, changed, gone, why if scan.files or why != _NEW else "")

    def _reason(self, embedder: Embedder | None) -> str:
        """Why all has to be made anew, or nothing."""
        try:
            label = self._table.label()
            self._table.files()
        except MemoryUnavailable as error:
            return str(error)
        wanted = self._label(embedder)
        if label is None:
            return _NEW
        if label.format != wanted.format:
            return "it was made otherwise, or for another workspace"
        if embedder is not None and label != wanted:
            return f"{_OTHER_VECTORS} {embedder.identity}"
        return ""

    def _label(self, embedder: Embedder | None) -> Label:
        form = f"{_FORMAT}/{self._cutting.identity}/{self._context.workspace}"
        return Label(form) if embedder is None else Label(form, embedder.identity, embedder.dimensions)

    def _read(self, files: Sequence[FoundFile], told: ProgressListener) -> tuple[dict[str, Taken], list[FileProblem]]:
        taken: dict[str, Taken] = {}
        failed = []
        for done, found in enumerate(files):
            told(SyncProgress("files", done, len(files)))
            try:
                read = take_in(found, self._cutting)
            except (OSError, MemoryPathError) as error:
                reason = error.strerror if isinstance(error, OSError) else "became a link"
                failed.append(FileProblem(found.name, f"cannot be read: {reason}"))
                continue
            if read is not None:
                taken[found.name] = read
        return taken, failed

    def _write(self, work: _Work, taken: Mapping[str, Taken], embedder: Embedder | None) -> int:
        """Write what was read: how many texts were given a vector with it."""
        table = self._table
        news = [one for one in taken.values() if work.rebuilt or _is_news(one, work.known)]
        rows = [row for one in news for row in one.rows]
        had = {} if work.rebuilt or embedder is None else table.vectors([row.hash for row in rows if row.number])
        texts = {row.hash: row.text for row in rows if row.number and row.hash not in had}
        made: dict[str, Singles] = {}
        if embedder is not None and len(texts) <= _FEW:
            made = self._soon(texts, embedder)
        if work.rebuilt:
            table.rebuild(self._label(embedder), rows, made)
            return len(made)
        if rows or work.gone:
            table.change(rows, work.gone, {**had, **made})
        seen = [one.file for one in taken.values() if not _is_news(one, work.known) and one.file.stamp]
        if seen:
            table.update(seen, {})
        return len(made)

    def _soon(self, texts: Mapping[str, str], embedder: Embedder) -> dict[str, Singles]:
        """Vectors by hash; fewer when they cannot be made now, which is told where the rest gets its own."""
        made: dict[str, Singles] = {}
        with contextlib.suppress(NoMeaning):
            for group in groups(list(texts), _GROUP):
                made |= zip(group, self._embedding.embed([texts[h] for h in group], embedder), strict=True)
        return made

    def _fill(self, embedder: Embedder, told: ProgressListener) -> tuple[int, str]:
        """Vectors for texts that have none, without holding others up: how many, and why not all have one."""
        table = self._table
        if not table.count_without_vector() or table.label() != self._label(embedder):
            return 0, ""
        rows = table.without_vector()
        texts = {row.hash: row.text for row in rows}
        done, problem = 0, ""
        for part in groups(list(texts), _SAVED_AT_ONCE):
            made: dict[str, Singles] = {}
            try:
                for group in groups(part, _GROUP):
                    told(SyncProgress("vectors", done, len(texts)))
                    made |= zip(group, self._embedding.embed([texts[h] for h in group], embedder), strict=True)
                    done += len(group)
            except NoMeaning as error:
                problem = str(error)
            if made:
                with table.writing():
                    if table.label() != self._label(embedder):
                        return done, "another program made the index anew"
                    table.update([row for row in rows if row.hash in made], made)
            if problem:
                break
        if done > _FEW:
            with table.writing():
                table.tidy()
        return done, problem

    def _report(self, scan: Scan, work: _Work, taken: Mapping[str, Taken], failed: Sequence[FileProblem]) -> SyncReport:
        known = work.known
        added = sum(name not in known for name in taken)
        updated = sum(name in known and _is_news(one, known) for name, one in taken.items())
        hidden = 0 if work.rebuilt else sum(scan.hides(name) for name in known)
        unchanged = len(taken) - added - updated + len(scan.files) - len(work.changed) + hidden
        problems = (*(p for p in scan.failed if p.path not in known), *failed)
        return SyncReport(
            str(self._context.workspace),
            seen=added + updated + unchanged + len(problems),
            added=added,
            updated=updated,
            unchanged=unchanged,
            removed=len(work.gone),
            failed=problems,
            rebuilt="" if work.rebuilt == _NEW else work.rebuilt,
            skipped=scan.skipped,
        )


def _is_news(taken: Taken, known: Mapping[str, Passage]) -> bool:
    before = known.get(taken.file.path)
    return before is None or before.hash != taken.file.hash


def _differs(found: FoundFile, known: Passage) -> bool:
    return known.stamp != stamp_of(found.stat) or known.source != found.source
