"""The plugin: it offers the backend `qmd`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lamella.plugins import hookimpl
from lamella.types.memory import BackendRegistration
from lamella_qmd_backend.config import Config as _Config

if TYPE_CHECKING:
    from lamella.types.hooks import RegistrationContext
    from lamella.types.memory import BackendContext, MemoryBackend


class QmdBackendPlugin:
    """Lets the program `qmd` find the notes."""

    name = "qmd-backend"
    priority = 0
    Config = _Config

    def __init__(self, config: _Config) -> None:
        self.config = config

    @hookimpl
    def register_memory_backends(self, context: RegistrationContext) -> Iterable[BackendRegistration]:
        return (BackendRegistration("qmd", self._open, "notes found by the program qmd"),)

    def _open(self, context: BackendContext) -> MemoryBackend:
        from lamella_qmd_backend.backend import QmdBackend

        return QmdBackend(context, self.config)
