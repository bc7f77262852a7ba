"""Thinking blocks and signatures: whose, and for how long, they go back to a model."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import TypeAlias

from attrs import evolve

from lamella.context.profiles import ProviderProfile
from lamella.context.repairs.changes import History, each_block, settled
from lamella.types.messages import (
    AssistantMessage,
    Block,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

SameModel: TypeAlias = Callable[[AssistantMessage], bool]


def written_by(message: AssistantMessage, provider: str, model: str, api: str) -> bool:
    """Whether exactly this model, over this wire format, wrote a reply."""
    return (message.provider, message.model, message.api) == (provider, model, api)


def without_foreign_parts(message: AssistantMessage) -> AssistantMessage:
    """A reply for another model than the one that wrote it: no thinking, no signatures."""
    return _with(message, each_block(without_thinking(message.content), _unsigned))


def own_thinking(message: AssistantMessage, profile: ProviderProfile, same_model: SameModel) -> AssistantMessage:
    """A reply with the thinking and the signatures that its model can read, and that the server takes."""
    if profile.thinking == "none" or not same_model(message):
        return without_foreign_parts(message)
    content = each_block(message.content, _base64_signed) if profile.base64_signatures else message.content
    return _with(message, each_block(content, lambda b: None if _unusable(b, profile) else b))


def without_thinking(content: tuple[Block, ...]) -> tuple[Block, ...]:
    """Blocks without thinking."""
    return each_block(content, lambda b: None if isinstance(b, ThinkingBlock) else b)


def without_old_thinking(messages: History) -> History:
    """Thinking only in the running tool loop. A server that checks it does so there, and forgets the rest."""
    start = turn_start(messages)
    old = [_with(m, without_thinking(m.content)) if isinstance(m, AssistantMessage) else m for m in messages[:start]]
    return settled(messages, [*old, *messages[start:]])


def turn_start(messages: History) -> int:
    """Index of the message that began the running turn; 0 when there is none.

    A user message right behind tool results came while a tool loop ran, and belongs to it.
    """
    start = len(messages)
    for i in range(len(messages) - 1, -1, -1):
        if isinstance(messages[i], UserMessage):
            start = i
        elif start == i + 1 and not isinstance(messages[i], ToolResultMessage):
            return start
    return 0


def has_opaque_parts(message: AssistantMessage) -> bool:
    """Whether a reply holds what only its own model can read."""
    return any(isinstance(b, ThinkingBlock) or _unsigned(b) is not b for b in message.content)


def _with(message: AssistantMessage, content: tuple[Block, ...]) -> AssistantMessage:
    return message if content is message.content else evolve(message, content=content)


def _unusable(block: Block, profile: ProviderProfile) -> bool:
    if not isinstance(block, ThinkingBlock) or block.signature:
        return False
    return profile.signed_thinking or not block.thinking.strip()


def _unsigned(block: Block) -> Block:
    if isinstance(block, TextBlock) and block.signature is not None:
        return evolve(block, signature=None)
    if isinstance(block, ToolCall) and block.thought_signature is not None:
        return evolve(block, thought_signature=None)
    return block


def _base64_signed(block: Block) -> Block:
    match block:
        case TextBlock(signature=str(signature)) | ThinkingBlock(signature=str(signature)):
            return block if _is_base64(signature) else evolve(block, signature=None)
        case ToolCall(thought_signature=str(signature)):
            return block if _is_base64(signature) else evolve(block, thought_signature=None)
        case _:
            return block


def _is_base64(signature: str) -> bool:
    try:
        binascii.a2b_base64(signature, strict_mode=True)
    except ValueError:
        return False
    return True
