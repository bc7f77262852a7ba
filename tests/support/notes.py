"""Workspaces for memory tests: files from a mapping, and a memory opened over them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from lamella.types.hooks import MemoryContext
from lamella.types.memory import BackendContext, BackendRegistration, EmbedderRegistration
from lamella_memory_core import Config
from lamella_memory_core.backend import SqliteBackend, open_sqlite
from lamella_memory_core.service import Memory

DATA = Path(__file__).parents[1] / "data" / "memory"


def make_workspace(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """`folder/ws` with these files."""
    workspace = folder / "ws"
    workspace.mkdir(exist_ok=True)
    for name, content in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return workspace


def copy_case(case: str, folder: Path) -> Path:
    """A writable copy of a case's workspace."""
    return Path(shutil.copytree(DATA / case / "ws", folder / "ws"))


def open_backend(
    workspace: Path,
    config: Config | None = None,
    state: str = "state",
    embedders: Mapping[str, EmbedderRegistration] | None = None,
) -> SqliteBackend:
    """A backend whose state folder lies beside the workspace; without embedders it knows words only."""
    chosen = config or (Config() if embedders else Config(embedder="none"))
    return open_sqlite(BackendContext("main", workspace, workspace.parent / state, embedders or {}), chosen)


def memory_context(workspace: Path, backend: str = "sqlite", state: str = "state") -> MemoryContext:
    registered = BackendRegistration("sqlite", lambda context: open_sqlite(context, Config(embedder="none")))
    return MemoryContext("main", workspace, workspace.parent / state, "UTC", backend, {"sqlite": registered}, {})


def open_memory(workspace: Path) -> Memory:
    return Memory(memory_context(workspace))
