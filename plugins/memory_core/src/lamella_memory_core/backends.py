"""The backend that the configuration names, with `sqlite` behind it when it is another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import evolve

from lamella.errors import MemoryUnavailable
from lamella.memory.cooling import CoolingFile
from lamella.memory.fallback import FallbackBackend
from lamella.memory.installing import distribution_of
from lamella.memory.pairing import Lazily
from lamella.types.memory import BackendContext, MemoryBackend
from lamella_memory_core.choices import KEYWORDS, NOBODY
from lamella_memory_core.config import Config

if TYPE_CHECKING:
    from lamella.types.events import Notice
    from lamella.types.hooks import MemoryContext

OWN = "sqlite"
# The index is kept in step meanwhile; a search that another backend has already cost time waits no longer for it.
_CATCH_UP_SECONDS = 2.0


def choose_backend(context: MemoryContext, config: Config, told: Callable[[Notice], None]) -> MemoryBackend:
    """Nothing is opened yet but `sqlite`, where it was chosen, and a backend that nothing stands behind.

    Raises `MemoryUnavailable` when the chosen one is not on offer and nothing answers for it. `told` hears of
    each change of who answers.
    """
    registered = context.backends.get(context.backend)
    absent = _not_installed(context) if registered is None else None
    own = OWN in context.backends and config.fallback != NOBODY
    if context.backend == OWN or not own:
        if registered is None:
            raise _not_installed(context)
        return registered.factory(_backend_context(context, config))

    def open_chosen() -> MemoryBackend:
        if registered is None:
            raise _not_installed(context)
        return registered.factory(_backend_context(context, config, config.backend_timeout_seconds))

    return FallbackBackend(
        Lazily(context.backend, open_chosen),
        Lazily(OWN, lambda: _open_own(context, config)),
        CoolingFile(context.state_dir, context.backend),
        absent=absent,
        seconds=config.backend_timeout_seconds,
        retry_seconds=config.backend_retry_seconds,
        told=told,
    )


def _open_own(context: MemoryContext, config: Config) -> MemoryBackend:
    from lamella_memory_core.backend import open_sqlite  # SQLAlchemy is loaded when it is used

    embedder = "none" if config.fallback == KEYWORDS else config.embedder
    wait = min(config.search_wait_seconds, _CATCH_UP_SECONDS)
    kept = evolve(config, embedder=embedder, search_wait_seconds=wait)
    return open_sqlite(_backend_context(context, config), kept)


def _backend_context(context: MemoryContext, config: Config, search_seconds: float | None = None) -> BackendContext:
    return BackendContext(
        context.agent_id,
        context.workspace,
        context.state_dir,
        context.embedders,
        extra_paths=config.extra_paths,
        transcripts=context.sessions_dir if config.session_memory else None,
        search_seconds=search_seconds,
    )


def _not_installed(context: MemoryContext) -> MemoryUnavailable:
    on_offer = ", ".join(sorted(context.backends)) or "none"
    return MemoryUnavailable(
        f"memory backend {context.backend!r} is not installed (on offer: {on_offer})",
        hint=f"pip install {distribution_of(context.backend)}, or set memory.backend to one on offer",
    )
