"""Images for models that take none."""

from __future__ import annotations

from attrs import evolve

from lamella.types.messages import AssistantMessage, Block, ImageBlock, ModelMessage, TextBlock

IMAGE_LEFT_OUT = "(image left out: the model does not take images)"


def without_images(message: ModelMessage) -> ModelMessage:
    """The message with a note in place of its images, one for those that stand together."""
    if isinstance(message, AssistantMessage) or isinstance(message.content, str):
        return message
    if not any(isinstance(b, ImageBlock) for b in message.content):
        return message
    note = TextBlock(IMAGE_LEFT_OUT)
    kept: list[Block] = []
    for block in message.content:
        if not isinstance(block, ImageBlock):
            kept.append(block)
        elif kept[-1:] != [note]:
            kept.append(note)
    return evolve(message, content=tuple(kept))
