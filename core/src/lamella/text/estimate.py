"""How many tokens messages take, without a tokenizer.

Two estimators: `estimate_tokens`, lamella's own, which knows that a Chinese or Japanese character
costs about a whole token; and `estimate_pi`, which reproduces Pi 1.6's figures exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from attrs import define, field, frozen

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
# First bytes in UTF-8 of U+3000-U+DFFF and U+F000-U+FFFF: kana, ideographs, Hangul, full-width forms
# (and private use, whose price nobody knows).
_CJK_LEADS = frozenset((*range(0xE3, 0xEE), 0xEF))
_NOT_CJK_LEADS = bytes(b for b in range(256) if b not in _CJK_LEADS)


def estimate_text(text: str) -> int:
    """Tokens of a plain text, by lamella's estimate."""
    return math.ceil(_weight(text))


def estimate_tokens(message: Message) -> int:
    """Tokens of a message: a quarter for an ASCII character, 1.1 for a CJK one.

    Others count by their length in UTF-8: 0.4 for a Cyrillic letter or an accent, 0.55 for a Thai
    letter or a dash, 0.7 for an emoji. An image counts 1200. Tool result details and anything a
    model never sees count nothing.
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
    encoded = text.encode("utf-8", "surrogatepass")
    cjk = len(encoded.translate(None, _NOT_CJK_LEADS))
    # Bytes beyond one for each character, and beyond the two more of each CJK character. A character
    # of three or four bytes counts as so many others, less the ASCII that they stand for.
    other = len(encoded) - len(text) - 2 * cjk
    return (len(text) - cjk - other) / ASCII_PER_TOKEN + cjk * TOKENS_PER_CJK + other / OTHER_PER_TOKEN


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


@define(slots=True)
class SizeCache:
    """Sums of an estimator's figures for lists that change little from one call to the next.

    A figure is kept while its message is in the list. Messages are known by the identity of their
    content: repair makes new messages around the same content.
    """

    estimator: Estimator
    _known: dict[tuple[str, int], tuple[object, int]] = field(factory=dict, init=False, repr=False)

    def total(self, messages: Iterable[Message]) -> int:
        """The sum of all messages' estimates."""
        kept: dict[tuple[str, int], tuple[object, int]] = {}
        total = 0
        for message in messages:
            content = getattr(message, "content", message)
            key = (message.role, id(content))
            # The content is kept beside its figure, so that its id is not given to another.
            known = kept.get(key) or self._known.get(key) or (content, self.estimator(message))
            kept[key] = known
            total += known[1]
        self._known = kept
        return total


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
