"""The private index: folders, settings, updates, vectors, repair.

<state folder>/qmd/
    config/index.yml    QMD's settings, written here only
    cache-N/            the database of generation N; a new index is made in a new folder
    run/                the working folder of every qmd; nothing of a workspace lies above it
    sessions/           exported transcripts
    state.json          what is known of the index
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

from attrs import evolve, frozen

from lamella.memory.scan import Scan, scan_memory
from lamella.text.files import write_atomic
from lamella.types.memory import BackendContext, FileProblem, ProgressListener, SyncProgress
from lamella_qmd_backend.changes import Changes, changes_of, stamp
from lamella_qmd_backend.collections import Collection, memory_collections, settings_document
from lamella_qmd_backend.config import Config
from lamella_qmd_backend.exports import Exports
from lamella_qmd_backend.faults import Kind, QmdFailed, failure_of
from lamella_qmd_backend.folders import cache_of, generations, held, put_aside, remove_others, share
from lamella_qmd_backend.output import parse_update
from lamella_qmd_backend.program import Version, locate, private_environment, read_version
from lamella_qmd_backend.runner import INDEX, Runner
from lamella_qmd_backend.state import State, StateFile
from lamella_qmd_backend.vectors import Embedded, embed, is_embedding_due

log = logging.getLogger(__name__)

_BUSY_WAITS = (0.5, 1.0)
_LOG_CHARS = 20_000


@frozen(slots=True)
class Updated:
    """What an update found and did. `embed_problem` says why new texts have no vectors, or is empty."""

    scan: Scan
    changes: Changes
    state: State
    rebuilt: str = ""
    problems: tuple[FileProblem, ...] = ()
    embedded: int = 0
    embed_problem: str = ""


class PrivateIndex:
    """An index of lamella's own for one agent. Several threads and processes may use it."""

    mended_by = "`lamella memory index` mends it."

    def __init__(self, context: BackendContext, config: Config) -> None:
        self._context = context
        self._config = config
        self.folder = context.state_dir / "qmd"
        self.exports = Exports(self.folder / "sessions")
        self._states = StateFile(self.folder / "state.json")
        self._runners: dict[int, Runner] = {}
        self._starting = threading.Lock()
        self._version: Version | None = None
        self._closed = False

    @property
    def embeds(self) -> bool:
        """Whether a model is configured that makes vectors."""
        return bool(self._config.models.embed)

    def look(self) -> Scan:
        """The memory files as they are now. Raises `UsageError` for a missing workspace."""
        context = self._context
        return scan_memory(context.workspace, context.extra_paths, context.transcripts)

    def collections(self, scan: Scan) -> tuple[Collection, ...]:
        exported = self.exports.folder if self._context.transcripts is not None else None
        return memory_collections(self._context.workspace, scan, self._context.extra_paths, exported)

    def state(self) -> State:
        """The state of the index; an index whose database is gone is none."""
        state = self._states.read()
        return state if state.generation == 0 or self.database(state).exists() else evolve(state, files={}, settings="")

    def is_made(self) -> bool:
        return self.state().settings != ""

    def cache(self, generation: int) -> Path:
        return cache_of(self.folder, generation)

    def database(self, state: State) -> Path:
        return self.cache(state.generation) / "qmd" / "index.sqlite"

    def runner(self, generation: int | None = None) -> Runner:
        """Runs qmd on the index, or on another generation of it. Raises `QmdFailed` without the program."""
        if generation is None:
            generation = self._states.read().generation
        with self._starting:
            if generation not in self._runners:
                self._runners[generation] = self._new_runner(generation)
            return self._runners[generation]

    def version(self) -> Version:
        """Raises `QmdFailed`."""
        if self._version is None:
            self._version = read_version(self.runner(), self.folder / "version.json")
        return self._version

    def is_due(self, scan: Scan, changes: Changes) -> bool:
        """Whether an update is called for, and not too soon after the last one or a failed one."""
        update, state, now = self._config.update, self.state(), time.time()
        last = max(state.updated_at, state.error_at)
        if last <= now < last + update.debounce_seconds:
            return False
        late = 0 < update.interval_minutes * 60 <= now - state.updated_at
        return bool(changes) or late or self._settings(scan) != state.settings

    def update(
        self,
        *,
        force: bool = False,
        again: bool = False,
        vectors: bool = True,
        wait: float = 0.0,
        progress: ProgressListener | None = None,
    ) -> Updated | None:
        """Bring the index up to date with the files; `force` makes it anew, `again` even if nothing changed.
        Without `vectors`, those of new texts are left for another time.

        None when another process did not finish within `wait` seconds. Raises `QmdFailed`, after noting
        it; the old index stays then.
        """
        told = progress or (lambda _progress: None)
        with self._held("update", wait) as mine:
            if not mine:
                return None
            scan = self.look()
            try:
                done = self._mended_update(scan, told, force=force, again=again)
            except QmdFailed as failed:
                if not self._closed:
                    self._note_failure(failed)
                raise
        embedded = self.embed(told, force=force) if vectors else None
        if embedded is None:
            return done
        state = embedded.noted(done.state)
        return evolve(done, state=state, embedded=embedded.count, embed_problem=state.embed_error)

    def embed(self, told: ProgressListener, *, force: bool = False) -> Embedded | None:
        """Give new texts vectors. None when that is not due, or another process does it. Updates may run meanwhile."""
        state = self.state()
        if not state.settings or not is_embedding_due(state, self._config, force=force):
            return None
        with self._held("embed", 0.0) as mine:
            if not mine:
                return None
            told(SyncProgress("vectors", 0, 0))
            embedded = embed(self.runner(state.generation), state, self._config)
        with self._held("update", self._config.update.busy_seconds) as mine:
            if mine and not self._closed:
                state = embedded.noted(self._states.read())
                self._states.write(state)
                if state.embed_error:
                    log.warning("new texts have no vectors: %s", state.embed_error)
        return embedded

    def is_updating(self) -> bool:
        """Whether some process is just updating the index."""
        with self._held("update", 0.0) as mine:
            return not mine

    def move_aside(self, reason: str) -> None:
        """Put a broken database aside, so that the next update makes a new one. The files are untouched."""
        with self._held("update", self._config.update.busy_seconds) as mine:
            if mine:
                self._put_aside(reason)

    def close(self) -> None:
        with self._starting:
            self._closed = True
            for runner in self._runners.values():
                runner.stop()

    def _new_runner(self, generation: int) -> Runner:
        command = locate(self._config.command)
        cache = self.cache(generation)
        for folder in (self.folder / "config", cache / "qmd"):
            folder.mkdir(parents=True, exist_ok=True)
        models = self._config.models
        if any(name.startswith("hf:") for name in (models.embed, models.generate, models.rerank)):
            share(cache / "qmd" / "models", self.folder / "models")
        busy = self._config.update.busy_seconds
        environment = private_environment(command[0], self.folder, cache, busy, models.context_size)
        runner = Runner(command, environment, self.folder / "run")
        if self._closed:
            runner.stop()
        return runner

    def _put_aside(self, reason: str) -> bool:
        """Whether there was a database to put aside."""
        state = self._states.read()
        if not self.database(state).exists():
            return False
        broken = put_aside(self.folder, state.generation)
        self._states.write(evolve(state, settings="", files={}, error=reason, error_at=0.0, updated_at=0.0))
        log.warning("QMD's index is broken (%s); it was moved to %s and is made anew", reason, broken)
        return True

    def _mended_update(self, scan: Scan, told: ProgressListener, *, force: bool, again: bool) -> Updated:
        """An update; when it finds the database broken, a new index."""
        try:
            return self._update(scan, told, force=force, again=again)
        except QmdFailed as failed:
            if failed.kind is not Kind.CORRUPT or force or not self._put_aside(str(failed)):
                raise
        return self._update(scan, told, force=force, again=again)

    def _update(self, scan: Scan, told: ProgressListener, *, force: bool, again: bool) -> Updated:
        state = self.state()
        settings = self._settings(scan)
        rebuilt = "" if state.settings and not force else self._why_anew(state, force)
        changes = changes_of(scan, {} if rebuilt else state.files)
        if not (rebuilt or changes or again or settings != state.settings):
            return Updated(scan, changes, state, embed_problem=state.embed_error if self.embeds else "")
        total = len(changes.names)
        told(SyncProgress("files", 0, total))
        problems: list[FileProblem] = []
        if self._context.transcripts is not None:
            problems = self.exports.bring_up_to_date(scan.files, changes.names)
        self._write_settings(scan)
        generation = max((*generations(self.folder), state.generation)) + 1 if rebuilt else state.generation
        begun = time.time()
        out = self._run_update(self.runner(generation))
        told(SyncProgress("files", total, total))
        state = evolve(
            state,
            generation=generation,
            settings=settings,
            updated_at=begun,
            documents=parse_update(out).documents,
            files={found.name: stamp(found) for found in scan.files},
            error="",
            error_at=0.0,
            embedded_at=0.0 if rebuilt else state.embedded_at,
        )
        self._states.write(state)
        for old in remove_others(self.folder, generation):  # those that were never finished, too
            self._runners.pop(old, None)
        problem = state.embed_error if self.embeds else ""
        return Updated(
            scan, changes, state, rebuilt if rebuilt != "new" else "", tuple(problems), embed_problem=problem
        )

    def _why_anew(self, state: State, force: bool) -> str:
        if force:
            return "asked for"
        return "its database was missing or broken" if state.generation else "new"

    def _run_update(self, runner: Runner) -> str:
        """Run `qmd update`, again when the database is busy. Raises `QmdFailed`."""
        timeout = self._config.update.timeout_seconds
        waits = iter((*_BUSY_WAITS, None))
        while True:
            ran = runner.run(*INDEX, "update", timeout=timeout, cap=_LOG_CHARS * 10, tail=True)
            if ran.code == 0 and not ran.timed_out:
                return ran.out
            failed = failure_of(ran, "qmd update")
            wait = next(waits) if failed.kind is Kind.BUSY else None
            if wait is None:
                raise failed
            time.sleep(wait)

    def _settings(self, scan: Scan) -> str:
        """Tells the settings that an index is made with from any others."""
        content = f"{self.version()}\n{self._document(scan)}"
        return sha256(content.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def _document(self, scan: Scan) -> str:
        models = self._config.models
        # A model that is nowhere is an error at once; QMD's own defaults would be downloaded, or waited for.
        missing = str(self.folder / "no-model.gguf")
        named = {name: _model(getattr(models, name)) or missing for name in ("embed", "generate", "rerank")}
        return json.dumps(settings_document(self.collections(scan), named), ensure_ascii=False, indent=1)

    def _write_settings(self, scan: Scan) -> None:
        path = self.folder / "config" / "index.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, self._document(scan).encode("utf-8", "surrogateescape"))

    def _held(self, what: str, seconds: float) -> AbstractContextManager[bool]:
        return held(self.folder, what, seconds)

    def _note_failure(self, failed: QmdFailed) -> None:
        with contextlib.suppress(OSError):  # a full disk is what failed
            self.folder.mkdir(parents=True, exist_ok=True)
            self._states.write(evolve(self._states.read(), error=str(failed), error_at=time.time()))


def _model(name: str) -> str:
    """A model's name for QMD, whose home folder is another one."""
    return name if name.startswith("hf:") else os.path.expanduser(name)  # noqa: PTH111
