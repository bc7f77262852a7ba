"""Long-term memory as the core sees it: backends, results, embedders."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from attrs import asdict, field, frozen


@frozen(slots=True)
class MemoryHit:
    """One found passage. Lines count from 1, both ends included; `score` is in 0..1.

    `parts`: what led to its place, by the backend's own names; only when the query asks to explain.
    """

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: str = "memory"
    parts: Mapping[str, float | None] | None = None

    @property
    def citation(self) -> str:
        """`path#Lx-Ly`, or `path#Lx` for a single line."""
        end = "" if self.end_line == self.start_line else f"-L{self.end_line}"
        return f"{self.path}#L{self.start_line}{end}"

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "path": self.path,
            "startLine": self.start_line,
            "endLine": self.end_line,
            "score": round(self.score, 6),
            "snippet": self.snippet,
            "source": self.source,
        }
        return shown if self.parts is None else {**shown, "parts": dict(self.parts)}


@frozen(slots=True)
class Degraded:
    """Why an answer is less than it could be, and who gave it instead.

    `since` and `retry_at` in Unix seconds: when it began, and when the first choice is asked again.
    """

    reason: str
    answered_by: str
    since: float | None = None
    retry_at: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@frozen(slots=True)
class MemoryResults:
    """Hits, best first. `degraded` is None when everything that was configured took part.

    `in_step`: the search compared the index with the files, and had taken in all of them. `mode`:
    `hybrid`, or `keyword` when meaning took no part; `embedder` is the one that is configured, `model`
    the identity of its vectors. `index` tells a state of the index from any other. All four are empty
    where a backend does not say.
    """

    hits: tuple[MemoryHit, ...]
    backend: str
    degraded: Degraded | None = None
    in_step: bool = False
    mode: str = ""
    embedder: str = ""
    model: str = ""
    index: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "results": [h.to_json() for h in self.hits],
            "backend": self.backend,
            "mode": self.mode,
            "embedder": self.embedder,
            "model": self.model,
            "degraded": self.degraded.to_json() if self.degraded else None,
        }


@frozen(slots=True)
class SearchQuery:
    """A question to a memory backend.

    Hits below `min_score` (0 to 1) are left out; `sources` limits them to these, if any are named.
    `today` (YYYY-MM-DD) anchors words such as yesterday. `explain` asks for the hits' `parts`.
    `exclude`: paths of files that must not be in the answer, since its reader may not see them.
    `as_is`: answer from the index as it is, without looking at the files and without making vectors.
    """

    text: str
    max_results: int = 6
    min_score: float = 0.0
    today: str | None = None
    sources: tuple[str, ...] = ()
    explain: bool = False
    exclude: tuple[str, ...] = ()
    as_is: bool = False


@frozen(slots=True)
class FileProblem:
    """A file that a sync could not take in."""

    path: str
    reason: str


@frozen(slots=True)
class SyncReport:
    """What a sync saw and did, in files; `chunks` is the number in the index afterwards.

    `failed` could not be taken in; `skipped` is left out on purpose (links, unusable names). `rebuilt`
    says why the index had to be made anew, or is empty. `embedded` counts texts that were given a
    vector; `degraded` says why some have none, or is empty. `problem`: what else went wrong, such as the
    chosen backend that could not be brought up to date, so that the report is that of its fallback.
    """

    workspace: str
    seen: int
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    removed: int = 0
    failed: tuple[FileProblem, ...] = ()
    chunks: int = 0
    rebuilt: str = ""
    skipped: tuple[FileProblem, ...] = ()
    embedded: int = 0
    degraded: str = ""
    problem: str = ""

    @property
    def ok(self) -> bool:
        return not self.failed

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@frozen(slots=True)
class SyncProgress:
    """How far a sync has come: `done` of `total` files taken in, or texts given a vector."""

    stage: Literal["files", "vectors"]
    done: int
    total: int


ProgressListener: TypeAlias = Callable[[SyncProgress], None]


@frozen(slots=True)
class BackendContext:
    """What a backend is opened for: one agent's workspace, and a folder for what it derives.

    `embedders` are those on offer, by name. `extra_paths`: Markdown files and folders beside the usual
    ones, as they are configured (see `lamella.memory.roots`). `transcripts`: a folder whose session
    transcripts count as memory too; None: none do. `scan_memory` takes both. `search_seconds`: how long a
    search may take before another backend answers it, so that shorter limits can be derived; None: no limit.
    """

    agent_id: str
    workspace: Path
    state_dir: Path
    embedders: Mapping[str, EmbedderRegistration] = field(factory=dict, repr=False)
    extra_paths: tuple[str, ...] = ()
    transcripts: Path | None = None
    search_seconds: float | None = None


@runtime_checkable
class MemoryBackend(Protocol):
    """Searches memory files. The files are the truth; whatever a backend keeps can be rebuilt.

    Methods block and may be called from worker threads. `search`, `sync` and `status` may run beside
    each other, but none of them twice at once; several processes may hold backends on the same state
    folder.
    """

    @property
    def name(self) -> str:
        """The name it was registered under."""

    def search(self, query: SearchQuery) -> MemoryResults:
        """Find passages, best first. Raises `MemoryUnavailable` when it cannot answer at all."""

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        """Bring what is derived up to date with the files; `force` rebuilds from nothing.

        `progress` is told now and then how far it has come.
        """

    def status(self) -> dict[str, Any]:
        """Facts for `lamella memory status`: JSON values only."""

    def close(self) -> None:
        """Release files and connections. May be called more than once."""


@runtime_checkable
class ProbingBackend(MemoryBackend, Protocol):
    """A backend that can tell cheaply whether it would answer. It need not."""

    def probe(self) -> None:
        """Find out whether a search could be answered. Raises `MemoryUnavailable` that says why not.

        Called beside `sync` perhaps, never beside a search or a `status`.
        """


class BackendFactory(Protocol):
    """Opens a backend; nothing need be read before it is used. Raises `MemoryUnavailable`."""

    def __call__(self, context: BackendContext) -> MemoryBackend: ...


@frozen(slots=True)
class BackendRegistration:
    """A backend on offer, chosen by `memory.backend`."""

    name: str
    factory: BackendFactory
    summary: str = ""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of unit length.

    `identity` names provider, model, dimensions and data: vectors of two identities never mix.
    """

    @property
    def identity(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """float32 array of shape (len(texts), dimensions)."""

    def embed_query(self, text: str) -> Any:
        """float32 array of shape (dimensions,)."""


@frozen(slots=True)
class EmbedderTraits:
    """What an embedder knows of itself, beyond what `Embedder` asks.

    `scripts`: the writing systems that it reads, by the names of `lamella.text.scripts`; None: any.
    `dense_share`: the part (0 to 1) that its vectors should have in an order to which keywords give the
    rest; None: not known.
    """

    scripts: frozenset[str] | None = None
    dense_share: float | None = None


@runtime_checkable
class TraitedEmbedder(Embedder, Protocol):
    """An embedder that tells its traits. It need not."""

    @property
    def traits(self) -> EmbedderTraits: ...


def traits_of(embedder: Embedder) -> EmbedderTraits:
    """What an embedder tells of itself; nothing when it does not tell."""
    return embedder.traits if isinstance(embedder, TraitedEmbedder) else EmbedderTraits()


class EmbedderFactory(Protocol):
    def __call__(self) -> Embedder: ...


@frozen(slots=True)
class EmbedderRegistration:
    """An embedder on offer. `offline` means: no network, no key, no download."""

    name: str
    factory: EmbedderFactory
    summary: str = ""
    offline: bool = False


@frozen(slots=True)
class MemoryText:
    """A slice of a memory file. Lines count from 1, both ends included.

    `status` is `ok`, `missing` (no such file: not an error) or `empty` (nothing in the range);
    `total_lines` is the file's length, 0 when it is missing.
    """

    status: str
    path: str
    text: str = ""
    start_line: int = 0
    end_line: int = 0
    total_lines: int = 0
    truncated: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "path": self.path,
            "text": self.text,
            "startLine": self.start_line,
            "endLine": self.end_line,
            "totalLines": self.total_lines,
            "truncated": self.truncated,
        }


@frozen(slots=True)
class MemoryWrite:
    """What was written: path within the workspace, first and last new line, bytes added."""

    path: str
    start_line: int
    end_line: int
    bytes_written: int

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "startLine": self.start_line,
            "endLine": self.end_line,
            "bytesWritten": self.bytes_written,
        }


@frozen(slots=True)
class Provenance:
    """Who wrote to memory: session key and id, the entry that caused it, trigger, and actor.

    `actor` names the door: `memory_append`, `write`, `flush`, `cli` and so on.
    """

    actor: str
    session_key: str = ""
    session_id: str = ""
    entry_id: str = ""
    trigger: str = ""


@runtime_checkable
class MemoryService(Protocol):
    """Long-term memory of one agent, as the plugin in slot `memory` offers it.

    The command line and other programs use it; the model uses the plugin's tools. Methods block
    and may be called from worker threads.
    """

    def search(self, query: SearchQuery) -> MemoryResults:
        """Find passages; brings the index up to date first when files changed."""

    def read(self, path: str, *, start_line: int = 1, lines: int | None = None) -> MemoryText:
        """Read a memory file. Raises `MemoryPathError` for anything that is not one."""

    def append(self, text: str, *, path: str | None = None, provenance: Provenance) -> MemoryWrite:
        """Append to a memory file (today's note when `path` is None) and index it."""

    def sync(self, *, force: bool = False, progress: ProgressListener | None = None) -> SyncReport:
        """Bring the index up to date; `force` rebuilds it; `progress` is told how far that has come."""

    def status(self) -> dict[str, Any]:
        """Facts for `lamella memory status`."""

    def close(self) -> None:
        """Release files and connections. May be called more than once."""


WatchReason: TypeAlias = Literal["start", "change", "interval"]


@frozen(slots=True)
class WatchEvent:
    """A sync of a memory that follows its files: why it was made, and its report or what went wrong.

    `at` in Unix milliseconds.
    """

    reason: WatchReason
    at: int
    report: SyncReport | None = None
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        report = self.report.to_json() if self.report else None
        return {"reason": self.reason, "at": self.at, "report": report, "error": self.error}


@runtime_checkable
class WatchingMemory(Protocol):
    """A memory that can follow its files for as long as it is asked to."""

    def watch(self, told: Callable[[WatchEvent], None], stopped: threading.Event) -> None:
        """Sync, and again after every change of a file, until `stopped` is set; `told` hears of each sync."""


@runtime_checkable
class ProbingMemory(Protocol):
    """A memory that can find out whether the backend that is configured answers, and not only its fallback."""

    def probe(self) -> None:
        """Ask it now, also when it is left alone after a failure. Raises `MemoryUnavailable` that says why not."""
