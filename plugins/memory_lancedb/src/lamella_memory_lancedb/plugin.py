"""The plugin: what it registers, and the memory that it opens. lancedb, numpy and pyarrow wait until they are used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lamella.plugins import hookimpl
from lamella_memory_lancedb.config import Config as _Config

if TYPE_CHECKING:
    from lamella.types.hooks import (
        AgentEnded,
        BeforePromptBuild,
        MemoryContext,
        PromptAddition,
        PromptSection,
        RegistrationContext,
        SessionStart,
    )
    from lamella.types.host import Host
    from lamella.types.memory import MemoryService
    from lamella.types.tools import Tool
    from lamella_memory_lancedb.capturing import Capturer
    from lamella_memory_lancedb.recall import Recaller
    from lamella_memory_lancedb.service import Memories


class MemoryLanceDB:
    """Fills the slot `memory`: keeps short statements in a table, and finds those that bear on a message."""

    name = "memory-lancedb"
    slot = "memory"
    priority = 0
    Config = _Config

    def __init__(self, config: _Config) -> None:
        self.config = config
        self._memories: Memories | None = None
        self._recaller: Recaller | None = None
        self._capturer: Capturer | None = None

    @hookimpl
    def open_memory(self, context: MemoryContext) -> MemoryService:
        from lamella_memory_lancedb.service import Memories

        self._memories = Memories(context, self.config)
        return self._memories

    @hookimpl
    async def session_start(self, event: SessionStart, host: Host) -> None:
        if self._memories is not None:
            self._memories.warm_up()

    @hookimpl
    async def before_prompt_build(self, event: BeforePromptBuild, host: Host) -> PromptAddition | None:
        if self._memories is None or not self.config.auto_recall:
            return None
        if self._recaller is None:
            from lamella_memory_lancedb.recall import Recaller

            self._recaller = Recaller(self._memories)
        return await self._recaller.before_prompt(event, host)

    @hookimpl
    async def agent_end(self, event: AgentEnded, host: Host) -> None:
        if self._memories is None or not self.config.auto_capture:
            return
        if self._capturer is None:
            from lamella_memory_lancedb.capturing import Capturer

            self._capturer = Capturer(self._memories)
        await self._capturer.turn_ended(event, host)

    @hookimpl
    def register_tools(self, context: RegistrationContext) -> Iterable[Tool]:
        from lamella_memory_lancedb.tools import memory_tools

        return memory_tools(self._memories) if self._memories is not None and context.memory is not None else ()

    @hookimpl
    def prompt_sections(self, context: RegistrationContext) -> Iterable[PromptSection]:
        from lamella_memory_lancedb.prompt import memory_sections

        return memory_sections(self.config) if context.memory is not None else ()
