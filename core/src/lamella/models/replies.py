"""pydantic-ai's stream events as `Delta` events, and the reply that they add up to.

Imports pydantic-ai, so only adapters may import this module.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, evolve, field
from pydantic_ai import messages as pai
from pydantic_ai.usage import RequestUsage

from lamella.errors import ModelError, ModelRejected, ModelTransient
from lamella.models.blocks import BlockMapping, complete
from lamella.models.endpoint import price
from lamella.models.whole import CALL_STEPS, TEXT_STEPS, THINKING_STEPS, Steps
from lamella.text.days import unix_ms
from lamella.types.messages import (
    AssistantMessage,
    Block,
    StopReason,
    ToolCall,
)
from lamella.types.model import Delta, ModelInfo


@define(slots=True)
class _Slot:
    """A block in the making: its place in the reply, and the part so far."""

    index: int
    steps: Steps
    part: pai.TextPart | pai.ThinkingPart | pai.ToolCallPart
    open: bool = True


@define(slots=True)
class ReplyBuilder:
    """Collects one reply. `feed` takes the stream's events in order, `close_blocks` ends it.

    A tool call ends once its arguments are whole, which may be after a later call has begun:
    servers may send the pieces of parallel calls in turns.
    """

    message: AssistantMessage
    mapping: BlockMapping
    _slots: dict[int, _Slot] = field(factory=dict)
    _blocks: list[Block] = field(factory=list)

    @classmethod
    def begin(cls, provider: str, model: str, api: str, mapping: BlockMapping) -> ReplyBuilder:
        return cls(AssistantMessage((), provider=provider, model=model, api=api, timestamp=unix_ms()), mapping)

    @property
    def partial(self) -> AssistantMessage:
        """The reply so far."""
        return evolve(self.message, content=tuple(self._blocks))

    def feed(self, event: pai.ModelResponseStreamEvent) -> Iterator[Delta]:
        """The steps that an event amounts to: none, one or two."""
        match event:
            case pai.PartStartEvent():
                yield from self._start(event.index, event.part)
            case pai.PartDeltaEvent():
                yield from self._grow(event.index, event.delta)
            case pai.PartEndEvent():
                slot = self._slots.get(event.index)
                if slot is not None and (not isinstance(slot.part, pai.ToolCallPart) or complete(slot.part)):
                    yield from self._end(slot)
            case _:
                return

    def close_blocks(self) -> Iterator[Delta]:
        """End every block that is still open."""
        for slot in list(self._slots.values()):
            yield from self._end(slot)

    def _start(self, index: int, part: pai.ModelResponsePart) -> Iterator[Delta]:
        if not isinstance(part, pai.TextPart | pai.ThinkingPart | pai.ToolCallPart):
            return
        slot = _Slot(len(self._blocks), _steps(part), part)
        known = self._slots.get(index)
        if known is None:
            self._slots[index] = slot
            self._blocks.append(self._block(slot))
        else:  # the server starts the same part anew
            slot.index = known.index
            self._slots[index] = slot
            self._blocks[slot.index] = self._block(slot)
        yield self._step(slot, 0)
        if first := _content(part):
            yield self._step(slot, 1, first)

    def _grow(self, index: int, delta: pai.ModelResponsePartDelta) -> Iterator[Delta]:
        slot = self._slots.get(index)
        if slot is None:
            return
        grown = delta.apply(slot.part)
        if not isinstance(grown, pai.TextPart | pai.ThinkingPart | pai.ToolCallPart):
            return
        slot.part = grown
        self._blocks[slot.index] = self._block(slot)
        if text := _added(delta):
            yield self._step(slot, 1, text)

    def _end(self, slot: _Slot) -> Iterator[Delta]:
        if slot.open:
            slot.open = False
            self._blocks[slot.index] = self._block(slot)
            yield self._step(slot, 2)

    def _block(self, slot: _Slot) -> Block:
        block = self.mapping.block(slot.part, done=not slot.open)
        assert block is not None, "only parts that have a block get a slot"
        return block

    def _step(self, slot: _Slot, step: int, text: str = "") -> Delta:
        return Delta(slot.steps[step], self.partial, slot.index, text)


def with_usage(message: AssistantMessage, usage: RequestUsage, info: ModelInfo) -> AssistantMessage:
    """The reply with its token counts; pydantic-ai's input includes what a cache held or took."""
    read, write = usage.cache_read_tokens, usage.cache_write_tokens
    fresh = max(usage.input_tokens - read - write, 0)
    counts = price(info, input=fresh, output=usage.output_tokens, cache_read=read, cache_write=write)
    return evolve(message, usage=counts)


def judge_end(
    message: AssistantMessage, finish: pai.FinishReason | None, raw: str
) -> tuple[StopReason, ModelError | None]:
    """(stop reason, error) of a reply whose stream ended; `raw` is the server's own word for why."""
    calls = any(isinstance(b, ToolCall) for b in message.content)
    if finish == "content_filter":
        return "error", ModelRejected(f"The provider withheld the reply ({raw or 'content filter'})")
    if finish == "error":
        return "error", ModelTransient(f"The provider ended the reply with an error ({raw or 'no reason given'})")
    if finish is None and not raw:
        return "error", ModelTransient("The reply ended without a stop reason; the connection may have been cut")
    if finish == "length":
        return "length", None
    return ("toolUse" if calls else "stop"), None


def _steps(part: pai.TextPart | pai.ThinkingPart | pai.ToolCallPart) -> Steps:
    match part:
        case pai.TextPart():
            return TEXT_STEPS
        case pai.ThinkingPart():
            return THINKING_STEPS
        case pai.ToolCallPart():
            return CALL_STEPS


def _content(part: pai.TextPart | pai.ThinkingPart | pai.ToolCallPart) -> str:
    if isinstance(part, pai.ToolCallPart):
        return part.args_as_json_str() if part.args else ""
    return part.content


def _added(delta: pai.ModelResponsePartDelta) -> str:
    match delta:
        case pai.TextPartDelta() | pai.ThinkingPartDelta():
            return delta.content_delta or ""
        case pai.ToolCallPartDelta():
            return delta.args_delta if isinstance(delta.args_delta, str) else ""
        case _:
            return ""
