"""The plugin: what it registers, and the memory that it opens."""

from __future__ import annotations

from collections.abc import Iterable

from lamella.plugins import hookimpl
from lamella.types.hooks import MemoryContext, PromptSection, RegistrationContext
from lamella.types.memory import BackendContext, BackendRegistration, MemoryBackend, MemoryService
from lamella.types.tools import Tool
from lamella_memory_core.config import Config as _Config
from lamella_memory_core.prompt import memory_section
from lamella_memory_core.tools import memory_tools


class MemoryCore:
    """Fills the slot `memory`: keeps notes in Markdown files and finds things in them."""

    name = "memory-core"
    slot = "memory"
    priority = 0
    Config = _Config

    def __init__(self, config: _Config) -> None:
        self.config = config

    @hookimpl
    def register_memory_backends(self, context: RegistrationContext) -> Iterable[BackendRegistration]:
        return (BackendRegistration("sqlite", self._open_sqlite, "words and vectors in an SQLite file"),)

    @hookimpl
    def open_memory(self, context: MemoryContext) -> MemoryService:
        from lamella_memory_core.service import Memory

        return Memory(context)

    @hookimpl
    def register_tools(self, context: RegistrationContext) -> Iterable[Tool]:
        return memory_tools(context.memory, self.config) if context.memory is not None else ()

    @hookimpl
    def prompt_sections(self, context: RegistrationContext) -> Iterable[PromptSection]:
        return (memory_section(),) if context.memory is not None else ()

    def _open_sqlite(self, context: BackendContext) -> MemoryBackend:
        from lamella_memory_core.backend import open_sqlite  # SQLAlchemy is loaded when it is used

        return open_sqlite(context, self.config)
