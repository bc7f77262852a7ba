"""Images: those that a provider takes, and notes in place of the others."""

from __future__ import annotations

import binascii
from collections.abc import Mapping

from attrs import evolve

from lamella.context.profiles import ProviderProfile
from lamella.context.repairs.changes import History, settled
from lamella.context.repairs.thinking import turn_start
from lamella.types.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    ModelMessage,
    OtherBlock,
    TextBlock,
)

IMAGE_LEFT_OUT = "(image left out: the model does not take images)"
OLD_IMAGE = "[image data removed - already processed by model]"

_OMITTED = "[session:history] omitted"
EMPTY_IMAGE = f"{_OMITTED} empty image payload"
BAD_IMAGE = f"{_OMITTED} image payload: invalid base64"

_MAGIC = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def checked_image(image: ImageBlock, profile: ProviderProfile) -> Block:
    """The image under its real MIME type, or a note that tells why it cannot go out."""
    if not image.data.strip():
        return TextBlock(EMPTY_IMAGE)
    try:
        data = binascii.a2b_base64(image.data, strict_mode=True)
    except ValueError:
        return TextBlock(BAD_IMAGE)
    if len(data) > profile.max_image:
        return TextBlock(f"{_OMITTED} image payload: {len(data)} bytes, the provider takes {profile.max_image}")
    mime_type = real_type(data) or image.mime_type
    if mime_type not in profile.image_types:
        return TextBlock(f"{_OMITTED} image payload: the provider does not take {mime_type or 'its type'}")
    return image if mime_type == image.mime_type else evolve(image, mime_type=mime_type)


def real_type(data: bytes) -> str:
    """The MIME type that the first bytes tell; empty for other formats."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for magic, mime_type in _MAGIC if data.startswith(magic)), "")


def raw_image(block: OtherBlock) -> ImageBlock | None:
    """The image in a block that lacks its type or its data; None for blocks of other kinds."""
    if not isinstance(block.raw, Mapping) or block.raw.get("type") != "image":
        return None
    data, mime_type = block.raw.get("data"), block.raw.get("mimeType")
    return ImageBlock(data if isinstance(data, str) else "", mime_type if isinstance(mime_type, str) else "")


def without_old_images(messages: History) -> History:
    """Notes in place of the images that were answered before the running turn began."""
    start = turn_start(messages)
    answered = next((i for i in range(start - 1, -1, -1) if isinstance(messages[i], AssistantMessage)), 0)
    old = [_with_notes(m, OLD_IMAGE) for m in messages[:answered]]
    return settled(messages, [*old, *messages[answered:]])


def without_images(message: ModelMessage) -> ModelMessage:
    """The message for a model that takes no images."""
    return _with_notes(message, IMAGE_LEFT_OUT)


def _with_notes(message: ModelMessage, text: str) -> ModelMessage:
    """A note in place of the message's images, one for those that stand together."""
    if isinstance(message, AssistantMessage) or isinstance(message.content, str):
        return message
    if not any(isinstance(b, ImageBlock) for b in message.content):
        return message
    note = TextBlock(text)
    kept: list[Block] = []
    for block in message.content:
        if not isinstance(block, ImageBlock):
            kept.append(block)
        elif kept[-1:] != [note]:
            kept.append(note)
    return evolve(message, content=tuple(kept))
