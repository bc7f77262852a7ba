"""What every request must be: the invariants of a history that goes to a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from attrs import evolve

from lamella.context.profiles import ProviderProfile
from lamella.types.message_json import dump_message
from lamella.types.messages import (
    AssistantMessage,
    ImageBlock,
    ModelMessage,
    TextBlock,
    ThinkingBlock,
    ToolResultMessage,
    UserMessage,
    blocks_of,
    text_of,
)


def check_legal(messages: Sequence[ModelMessage], rules: ProviderProfile) -> None:
    """All of them, for the profile that the history was repaired for."""
    check_pairing(messages)
    check_ids(messages, rules)
    check_replies(messages, rules)
    check_turns(messages, rules)
    check_text(messages)


def check_pairing(messages: Sequence[ModelMessage]) -> None:
    """I1: each call has exactly one result, right behind its reply, under the call's name."""
    waiting: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert waiting, "a result without a call"
            assert (message.tool_call_id, message.tool_name) == waiting.pop(0)
            continue
        assert not waiting, "a call without a result"
        if isinstance(message, AssistantMessage):
            waiting = [(c.id, c.name) for c in message.tool_calls]
    assert not waiting, "a call without a result at the end"


def check_ids(messages: Sequence[ModelMessage], rules: ProviderProfile) -> None:
    """I2: ids are unique, and such as the provider takes."""
    ids = [c.id for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls]
    assert len(ids) == len(set(ids))
    assert all(map(rules.ids.allows, ids)), ids
    if rules.ids.items:
        assert len(ids) == len({i.partition("|")[0] for i in ids})


def check_replies(messages: Sequence[ModelMessage], rules: ProviderProfile) -> None:
    """I3: every reply says or calls something, holds known blocks only, and does not end in thinking."""
    for message in messages:
        if not isinstance(message, AssistantMessage):
            continue
        assert message.tool_calls or any(isinstance(b, TextBlock) and b.text.strip() for b in message.content)
        assert not isinstance(message.content[-1], ThinkingBlock)
        assert not message.failed
        for block in message.content:
            if isinstance(block, TextBlock):
                assert block.text.strip() or (block.signature and rules.signed_blanks)
            if isinstance(block, ThinkingBlock):
                assert rules.thinking != "none"
                assert block.signature or not rules.signed_thinking


def check_turns(messages: Sequence[ModelMessage], rules: ProviderProfile) -> None:
    """I4: turns alternate and begin as the provider wants them."""
    roles = [m.role for m in messages]
    if rules.merge_turns:
        assert not any(a == b != "toolResult" for a, b in pairwise(roles)), roles
    if rules.reply_after_results:
        assert ("toolResult", "user") not in pairwise(roles)
    if rules.first_user and roles:
        assert roles[0] == "user"


def check_text(messages: Sequence[ModelMessage]) -> None:
    """I6: whatever could be sent is strict UTF-8; nothing is left that is for programs only."""
    for message in messages:
        json.dumps(dump_message(message), ensure_ascii=False, default=list).encode()
        assert getattr(message, "details", None) is None


def said_by_user(messages: Sequence[ModelMessage]) -> list[str | ImageBlock]:
    """Texts and images of user messages, in order."""
    blocks = (b for m in messages if isinstance(m, UserMessage) for b in blocks_of(m.content))
    return [b.text if isinstance(b, TextBlock) else b for b in blocks if isinstance(b, (TextBlock, ImageBlock))]


MARK = "words that nobody else says"


def marked(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    """The messages with `MARK` at the end of the newest user message, if there is one."""
    at = max((i for i, m in enumerate(messages) if isinstance(m, UserMessage)), default=None)
    if at is None:
        return tuple(messages)
    newest = evolve(messages[at], content=(*blocks_of(messages[at].content), TextBlock(MARK)))
    return (*messages[:at], newest, *messages[at + 1 :])


def check_newest(messages: Sequence[ModelMessage]) -> None:
    """I5: the marked words stand once, in a user message that only its own turn's replies and results follow."""
    assert sum(text_of(m.content, "\n").count(MARK) for m in messages) == 1
    newest = next(m for m in reversed(messages) if isinstance(m, UserMessage))
    assert MARK in text_of(newest.content, "\n")


def check_order(texts: Sequence[str], messages: Sequence[ModelMessage]) -> None:
    """All texts of the user stand in the request, in order."""
    rest = "\n".join(text_of(m.content, "\n") for m in messages if isinstance(m, UserMessage))
    for text in texts:
        before, found, rest = rest.partition(text)
        assert found == text, (text, before)
