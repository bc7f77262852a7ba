"""OpenAI's Responses: a call's item may only be named behind the reasoning item that it came with."""

from __future__ import annotations

import json

from attrs import evolve

from lamella.context.repairs.changes import History, each_block, settled
from lamella.types.messages import (
    AssistantMessage,
    Block,
    ModelMessage,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
)

_ITEM = "fc_"


def without_lone_items(messages: History) -> History:
    """Calls `call|fc_...` without reasoning before them in their reply become `call`, with their results."""
    changed: list[ModelMessage] = []
    shorter: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            shorter = {}
            content = _downgraded(message.content, shorter)
            changed.append(message if content is message.content else evolve(message, content=content))
        elif isinstance(message, ToolResultMessage) and message.tool_call_id in shorter:
            changed.append(evolve(message, tool_call_id=shorter[message.tool_call_id]))
        else:
            changed.append(message)
    return settled(messages, changed)


def is_reasoning_item(block: Block) -> bool:
    """Whether a block holds a reasoning item that the server knows: JSON with an id `rs_...`."""
    if not isinstance(block, ThinkingBlock) or not block.signature or not block.signature.startswith("{"):
        return False
    try:
        item = json.loads(block.signature)
    except (ValueError, RecursionError):
        return False  # another provider's signature
    kind, item_id = item.get("type"), item.get("id")
    is_reasoning = isinstance(kind, str) and (kind == "reasoning" or kind.startswith("reasoning."))
    return is_reasoning and isinstance(item_id, str) and item_id.startswith("rs_")


def _downgraded(content: tuple[Block, ...], shorter: dict[str, str]) -> tuple[Block, ...]:
    reasoned = False

    def change(block: Block) -> Block:
        nonlocal reasoned
        reasoned = reasoned or is_reasoning_item(block)
        if reasoned or not isinstance(block, ToolCall):
            return block
        call, _, item = block.id.partition("|")
        if not item.startswith(_ITEM):
            return block
        shorter[block.id] = call
        return evolve(block, id=call)

    return each_block(content, change)
