"""How many tokens messages take, without a tokenizer.

Two estimators: `estimate_tokens`, lamella's own, which knows that a Chinese or Japanese character
costs about a whole token; and `estimate_pi`, which reproduces Pi 1.6's figures exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from attrs import frozen

from lamella.text.javascript import js_json, utf16_length
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
    Usage,
    UserMessage,
)

Estimator: TypeAlias = Callable[[Message], int]

IMAGE_TOKENS = 1200
ASCII_PER_TOKEN = 4.0
TOKENS_PER_CJK = 1.1
OTHER_PER_TOKEN = 2.5

_PI_CHARS_PER_TOKEN = 4
_CJK_RUN = re.compile(
    "["
    "\u1100-\u11ff"  # Hangul letters
    "\u2e80-\u2fdf\u3000-\u30ff\u3100-\u31ff"  # radicals, CJK punctuation, kana, Bopomofo
    "\u3200-\u9fff"  # enclosed forms, unified ideographs with extension A
    "\uac00-\ud7af"  # Hangul syllables
    "\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"  # compatibility and full-width forms
    "\U00020000-\U0003ffff"  # further ideographs
    "]+"
)


def estimate_text(text: str) -> int:
    """Tokens of a plain text, by lamella's estimate."""
    return math.ceil(_weight(text))


def estimate_tokens(message: Message) -> int:
    """Tokens of a message: a quarter for an ASCII character, 1.1 for a CJK one, 0.4 for others.

    An image counts 1200. Tool result details and anything a model never sees count nothing.
    """
    texts, images = _parts(message)
    return math.ceil(sum(map(_weight, texts))) + IMAGE_TOKENS * images


def estimate_pi(message: Message) -> int:
    """Tokens of a message as Pi 1.6 counts them: UTF-16 units divided by four, rounded up."""
    texts, images = _parts(message)
    units = sum(map(utf16_length, texts)) + images * IMAGE_TOKENS * _PI_CHARS_PER_TOKEN
    return -(-units // _PI_CHARS_PER_TOKEN)


ESTIMATORS: Mapping[str, Estimator] = MappingProxyType({"lamella": estimate_tokens, "pi": estimate_pi})


def _weight(text: str) -> float:
    if text.isascii():
        return len(text) / ASCII_PER_TOKEN
    ascii_count = len(text.encode("ascii", "ignore"))
    cjk_count = sum(map(len, _CJK_RUN.findall(text)))
    other_count = len(text) - ascii_count - cjk_count
    return ascii_count / ASCII_PER_TOKEN + cjk_count * TOKENS_PER_CJK + other_count / OTHER_PER_TOKEN


def _parts(message: Message) -> tuple[list[str], int]:
    """What of a message reaches a model: its texts, and the number of images."""
    match message:
        case UserMessage() | ToolResultMessage() | CustomMessage():
            return _content_parts(message.content)
        case AssistantMessage():
            return [part for block in message.content for part in _assistant_texts(block)], 0
        case BashExecutionMessage():
            return [message.command, message.output], 0
        case BranchSummaryMessage() | CompactionSummaryMessage():
            return [message.summary], 0
        case _:
            return [], 0


def _content_parts(content: str | tuple[Block, ...]) -> tuple[list[str], int]:
    if isinstance(content, str):
        return [content], 0
    texts = [block.text for block in content if isinstance(block, TextBlock)]
    return texts, sum(isinstance(block, ImageBlock) for block in content)


def _assistant_texts(block: Block) -> tuple[str, ...]:
    match block:
        case TextBlock():
            return (block.text,)
        case ThinkingBlock():
            return (block.thinking,)
        case ToolCall():
            return (block.name, js_json(block.arguments))
        case _:
            return ()


# --- a whole context -------------------------------------------------------------------------------


@frozen(slots=True)
class ContextEstimate:
    """Size of a context in tokens.

    `usage_tokens` is what the provider reported with the reply at `last_usage_index`,
    `trailing_tokens` the estimate of everything after it. Without a report, the index is None and
    everything is estimated.
    """

    tokens: int
    usage_tokens: int
    trailing_tokens: int
    last_usage_index: int | None


def usable_usage(message: Message) -> Usage | None:
    """The usage of a reply that ended by itself and reported more than zero tokens, else None."""
    if not isinstance(message, AssistantMessage) or message.failed or message.usage is None:
        return None
    return message.usage if message.usage.context_tokens > 0 else None


def estimate_context(
    messages: Sequence[Message], estimator: Estimator = estimate_tokens, *, usable_from: int = 0
) -> ContextEstimate:
    """The last reported usage plus an estimate of what came after it.

    Usage from before a compaction is too high for the context after it: reports of messages before
    index `usable_from` do not count.
    """
    for index in range(len(messages) - 1, usable_from - 1, -1):
        usage = usable_usage(messages[index])
        if usage is not None:
            trailing = sum(map(estimator, messages[index + 1 :]))
            return ContextEstimate(usage.context_tokens + trailing, usage.context_tokens, trailing, index)
    total = sum(map(estimator, messages))
    return ContextEstimate(total, 0, total, None)


def should_compact(tokens: int, window: int, reserve: int, enabled: bool = True) -> bool:
    """Whether `tokens` leave less than `reserve` free in a window of `window` tokens."""
    return enabled and tokens > window - reserve
