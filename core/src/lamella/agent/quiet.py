"""Events as a listener may see them: without the silent token, not even a part of it on its way.

The transcript keeps what the model wrote; only what is told is filtered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from attrs import evolve

from lamella.text.silent import Unspoken
from lamella.types import events as e
from lamella.types.messages import AssistantMessage, Block, Message, TextBlock
from lamella.types.model import Delta

Tell: TypeAlias = Callable[[e.AgentEvent], None]
M = TypeVar("M", bound=Message)


class Quiet:
    """Passes events on to `tell`, with the silent token left out of replies."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._blocks: dict[int, _Block] = {}  # of the reply that streams, by index

    def __call__(self, event: e.AgentEvent) -> None:
        match event:
            case e.MessageStart(message=AssistantMessage() as reply):
                self._blocks = {}
                self._tell(e.MessageStart(self._shown(reply)))
            case e.MessageUpdate(message=AssistantMessage() as reply, delta=delta):
                self._update(reply, delta)
            case e.MessageEnd(message=AssistantMessage() as reply):
                for index in sorted(self._blocks):
                    self._say(reply, index, self._blocks[index].rest(cut_off=reply.failed))
                self._blocks = {}
                self._tell(e.MessageEnd(audible(reply)))
            case e.TurnEnd():
                self._tell(evolve(event, message=audible(event.message)))
            case e.AgentEnd():
                self._tell(e.AgentEnd(all_audible(event.messages)))
            case _:
                self._tell(event)

    def _update(self, reply: AssistantMessage, delta: Delta) -> None:
        if not delta.type.startswith("text_"):
            self._pass(reply, delta)
        elif delta.type == "text_delta":
            self._say(reply, delta.index, self._block(delta.index).feed(delta.delta))
        else:
            if delta.type == "text_start":  # again, when a server begins the same block anew
                self._blocks[delta.index] = _Block()
            else:
                self._say(reply, delta.index, self._block(delta.index).rest())
            self._pass(reply, delta)

    def _block(self, index: int) -> _Block:
        return self._blocks.setdefault(index, _Block())

    def _say(self, reply: AssistantMessage, index: int, piece: str) -> None:
        if piece:
            self._pass(reply, Delta("text_delta", reply, index, piece))

    def _pass(self, reply: AssistantMessage, delta: Delta) -> None:
        shown = self._shown(reply)
        self._tell(e.MessageUpdate(shown, evolve(delta, partial=shown)))

    def _shown(self, reply: AssistantMessage) -> AssistantMessage:
        """The reply so far, with as much of its texts as has been told."""
        content: list[Block] = list(reply.content)
        for index, block in enumerate(content):
            if isinstance(block, TextBlock):
                told = self._blocks[index].told if index in self._blocks else ""
                content[index] = block if told == block.text else evolve(block, text=told)
        return evolve(reply, content=tuple(content))


class _Block:
    """A text block that streams, and what of it has been told."""

    def __init__(self) -> None:
        self.told = ""
        self._filter = Unspoken()

    def feed(self, piece: str) -> str:
        return self._add(self._filter.feed(piece))

    def rest(self, *, cut_off: bool = False) -> str:
        return self._add(self._filter.finish(cut_off=cut_off))

    def _add(self, said: str) -> str:
        self.told += said
        return said


def audible(message: M) -> M:
    """A message as a listener may see it."""
    if not isinstance(message, AssistantMessage):
        return message
    content = tuple(_audible(block, message.failed) for block in message.content)
    return message if content == message.content else evolve(message, content=content)


def all_audible(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages as a listener may see them."""
    return tuple(audible(message) for message in messages)


def _audible(block: Block, failed: bool) -> Block:
    if not isinstance(block, TextBlock):
        return block
    filtered = Unspoken()
    said = filtered.feed(block.text) + filtered.finish(cut_off=failed)
    return evolve(block, text=said) if filtered.removed else block
