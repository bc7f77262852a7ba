"""The order of turns: who may follow whom, and who begins."""

from __future__ import annotations

from attrs import evolve

from lamella.context.repairs.changes import History, settled
from lamella.context.repairs.thinking import has_opaque_parts
from lamella.types.messages import (
    AssistantMessage,
    Block,
    JsonObject,
    ModelMessage,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)

SESSION_START = "(session bootstrap)"
RESULTS_READ = "(tool results received)"

# A tag in `extra` that tells which messages a request message was made from (`agent.preview`).
SOURCES = "lamella.sources"


def merge_turns(messages: History) -> History:
    """Neighbouring user messages become one, and so do neighbouring replies without calls between."""
    merged: list[ModelMessage] = []
    for message in messages:
        last = merged[-1] if merged else None
        if isinstance(message, UserMessage) and isinstance(last, UserMessage):
            merged[-1] = _merged_user(last, message)
        elif isinstance(message, AssistantMessage) and isinstance(last, AssistantMessage) and not last.tool_calls:
            merged[-1] = _merged_reply(last, message)
        else:
            merged.append(message)
    return settled(messages, merged)


def _merged_user(first: UserMessage, second: UserMessage) -> UserMessage:
    blocks = _joined(blocks_of(first.content), blocks_of(second.content))
    return UserMessage(blocks, second.timestamp, join_sources(first, second))


def _merged_reply(first: AssistantMessage, second: AssistantMessage) -> AssistantMessage:
    """Both contents; the rest is the later one's where it has it.

    What came here with thinking or signatures was written by the model that gets the request, and
    must keep its name.
    """
    writer = first if has_opaque_parts(first) else second
    return evolve(
        second,
        content=(*first.content, *second.content),
        provider=writer.provider,
        model=writer.model,
        api=writer.api,
        usage=second.usage or first.usage,
        error_message=second.error_message or first.error_message,
        extra=join_sources(first, second),
    )


def _joined(first: tuple[Block, ...], second: tuple[Block, ...]) -> tuple[Block, ...]:
    """Blocks of two turns in order; texts that meet become one, with a blank line between them."""
    if first and second and isinstance(first[-1], TextBlock) and isinstance(second[0], TextBlock):
        between = evolve(second[0], text=f"{first[-1].text}\n\n{second[0].text}")
        return (*first[:-1], between, *second[1:])
    return (*first, *second)


def join_sources(first: ModelMessage, second: ModelMessage) -> JsonObject:
    """The extra fields of two messages that become one: the later ones, with both messages' sources."""
    if SOURCES not in first.extra and SOURCES not in second.extra:
        return second.extra
    both = (*first.extra.get(SOURCES, ()), *second.extra.get(SOURCES, ()))
    return {**second.extra, SOURCES: both}


def begin_with_user(messages: History) -> History:
    """A history whose first message is the user's."""
    if not messages or isinstance(messages[0], UserMessage):
        return messages
    return (UserMessage((TextBlock(SESSION_START),)), *messages)


def reply_after_results(messages: History) -> History:
    """A short reply between tool results and a user message that follows them."""
    filled: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, UserMessage) and filled and isinstance(filled[-1], ToolResultMessage):
            filled.append(AssistantMessage((TextBlock(RESULTS_READ),), timestamp=message.timestamp))
        filled.append(message)
    return settled(messages, filled)
