"""What a single message may hold: valid text, blocks that providers know, images that they take."""

from __future__ import annotations

from typing import TypeVar

from attrs import evolve

from lamella.context.images import checked_image, raw_image
from lamella.context.profiles import ProviderProfile
from lamella.context.repairs.calls import valid_call
from lamella.context.repairs.changes import each_block
from lamella.context.repairs.provenance import marked
from lamella.context.repairs.thinking import SameModel, own_thinking
from lamella.text.unicode import well_formed
from lamella.types.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    ModelMessage,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

EMPTY_MESSAGE = "(empty message)"

_Said = TypeVar("_Said", UserMessage, ToolResultMessage)


def clean(
    message: ModelMessage, profile: ProviderProfile, same_model: SameModel, known: frozenset[str]
) -> ModelMessage:
    """The message without what the provider would refuse; the same object when it is clean."""
    match message:
        case UserMessage():
            message = marked(message)
            content = _content(message.content, profile)
            return _with(message, content if _says(content) else (TextBlock(EMPTY_MESSAGE),))
        case ToolResultMessage():
            return _with(message, _content(message.content, profile))
        case AssistantMessage():
            own = own_thinking(message, profile, same_model)
            blocks = each_block(own.content, lambda block: _reply_block(block, profile, known))
            return own if blocks is own.content else evolve(own, content=blocks)


def spoken(message: ModelMessage) -> ModelMessage | None:
    """A reply without thinking at its end, or None when it neither says nor calls anything.

    Servers refuse replies that end in thinking, and have no use for empty ones.
    """
    if not isinstance(message, AssistantMessage):
        return message
    end = len(message.content)
    while end and isinstance(message.content[end - 1], ThinkingBlock):
        end -= 1
    if not any(isinstance(b, ToolCall) or _visible(b) for b in message.content[:end]):
        return None
    return message if end == len(message.content) else evolve(message, content=message.content[:end])


def _with(message: _Said, content: str | tuple[Block, ...]) -> _Said:
    return message if content is message.content else evolve(message, content=content)


def _content(content: str | tuple[Block, ...], profile: ProviderProfile) -> str | tuple[Block, ...]:
    if isinstance(content, str):
        return well_formed(content)
    alone = len(content) == 1
    return each_block(content, lambda block: _shown_block(block, profile, alone))


def _shown_block(block: Block, profile: ProviderProfile, alone: bool) -> Block | None:
    """A block of a user message or a result. Blank text beside other blocks says nothing."""
    match block:
        case TextBlock():
            return _valid_text(block) if alone or block.text.strip() else None
        case ImageBlock():
            return checked_image(block, profile)
        case OtherBlock():
            image = raw_image(block)
            return None if image is None else checked_image(image, profile)
        case _:
            return None


def _reply_block(block: Block, profile: ProviderProfile, known: frozenset[str]) -> Block | None:
    match block:
        case TextBlock():
            kept = block.text.strip() or (block.signature and profile.signed_blanks)
            return _valid_text(block) if kept else None
        case ThinkingBlock():
            text = well_formed(block.thinking)
            return block if text is block.thinking else evolve(block, thinking=text)
        case ToolCall():
            return valid_call(block, known)
        case _:
            return None


def _valid_text(block: TextBlock) -> TextBlock:
    text = well_formed(block.text)
    return block if text is block.text else evolve(block, text=text)


def _says(content: str | tuple[Block, ...]) -> bool:
    return bool(content.strip()) if isinstance(content, str) else any(map(_visible, content))


def _visible(block: Block) -> bool:
    return isinstance(block, ImageBlock) or (isinstance(block, TextBlock) and bool(block.text.strip()))
