"""The plugin: it offers the backend `lancedb`. lancedb, numpy and pyarrow wait until they are used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lamella.plugins import hookimpl
from lamella.types.memory import BackendRegistration
from lamella_memory_lancedb.notes.config import Config as _Config

if TYPE_CHECKING:
    from lamella.types.hooks import RegistrationContext
    from lamella.types.memory import BackendContext, MemoryBackend


class LanceDBBackend:
    """Lets LanceDB find the notes of memory-core."""

    name = "lancedb-backend"
    priority = 0
    Config = _Config

    def __init__(self, config: _Config) -> None:
        self.config = config

    @hookimpl
    def register_memory_backends(self, context: RegistrationContext) -> Iterable[BackendRegistration]:
        return (BackendRegistration("lancedb", self._open, "words and vectors in a LanceDB table"),)

    def _open(self, context: BackendContext) -> MemoryBackend:
        from lamella_memory_lancedb.notes.backend import NotesBackend

        return NotesBackend(context, self.config)
