"""What all sessions of one agent share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from attrs import field, frozen

from lamella.config.schema import AgentSection, Settings
from lamella.context.assembly import PromptMaker
from lamella.memory.writer import MemoryWriter
from lamella.plugins.hooks import Hooks
from lamella.text.estimate import Estimator
from lamella.types.model import Model
from lamella.types.tools import Tool

# Asked before a tool that writes: True runs it. None means that nobody is asked.
Confirm: TypeAlias = Callable[[Tool, Mapping[str, object]], Awaitable[bool]]


@frozen(slots=True)
class Environment:
    """Settings, plugins, tools and memory of an agent. `make_model` opens a model by reference."""

    agent_id: str
    settings: Settings
    agent: AgentSection
    workspace: Path
    hooks: Hooks = field(repr=False)
    tools: Mapping[str, Tool] = field(repr=False)
    prompts: PromptMaker = field(repr=False)
    estimate: Estimator = field(repr=False)
    make_model: Callable[[str], Model] = field(repr=False)
    writer: MemoryWriter = field(repr=False)
    system_prompt: str = ""
    confirm: Confirm | None = field(default=None, repr=False)

    def window(self, model: Model) -> int:
        """The window that is used: the model's, or the configured cap."""
        cap = self.settings.context.window
        return min(model.context_window, cap) if cap else model.context_window
