"""Streaming a reply that is known as a whole, with the steps of a real stream."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from lamella.errors import ModelAborted, ModelError
from lamella.text.javascript import js_json
from lamella.types.messages import (
    AssistantMessage,
    Block,
    TextBlock,
    ThinkingBlock,
    ToolCall,
)
from lamella.types.model import Delta, DeltaType, Done, StreamEvent

Steps = tuple[DeltaType, DeltaType, DeltaType]
TEXT_STEPS: Steps = ("text_start", "text_delta", "text_end")
THINKING_STEPS: Steps = ("thinking_start", "thinking_delta", "thinking_end")
CALL_STEPS: Steps = ("toolcall_start", "toolcall_delta", "toolcall_end")


def stream_whole(
    reply: AssistantMessage, error: ModelError | None = None, *, cut_in_block: int | None = None
) -> Iterator[StreamEvent]:
    """`start`, three steps for each block (the whole block as one delta), then `Done`.

    With `cut_in_block` the stream breaks off when that block (from 0) has just begun.
    """
    announced = None if isinstance(error, ModelAborted) else reply.error_message
    running = evolve(reply, content=(), stop_reason="stop", error_message=announced)
    yield Delta("start", running)
    for index, block in enumerate(reply.content):
        running = evolve(running, content=(*running.content, block))
        (begin, grow, end), text = _steps(block)
        yield Delta(begin, running, index)
        if index == cut_in_block:
            yield Done(evolve(reply, content=running.content), error)
            return
        yield Delta(grow, running, index, text)
        yield Delta(end, running, index)
    yield Done(reply, error)


def _steps(block: Block) -> tuple[Steps, str]:
    match block:
        case TextBlock():
            return TEXT_STEPS, block.text
        case ThinkingBlock():
            return THINKING_STEPS, block.thinking
        case ToolCall():
            return CALL_STEPS, js_json(block.arguments)
        case _:
            raise TypeError(f"a reply cannot hold a {type(block).__name__}")
