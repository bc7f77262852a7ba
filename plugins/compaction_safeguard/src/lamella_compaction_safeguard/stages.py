"""How much one summary request may hold, and history cut into pieces of that size.

Sizes are tokens by an `Estimator`. A piece never begins with the result of a call in the piece before.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from lamella.text.conversation import convert_to_model_messages, serialize_conversation
from lamella.text.estimate import Estimator, estimate_text, estimate_tokens
from lamella.types.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from lamella_compaction_safeguard.clip import clipped

BASE_RATIO = 0.4
MIN_RATIO = 0.15
SAFETY = 1.2
OVERHEAD = 4096
_LARGE_SHARE = 0.5
_LARGE_KEPT = 2000


def text_sent(messages: Sequence[Message]) -> str:
    """These messages as a summary request shows them: results are shortened, images left out."""
    return serialize_conversation(convert_to_model_messages(messages))


def sent_tokens(message: Message) -> int:
    """Tokens of a message in a summary request."""
    return estimate_text(text_sent([message]))


def chunk_ratio(messages: Sequence[Message], window: int, estimate: Estimator = sent_tokens) -> float:
    """The part of the window that one piece may take: 0.4, less when messages are large, at least 0.15."""
    if not messages:
        return BASE_RATIO
    average = sum(map(estimate, messages)) / len(messages) * SAFETY / window
    if average <= 0.1:
        return BASE_RATIO
    return max(MIN_RATIO, BASE_RATIO - min(average * 2, BASE_RATIO - MIN_RATIO))


def chunk_tokens(messages: Sequence[Message], window: int, estimate: Estimator = sent_tokens) -> int:
    """Most tokens of one piece: its part of the window without what the request adds.

    That is 4096 tokens, or an eighth of a small window.
    """
    return max(1, int(window * chunk_ratio(messages, window, estimate)) - min(OVERHEAD, window // 8))


def chunks(
    messages: Sequence[Message], max_tokens: int, estimate: Estimator = sent_tokens
) -> list[tuple[Message, ...]]:
    """Pieces in order, each within `max_tokens` less a margin; a larger message is a piece of its own."""
    limit = int(max_tokens / SAFETY)
    pieces: list[list[Message]] = []
    size = 0
    for message in messages:
        tokens = estimate(message)
        if not pieces or (size + tokens > limit and not isinstance(message, ToolResultMessage)):
            pieces.append([])
            size = 0
        pieces[-1].append(message)
        size += tokens
    return [tuple(piece) for piece in pieces]


def split_by_share(
    messages: Sequence[Message], parts: int, estimate: Estimator = sent_tokens
) -> list[tuple[Message, ...]]:
    """At most `parts` pieces of about equal size, in order."""
    target = sum(map(estimate, messages)) / max(parts, 1)
    pieces: list[list[Message]] = [[]]
    size = 0
    for message in messages:
        tokens = estimate(message)
        if pieces[-1] and len(pieces) < parts and size + tokens > target:
            pieces.append([])
            size = 0
        pieces[-1].append(message)
        size += tokens
    return [tuple(piece) for piece in pieces if piece]


@frozen(slots=True)
class Budgeted:
    """History in two: `older` is beyond its share of the window, `newer` within it."""

    older: tuple[Message, ...]
    newer: tuple[Message, ...]


def within_share(messages: Sequence[Message], budget: int, estimate: Estimator = sent_tokens) -> Budgeted:
    """Halves are taken off the older end until what is left takes `budget` tokens or cannot be halved.

    Results go with their calls.
    """
    newer = tuple(messages)
    while sum(map(estimate, newer)) > budget:
        halves = split_by_share(newer, 2, estimate)
        if len(halves) < 2:
            break
        newer = newer[len(halves[0]) :]
        while len(newer) > 1 and isinstance(newer[0], ToolResultMessage):
            newer = newer[1:]
    return Budgeted(tuple(messages[: len(messages) - len(newer)]), newer)


@frozen(slots=True)
class Shortened:
    """Messages with the large ones shortened, and a note for each of these."""

    messages: tuple[Message, ...]
    notes: tuple[str, ...] = ()


def without_large(messages: Sequence[Message], window: int, estimate: Estimator = estimate_tokens) -> Shortened:
    """Messages that fill half of the window alone are left out but for their first 2000 characters."""
    kept: list[Message] = []
    notes: list[str] = []
    for message in messages:
        tokens = estimate(message)
        if tokens * SAFETY <= window * _LARGE_SHARE:
            kept.append(message)
            continue
        notes.append(f"[Large {message.role} (~{max(round(tokens / 1000), 1)}K tokens) omitted from summary]")
        kept.append(_beginning(message))
    return Shortened(tuple(kept), tuple(notes))


def _beginning(message: Message) -> Message:
    """The message with nothing but the beginning of its text."""
    shown = convert_to_model_messages([message])
    text = clipped("\n".join(text_of(m.content, "\n") for m in shown), _LARGE_KEPT, " [...]")
    match message:
        case AssistantMessage():
            return evolve(message, content=(TextBlock(text),))
        case ToolResultMessage():
            return evolve(message, content=text)
        case _:
            return UserMessage(text, message.timestamp)
