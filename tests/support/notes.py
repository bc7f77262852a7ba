"""Workspaces for memory tests: files from a mapping, and a memory opened over them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

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


def memory_context(
    workspace: Path, backend: str = "sqlite", state: str = "state", config: Config | None = None
) -> MemoryContext:
    """Transcripts lie in a folder beside the workspace."""
    words = evolve(config or Config(), embedder="none")
    registered = BackendRegistration("sqlite", lambda context: open_sqlite(context, words))
    folder, sessions = workspace.parent / state, workspace.parent / "sessions"
    return MemoryContext("main", workspace, folder, "UTC", backend, {"sqlite": registered}, {}, sessions_dir=sessions)


def open_memory(workspace: Path, config: Config | None = None) -> Memory:
    return Memory(memory_context(workspace, config=config), config or Config())
