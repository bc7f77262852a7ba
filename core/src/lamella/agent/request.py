"""From messages to the next request: plugins, repair, size check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from attrs import evolve, frozen

from lamella.context.profiles import profile_for_api
from lamella.context.repair import repair
from lamella.errors import ContextOverflow
from lamella.plugins.hooks import Hooks
from lamella.text.conversation import convert_to_model_messages
from lamella.text.estimate import Estimator, estimate_text
from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    ModelMessage,
    TextBlock,
    UserMessage,
    blocks_of,
)
from lamella.types.model import Model, ModelRequest, ThinkingLevel, ToolSpec

IMAGE_LEFT_OUT = "(image left out: the model does not take images)"


@frozen(slots=True)
class RequestBuilder:
    """What every request of a run has in common. `prepend` goes before the newest user message."""

    model: Model
    hooks: Hooks
    host: Host
    estimate: Estimator
    system_prompt: str
    tools: tuple[ToolSpec, ...]
    window: int
    thinking: ThinkingLevel = "off"
    prepend: str = ""

    async def build(self, messages: Sequence[Message], call: int) -> ModelRequest:
        """The request for these messages. Raises `ContextOverflow` when it cannot fit the window."""
        shown = await self.hooks.context(h.BeforeModelCall(tuple(messages), call, self.window), self.host)
        history = legal_history(shown, self.model)
        if self.prepend:
            history = prepend_to_newest(history, self.prepend)
        tokens = self.size(history)
        if tokens > self.window:
            raise ContextOverflow(
                f"the request needs about {tokens} tokens, the context window holds {self.window}",
                hint="Compact or reset the session, or use a model with a larger window.",
            )
        return ModelRequest(history, self.system_prompt, self.tools, thinking=self.thinking)

    def size(self, history: Sequence[ModelMessage]) -> int:
        """Estimated tokens of a whole request."""
        return fixed_tokens(self.system_prompt, self.tools) + sum(self.estimate(m) for m in history)


def fixed_tokens(system_prompt: str, tools: Iterable[ToolSpec]) -> int:
    """Estimated tokens of what is in every request: the system prompt and the tools."""
    return estimate_text(system_prompt) + sum(tool_tokens(t) for t in tools)


def tool_tokens(tool: ToolSpec) -> int:
    """Estimated tokens of one tool's description and schema."""
    return estimate_text(tool.description) + estimate_text(msgspec.json.encode(dict(tool.parameters)).decode())


def legal_history(messages: Sequence[Message], model: Model) -> tuple[ModelMessage, ...]:
    """Messages converted and repaired for a model."""

    def same(message: AssistantMessage) -> bool:
        return (message.provider, message.api, message.model) == (model.provider, model.api, model.id)

    history = repair(convert_to_model_messages(messages), profile_for_api(model.api), same_model=same)
    return history if model.supports_images else tuple(without_images(m) for m in history)


def without_images(message: ModelMessage) -> ModelMessage:
    """Images replaced by a note, for models that take none."""
    if isinstance(message, AssistantMessage) or isinstance(message.content, str):
        return message
    if not any(isinstance(b, ImageBlock) for b in message.content):
        return message
    kept: list[Block] = []
    for block in message.content:
        if not isinstance(block, ImageBlock):
            kept.append(block)
        elif not (kept and kept[-1] == TextBlock(IMAGE_LEFT_OUT)):
            kept.append(TextBlock(IMAGE_LEFT_OUT))
    return evolve(message, content=tuple(kept))


def prepend_to_newest(history: Sequence[ModelMessage], text: str) -> tuple[ModelMessage, ...]:
    """Text put before the newest user message, in the same message."""
    for i in range(len(history) - 1, -1, -1):
        message = history[i]
        if isinstance(message, UserMessage):
            block = TextBlock(text.rstrip() + "\n\n")
            changed = UserMessage((block, *blocks_of(message.content)), message.timestamp, message.extra)
            return (*history[:i], changed, *history[i + 1 :])
    return tuple(history)
