"""Sizes by length: the unit is a quarter of a token, which is one character of English.

Text in other scripts weighs more: a Chinese character about 4.4. How much is told from a sample, so
that measuring megabytes of old output takes no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamella.text.estimate import estimate_text
from lamella.types.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Block,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

UNITS_PER_TOKEN = 4
IMAGE_UNITS = 8000
_SAMPLE_CHARS = 128


def density(text: str) -> float:
    """Units of an average character."""
    if text.isascii():
        return 1.0
    sample = text[:: len(text) // _SAMPLE_CHARS + 1]
    return max(UNITS_PER_TOKEN * estimate_text(sample) / len(sample), 1.0)


def text_units(text: str) -> int:
    """Units of a text."""
    return len(text) if text.isascii() else int(len(text) * density(text))


def message_units(message: Message) -> int:
    """Units of a message as a model sees it; details of results and unknown messages count nothing."""
    if isinstance(message, (AssistantMessage, ToolResultMessage, UserMessage, CustomMessage)):
        return content_units(message.content)
    if isinstance(message, (CompactionSummaryMessage, BranchSummaryMessage)):
        return text_units(message.summary)
    if isinstance(message, BashExecutionMessage) and not message.exclude_from_context:
        return text_units(message.command) + text_units(message.output)
    return 0


def content_units(content: str | Sequence[Block]) -> int:
    """Units of a content field."""
    if isinstance(content, str):
        return text_units(content)
    total = 0
    for block in content:
        total += text_units(block.text) if isinstance(block, TextBlock) else _block_units(block)
    return total


def _block_units(block: Block) -> int:
    match block:
        case ThinkingBlock():
            return text_units(block.thinking)
        case ToolCall():
            return _json_units(block.arguments)
        case ImageBlock():
            return IMAGE_UNITS
        case _:
            return 0


def _json_units(value: Any) -> int:
    """About the length of a value as JSON."""
    if isinstance(value, str):
        return text_units(value) + 2
    if isinstance(value, Mapping):
        return 1 + sum(len(str(key)) + 4 + _json_units(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return 2 + sum(_json_units(item) + 1 for item in value)
    return 4
