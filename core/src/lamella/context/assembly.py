"""Whose prompt is asked for, and the sections that it consists of."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, field, fields, frozen

from lamella.config.schema import AgentSection
from lamella.context.prompt import (
    arrange,
    mode_for,
    opening,
    runtime_section,
    time_section,
    tool_section,
    workspace_section,
)
from lamella.plugins.hooks import Hooks
from lamella.sessions.keys import SessionKey
from lamella.types.hooks import PromptContext, PromptMode, PromptSection, RegistrationContext
from lamella.types.host import Trigger
from lamella.types.model import ToolSpec


@frozen(slots=True)
class PromptFor:
    """A session that needs a prompt; see `PromptContext` for the fields."""

    key: SessionKey
    session_id: str = ""
    trigger: Trigger = "user"
    model: str = ""
    preview: bool = False


@frozen(slots=True)
class PromptMaker:
    """Makes the system prompts of an agent's sessions. `mode` None: what the kind of session says."""

    hooks: Hooks = field(repr=False)
    facts: RegistrationContext
    agent: AgentSection
    tools: tuple[ToolSpec, ...] = field(repr=False)
    mode: PromptMode | None = None

    def sections(self, wanted: PromptFor) -> tuple[PromptSection, ...]:
        """The parts of a session's prompt, in order: the engine's own and those of plugins."""
        context = self._context(wanted)
        own = list(self._own(context))
        if context.mode != "none":
            context = evolve(context, files=self.hooks.prompt_files(context))
            own += [evolve(s, owner=plugin) for plugin, s in self.hooks.prompt_sections(context)]
        return tuple(arrange(own, context))

    def _context(self, wanted: PromptFor) -> PromptContext:
        facts = {a.name: getattr(self.facts, a.name) for a in fields(RegistrationContext)}
        return PromptContext(
            **facts,
            session_key=wanted.key.text,
            session_id=wanted.session_id,
            kind=wanted.key.kind,
            chat_type=wanted.key.chat_type,
            trigger=wanted.trigger,
            mode=self.mode or mode_for(wanted.key),
            model=wanted.model,
            tools=tuple(t.name for t in self.tools),
            preview=wanted.preview,
        )

    def _own(self, context: PromptContext) -> Iterator[PromptSection]:
        yield opening(self.agent.name, self.agent.system_prompt)
        yield tool_section(self.tools)
        yield workspace_section(context.workspace)
        yield time_section(context.timezone)
        yield runtime_section(context.agent_id, context.model)
