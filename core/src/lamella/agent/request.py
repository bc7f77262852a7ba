"""From messages to the next request: plugins, repair, size check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec
from attrs import Factory, field, frozen

from lamella.context.images import without_images
from lamella.context.profiles import profile_for
from lamella.context.repair import repair
from lamella.context.repairs.changes import each
from lamella.context.repairs.thinking import written_by
from lamella.errors import ContextOverflow
from lamella.plugins.hooks import Hooks
from lamella.text.conversation import convert_to_model_messages
from lamella.text.days import unix_ms
from lamella.text.estimate import Estimator, SizeCache, estimate_text
from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.messages import (
    AssistantMessage,
    Message,
    ModelMessage,
    TextBlock,
    UserMessage,
    blocks_of,
)
from lamella.types.model import Model, ModelRequest, ThinkingLevel, ToolSpec


@frozen(slots=True)
class RequestBuilder:
    """What every request of a run has in common. `prepend` goes before the newest user message;
    `with_thinking` False asks for no thinking and gives none back."""

    model: Model
    hooks: Hooks
    host: Host
    estimate: Estimator
    system_prompt: str
    tools: tuple[ToolSpec, ...]
    window: int
    thinking: ThinkingLevel = "off"
    prepend: str = ""
    with_thinking: bool = True
    _sizes: SizeCache = field(init=False, repr=False, default=Factory(lambda self: SizeCache(self.estimate), True))

    async def build(self, messages: Sequence[Message], call: int) -> ModelRequest:
        """The request for these messages. Raises `ContextOverflow` when it cannot fit the window."""
        shown = await self.hooks.context(h.BeforeModelCall(tuple(messages), call, self.window, unix_ms()), self.host)
        history = legal_history(shown, self.model, with_thinking=self.with_thinking)
        if self.prepend:
            history = prepend_to_newest(history, self.prepend)
        tokens = self.size(history)
        if tokens > self.window:
            raise ContextOverflow(
                f"the request needs about {tokens} tokens, the context window holds {self.window}",
                hint="Compact or reset the session, or use a model with a larger window.",
            )
        level = self.thinking if self.with_thinking else "off"
        return ModelRequest(history, self.system_prompt, self.tools, thinking=level)

    def size(self, history: Sequence[ModelMessage]) -> int:
        """Estimated tokens of a whole request."""
        return self._fixed + self._sizes.total(history)

    @cached_property
    def _fixed(self) -> int:
        return fixed_tokens(self.system_prompt, self.tools)


def fixed_tokens(system_prompt: str, tools: Iterable[ToolSpec]) -> int:
    """Estimated tokens of what is in every request: the system prompt and the tools."""
    return estimate_text(system_prompt) + sum(tool_tokens(t) for t in tools)


def tool_tokens(tool: ToolSpec) -> int:
    """Estimated tokens of one tool's description and schema."""
    return estimate_text(tool.description) + estimate_text(msgspec.json.encode(dict(tool.parameters)).decode())


def legal_history(messages: Sequence[Message], model: Model, *, with_thinking: bool = True) -> Sequence[ModelMessage]:
    """Messages converted and repaired for a model, with what thinking it can read or without any."""

    def same(message: AssistantMessage) -> bool:
        return with_thinking and written_by(message, model.provider, model.id, model.api)

    history = repair(convert_to_model_messages(messages), profile_for(model.provider, model.api), same_model=same)
    return history if model.supports_images else each(history, without_images)


def prepend_to_newest(history: Sequence[ModelMessage], text: str) -> Sequence[ModelMessage]:
    """Text put before the newest user message, in the same message."""
    for i in range(len(history) - 1, -1, -1):
        message = history[i]
        if isinstance(message, UserMessage):
            block = TextBlock(text.rstrip() + "\n\n")
            changed = UserMessage((block, *blocks_of(message.content)), message.timestamp, message.extra)
            return (*history[:i], changed, *history[i + 1 :])
    return history
