"""A request's messages as pydantic-ai sends them.

Imports pydantic-ai, so only adapters may import this module.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from attrs import frozen
from pydantic_ai import messages as pai

from lamella.context.images import without_images
from lamella.context.repairs.thinking import without_foreign_parts, written_by
from lamella.models.blocks import BlockMapping
from lamella.types.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    ModelMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from lamella.types.model import ModelRequest

BAD_IMAGE = "(image left out: its data is not base64)"
NO_OUTPUT = "(no output)"


@frozen(slots=True)
class Receiver:
    """Who gets the history: the names that replies carry, and pydantic-ai's name of the provider."""

    provider: str
    model: str
    api: str
    system: str
    images: bool


def to_history(request: ModelRequest, receiver: Receiver, mapping: BlockMapping) -> list[pai.ModelMessage]:
    """The whole request as messages. Neighbours of the user's side go out as one message."""
    history: list[pai.ModelMessage] = []
    pending: list[pai.ModelRequestPart] = []
    if request.system_prompt:
        pending.append(pai.SystemPromptPart(request.system_prompt))
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            reply = _reply(message, receiver, mapping)
            if reply.parts:
                if pending:
                    history.append(pai.ModelRequest(pending))
                    pending = []
                history.append(reply)
        else:
            pending.extend(_request_parts(message, receiver, mapping))
    if pending:
        history.append(pai.ModelRequest(pending))
    return history


def _request_parts(message: ModelMessage, receiver: Receiver, mapping: BlockMapping) -> list[pai.ModelRequestPart]:
    if not receiver.images:
        message = without_images(message)
    if isinstance(message, UserMessage):
        content = _user_content(blocks_of(message.content))
        return [pai.UserPromptPart(content)] if content else []
    if isinstance(message, ToolResultMessage):
        return [_result_part(message, mapping)]
    return []


def _result_part(message: ToolResultMessage, mapping: BlockMapping) -> pai.ToolReturnPart:
    content = _user_content(blocks_of(message.content))
    texts = [item for item in content if isinstance(item, str)]
    failed = message.is_error and mapping.tool_errors
    return pai.ToolReturnPart(
        tool_name=message.tool_name,
        # Text alone goes out as one string, as the tool gave it.
        content="\n".join(texts) or NO_OUTPUT if len(texts) == len(content) else content,
        tool_call_id=mapping.call_id(message.tool_call_id),
        outcome="failed" if failed else "success",
    )


def _user_content(blocks: Sequence[Block]) -> list[str | pai.BinaryContent]:
    content: list[str | pai.BinaryContent] = []
    for block in blocks:
        match block:
            case TextBlock(text=text) if text:
                content.append(text)
            case ImageBlock():
                content.append(_image(block))
            case _:
                continue
    return content


def _image(block: ImageBlock) -> str | pai.BinaryContent:
    try:
        data = base64.b64decode(block.data, validate=True)
    except binascii.Error:
        return BAD_IMAGE
    return pai.BinaryContent(data=data, media_type=block.mime_type)


def _reply(message: AssistantMessage, receiver: Receiver, mapping: BlockMapping) -> pai.ModelResponse:
    if not written_by(message, receiver.provider, receiver.model, receiver.api):
        message = without_foreign_parts(message)
    parts: list[pai.ModelResponsePart] = []
    for block in message.content:
        match block:
            case TextBlock() if block.text or block.signature:
                parts.append(mapping.text_part(block, receiver.system))
            case ThinkingBlock():
                thinking = mapping.thinking_part(block, receiver.system)
                if thinking is not None:
                    parts.append(thinking)
            case ToolCall():
                parts.append(mapping.call_part(block, receiver.system))
            case _:
                continue
    return pai.ModelResponse(parts, model_name=message.model, provider_name=receiver.system)
