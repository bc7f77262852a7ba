"""The index that the user keeps with QMD: searched, and never written to."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from lamella.memory.scan import Scan, scan_memory
from lamella.types.memory import BackendContext
from lamella_qmd_backend.collections import Collection
from lamella_qmd_backend.config import SECTION, Config
from lamella_qmd_backend.faults import Kind, QmdFailed, failure_of
from lamella_qmd_backend.output import parse_collection
from lamella_qmd_backend.program import Version, locate, own_environment, read_version
from lamella_qmd_backend.runner import INDEX, Runner

_KNOWN_SECONDS = 300.0


class OwnIndex:
    """Collections of the user's, by the names that are configured."""

    mended_by = "It is your own index, which lamella leaves as it is."

    def __init__(self, context: BackendContext, config: Config) -> None:
        self._context = context
        self._config = config
        self.folder = context.state_dir / "qmd"
        self._runner: Runner | None = None
        self._version: Version | None = None
        self._collections: tuple[Collection, ...] = ()
        self._asked_at = 0.0
        self._starting = threading.Lock()
        self._closed = False

    def look(self) -> Scan:
        """The memory files as they are now. Raises `UsageError` for a missing workspace."""
        return scan_memory(self._context.workspace, self._context.extra_paths)

    def runner(self) -> Runner:
        """Raises `QmdFailed` without the program."""
        with self._starting:
            if self._runner is None:
                command = locate(self._config.command)
                # A folder of its own, so that no `.qmd` of a workspace takes the place of the user's index.
                self._runner = Runner(command, own_environment(command[0]), self.folder / "run")
                if self._closed:
                    self._runner.stop()
            return self._runner

    def version(self) -> Version:
        """Raises `QmdFailed`."""
        if self._version is None:
            self._version = read_version(self.runner(), self.folder / "version.json")
        return self._version

    def collections(self) -> tuple[Collection, ...]:
        """The configured collections with their folders. Raises `QmdFailed` for one that QMD does not have."""
        if not self._collections or time.monotonic() - self._asked_at > _KNOWN_SECONDS:
            self._collections = tuple(map(self._shown, self._config.collections))
            self._asked_at = time.monotonic()
        return self._collections

    def forget(self) -> None:
        """Ask for the collections again next time."""
        self._collections = ()

    def is_in_memory(self, collection: Collection) -> bool:
        """Whether the folder of a collection holds memory, or lies in it."""
        scan = self.look()
        start = collection.path.rstrip(os.sep) + os.sep
        return any(found.path.startswith(start) for found in scan.files)

    def close(self) -> None:
        with self._starting:
            self._closed = True
            if self._runner is not None:
                self._runner.stop()

    def _shown(self, name: str) -> Collection:
        timeout = self._config.limits.timeout_seconds
        ran = self.runner().run(*INDEX, "collection", "show", "--", name, timeout=timeout, cap=100_000)
        facts = parse_collection(ran.out)
        if ran.code == 0 and "Path" in facts:
            return Collection(name, os.path.realpath(Path(facts["Path"]).expanduser()), facts.get("Pattern", ""))
        failed = failure_of(ran, f"qmd collection show {name}")
        hint = f"`qmd collection list` shows the names for {SECTION}.collections."
        raise QmdFailed(str(failed), failed.kind, hint=hint if failed.kind is Kind.COLLECTION else failed.hint)
