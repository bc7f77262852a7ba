"""History made legal for a provider: pure functions, applied to every request after every cut.

Nothing a user said is ever dropped. What does not pair is mended: calls without results get an
error result, results without calls go, a late real result wins over a made-up one. Applying the
repair twice gives the same as once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from attrs import evolve

from lamella.context.profiles import ProviderProfile
from lamella.types.messages import (
    AssistantMessage,
    Block,
    JsonObject,
    ModelMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)

NO_RESULT = "No result was recorded for this tool call."
CONVERSATION_GOES_ON = "(The conversation continues.)"


def repair(
    messages: Sequence[ModelMessage], profile: ProviderProfile, *, same_model: Callable[[AssistantMessage], bool]
) -> tuple[ModelMessage, ...]:
    """A legal request history. `same_model` tells whose thinking and signatures may go back."""
    kept = drop_failed(messages)
    kept = [_own_thinking(m, profile, same_model) if isinstance(m, AssistantMessage) else m for m in kept]
    kept = pair_results(kept)
    kept = unique_ids(kept, profile)
    kept = [m for m in kept if not _is_empty(m)]
    if profile.merge_turns:
        kept = merge_turns(kept)
    if profile.first_user and kept and not isinstance(kept[0], UserMessage):
        kept = [UserMessage((TextBlock(CONVERSATION_GOES_ON),)), *kept]
    return tuple(kept)


def drop_failed(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Failed and aborted replies out, with the results of their calls; said text of an abort stays."""
    kept: list[ModelMessage] = []
    for message in messages:
        if not isinstance(message, AssistantMessage) or not message.failed:
            kept.append(message)
            continue
        said = tuple(b for b in message.content if isinstance(b, TextBlock) and b.text.strip())
        if message.stop_reason == "aborted" and said:
            kept.append(evolve(message, content=said, stop_reason="stop", error_message=None, usage=None))
    return kept


def _own_thinking(
    message: AssistantMessage, profile: ProviderProfile, same_model: Callable[[AssistantMessage], bool]
) -> AssistantMessage:
    """Blocks without what only another model could read."""
    if not (same_model(message) and profile.thinking):
        return without_foreign_parts(message)
    content = tuple(b for b in message.content if not _blank_thinking(b))
    return message if content == message.content else evolve(message, content=content)


def written_by(message: AssistantMessage, provider: str, model: str, api: str) -> bool:
    """Whether exactly this model, over this wire format, wrote a reply."""
    return (message.provider, message.model, message.api) == (provider, model, api)


def without_foreign_parts(message: AssistantMessage) -> AssistantMessage:
    """A reply for another model than the one that wrote it: no thinking, no signatures."""
    content = tuple(_unsigned(b) for b in message.content if not isinstance(b, ThinkingBlock))
    return message if content == message.content else evolve(message, content=content)


def _blank_thinking(block: Block) -> bool:
    return isinstance(block, ThinkingBlock) and not block.signature and not block.thinking.strip()


def _unsigned(block: Block) -> Block:
    if isinstance(block, TextBlock) and block.signature is not None:
        return evolve(block, signature=None)
    if isinstance(block, ToolCall) and block.thought_signature is not None:
        return evolve(block, thought_signature=None)
    return block


def pair_results(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Every call directly followed by exactly one result, in call order; results without calls out.

    A result belongs to the nearest earlier call with its id that has none yet.
    """
    answers = _match(messages)
    paired: list[ModelMessage] = []
    for position, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            continue
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            paired.append(message)
            continue
        calls = [c for c in message.content if isinstance(c, ToolCall)]
        content = tuple(b for b in message.content if not isinstance(b, ToolCall) or b.name.strip())
        paired.append(message if content == message.content else evolve(message, content=content))
        for index, call in enumerate(calls):
            if not call.name.strip():
                continue
            answer = answers.get((position, index))
            paired.append(answer if answer is not None else missing_result(call, message))
    return paired


def missing_result(call: ToolCall, message: AssistantMessage) -> ToolResultMessage:
    """The error result that stands in for one that was never recorded."""
    return ToolResultMessage(call.id, call.name, (TextBlock(NO_RESULT),), True, timestamp=message.timestamp)


def _match(messages: Sequence[ModelMessage]) -> dict[tuple[int, int], ToolResultMessage]:
    """(message position, call index) to its result."""
    open_calls: dict[str, list[tuple[int, int, str]]] = {}
    answers: dict[tuple[int, int], ToolResultMessage] = {}
    closed: dict[str, tuple[int, int]] = {}
    for position, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            for index, call in enumerate(c for c in message.content if isinstance(c, ToolCall)):
                open_calls.setdefault(call.id, []).append((position, index, call.name))
        elif isinstance(message, ToolResultMessage):
            waiting = open_calls.get(message.tool_call_id)
            if waiting:
                # Calls of one reply are answered in order; an older unanswered one stays unanswered.
                newest = waiting[-1][0]
                at = next(i for i, w in enumerate(waiting) if w[0] == newest)
                where_position, where_index, name = waiting.pop(at)
                answers[where_position, where_index] = evolve(message, tool_name=message.tool_name or name)
                closed[message.tool_call_id] = (where_position, where_index)
            elif message.tool_call_id in closed and is_missing_result(answers[closed[message.tool_call_id]]):
                answers[closed[message.tool_call_id]] = message  # the real result came late
    return answers


def is_missing_result(message: ToolResultMessage) -> bool:
    """Whether a result is a stand-in, ours or Pi's."""
    texts = [b.text for b in blocks_of(message.content) if isinstance(b, TextBlock)]
    return message.is_error and texts in ([NO_RESULT], ["No result provided"])


def unique_ids(messages: Sequence[ModelMessage], profile: ProviderProfile) -> list[ModelMessage]:
    """Call ids that are unique in the request and within the provider's limits; pairs keep matching.

    Expects paired messages: results stand behind the reply that holds their calls.
    """
    used: set[str] = set()
    renamed: list[ModelMessage] = []
    pending: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            pending = []
            content: list[Block] = []
            for block in message.content:
                if isinstance(block, ToolCall):
                    new_id = _fresh_id(block.id, used, profile)
                    used.add(new_id)
                    pending.append(new_id)
                    block = block if new_id == block.id else evolve(block, id=new_id)
                content.append(block)
            renamed.append(message if tuple(content) == message.content else evolve(message, content=tuple(content)))
        elif isinstance(message, ToolResultMessage) and pending:
            new_id = pending.pop(0)
            renamed.append(message if new_id == message.tool_call_id else evolve(message, tool_call_id=new_id))
        else:
            renamed.append(message)
    return renamed


def _fresh_id(raw: str, used: set[str], profile: ProviderProfile) -> str:
    base = raw.strip() or "call"
    if profile.id_alphabet is not None:
        keep = "" if profile.exact_id is not None else "_"
        base = re.sub(f"[^{profile.id_alphabet}]", keep, base) or "call"
    if profile.exact_id is not None:
        return _exact_id(base, used, profile.exact_id)
    limit = profile.max_id or len(base) + 16
    candidate = base[:limit]
    number = 2
    while candidate in used:
        suffix = f"_{number}"
        candidate = base[: limit - len(suffix)] + suffix
        number += 1
    return candidate


def _exact_id(base: str, used: set[str], length: int) -> str:
    candidate = base if len(base) == length else ""
    number = 0
    while not candidate or candidate in used:
        digits = str(number)
        candidate = (base + "0" * length)[: length - len(digits)] + digits
        number += 1
    return candidate


def _is_empty(message: ModelMessage) -> bool:
    """A reply without calls and without anything said."""
    if not isinstance(message, AssistantMessage):
        return False
    return not any(
        isinstance(b, ToolCall)
        or (isinstance(b, ThinkingBlock) and (b.thinking.strip() or b.signature))
        or (isinstance(b, TextBlock) and b.text.strip())
        for b in message.content
    )


# A tag in `extra` that tells which messages a request message was made from (`agent.preview`).
SOURCES = "lamella.sources"


def join_sources(first: ModelMessage, second: ModelMessage) -> JsonObject:
    """The extra fields of two messages that become one: the later ones, with both messages' sources."""
    if SOURCES not in first.extra and SOURCES not in second.extra:
        return second.extra
    both = (*first.extra.get(SOURCES, ()), *second.extra.get(SOURCES, ()))
    return {**second.extra, SOURCES: both}


def merge_turns(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Neighbouring user messages become one, and so do neighbouring replies without calls."""
    merged: list[ModelMessage] = []
    for message in messages:
        last = merged[-1] if merged else None
        if isinstance(message, UserMessage) and isinstance(last, UserMessage):
            blocks = _joined(blocks_of(last.content), blocks_of(message.content))
            merged[-1] = UserMessage(blocks, message.timestamp, join_sources(last, message))
        elif isinstance(message, AssistantMessage) and isinstance(last, AssistantMessage) and not last.tool_calls:
            content = (*last.content, *message.content)
            merged[-1] = evolve(message, content=content, extra=join_sources(last, message))
        else:
            merged.append(message)
    return merged


def _joined(first: tuple[Block, ...], second: tuple[Block, ...]) -> tuple[Block, ...]:
    """Blocks of two turns in order; texts that meet become one, with a blank line between them."""
    if first and second and isinstance(first[-1], TextBlock) and isinstance(second[0], TextBlock):
        between = evolve(second[0], text=f"{first[-1].text}\n\n{second[0].text}")
        return (*first[:-1], between, *second[1:])
    return (*first, *second)
