"""The plugin: what it registers, and the memory that it opens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lamella.plugins import hookimpl
from lamella.types.memory import BackendRegistration
from lamella_memory_core.config import Config as _Config

if TYPE_CHECKING:
    from lamella.types.hooks import (
        AfterToolCall,
        AgentEnded,
        BeforeCompaction,
        BeforePromptBuild,
        BeforeTurn,
        FlushReport,
        MemoryContext,
        PromptAddition,
        PromptSection,
        RegistrationContext,
        SessionStart,
    )
    from lamella.types.host import Host
    from lamella.types.memory import BackendContext, MemoryBackend, MemoryService
    from lamella.types.tools import Tool
    from lamella_memory_core.flush.turn import Flush
    from lamella_memory_core.recall.recaller import Recaller
    from lamella_memory_core.service import Memory


class MemoryCore:
    """Fills the slot `memory`: keeps notes in Markdown files and finds things in them."""

    name = "memory-core"
    slot = "memory"
    priority = 0
    Config = _Config

    def __init__(self, config: _Config) -> None:
        self.config = config
        self._memory: Memory | None = None
        self._recaller: Recaller | None = None
        self._flush: Flush | None = None

    @hookimpl
    def register_memory_backends(self, context: RegistrationContext) -> Iterable[BackendRegistration]:
        return (BackendRegistration("sqlite", self._open_sqlite, "words and vectors in an SQLite file"),)

    @hookimpl
    def open_memory(self, context: MemoryContext) -> MemoryService:
        from lamella_memory_core.service import Memory

        self._memory = Memory(context, self.config)
        if self.config.auto_recall:
            from lamella_memory_core.recall.recaller import Recaller

            self._recaller = Recaller(self._memory, self.config)
        return self._memory

    @hookimpl
    async def session_start(self, event: SessionStart, host: Host) -> None:
        if self._memory is not None and self.config.sync_on_session_start:
            self._memory.sync_in_background()

    @hookimpl
    async def before_turn(self, event: BeforeTurn, host: Host) -> None:
        if (flush := self._flush_once()) is not None:
            await flush.before_turn(event, host)

    @hookimpl
    async def before_compaction(self, event: BeforeCompaction, host: Host) -> FlushReport | None:
        flush = self._flush_once()
        return await flush.before_compaction(event, host) if flush is not None else None

    @hookimpl
    async def after_tool_call(self, event: AfterToolCall, host: Host) -> None:
        self._tell_news(host)

    @hookimpl
    async def agent_end(self, event: AgentEnded, host: Host) -> None:
        self._tell_news(host)
        if self._flush is not None:
            self._flush.turn_ended(host)

    @hookimpl
    async def before_prompt_build(self, event: BeforePromptBuild, host: Host) -> PromptAddition | None:
        recalled = await self._recaller.before_prompt(event, host) if self._recaller is not None else None
        self._tell_news(host)
        return recalled

    @hookimpl
    def register_tools(self, context: RegistrationContext) -> Iterable[Tool]:
        from lamella_memory_core.tools import memory_tools

        return memory_tools(context.memory, self.config) if context.memory is not None else ()

    @hookimpl
    def prompt_sections(self, context: RegistrationContext) -> Iterable[PromptSection]:
        from lamella_memory_core.prompt import memory_sections

        return memory_sections(self.config) if context.memory is not None else ()

    def _flush_once(self) -> Flush | None:
        """The flush, made when a turn first needs it; None without memory."""
        if self._flush is None and self._memory is not None:
            from lamella_memory_core.flush.turn import Flush

            self._flush = Flush(self._memory.writer, self.config)
        return self._flush

    def _tell_news(self, host: Host) -> None:
        """Tell who watches the run of each change of who answers searches."""
        for notice in self._memory.news() if self._memory is not None else ():
            host.emit(notice)

    def _open_sqlite(self, context: BackendContext) -> MemoryBackend:
        from lamella_memory_core.backend import open_sqlite  # SQLAlchemy is loaded when it is used

        return open_sqlite(context, self.config)
