"""History repair: legal for every profile, nothing of the user's lost, the same when done twice."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from builders import CASES, assistant, call, result, user
from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.context.profiles import PROFILES, ProviderProfile, profile
from lamella.context.repair import NO_RESULT, repair
from lamella.errors import UsageError
from lamella.text.conversation import convert_to_model_messages
from lamella.types.message_json import parse_message
from lamella.types.messages import (
    AssistantMessage,
    Message,
    ModelMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    blocks_of,
    text_of,
)

every_profile = pytest.mark.parametrize("rules", list(PROFILES.values()), ids=list(PROFILES))


def mended(
    messages: Sequence[Message], rules: ProviderProfile | str = "anthropic", *, same: bool = True
) -> list[ModelMessage]:
    rules = profile(rules) if isinstance(rules, str) else rules
    return list(repair(convert_to_model_messages(messages), rules, same_model=lambda _m: same))


def case(name: str) -> list[Message]:
    data = json.loads((CASES / name / "messages.json").read_text(encoding="utf-8"))
    return [parse_message(m) for m in data]


def check_legal(messages: Sequence[ModelMessage], rules: ProviderProfile) -> None:
    """I1 pairing, I2 unique ids, I3 no empty reply, I4 alternation."""
    waiting: list[str] = []
    ids: list[str] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            assert waiting, "a result without a call"
            assert message.tool_call_id == waiting.pop(0)
            continue
        assert not waiting, "a call without a result"
        if isinstance(message, AssistantMessage):
            said = any(isinstance(b, TextBlock) and b.text.strip() for b in message.content)
            thought = any(isinstance(b, ThinkingBlock) for b in message.content)
            assert said or thought or message.tool_calls
            waiting = [c.id for c in message.tool_calls]
            ids += waiting
    assert not waiting
    assert len(ids) == len(set(ids))
    if rules.id_alphabet is not None:
        limit = rules.exact_id or rules.max_id
        assert all(re.fullmatch(f"[{rules.id_alphabet}]+", i) and len(i) <= (limit or 999) for i in ids)
    if rules.exact_id:
        assert all(len(i) == rules.exact_id for i in ids)
    if rules.merge_turns:
        roles = [m.role for m in messages]
        assert not any(a == b == "user" for a, b in pairwise(roles))
    if rules.first_user and messages:
        assert messages[0].role == "user"


@every_profile
@pytest.mark.parametrize("name", ["K25", "K26", "K31"])
def test_reported_faults(name: str, rules: ProviderProfile) -> None:
    messages = case(name)
    out = mended(messages, rules)
    check_legal(out, rules)
    said = "\n".join(text_of(m.content, "\n") for m in out if isinstance(m, UserMessage))
    for message in messages:
        if isinstance(message, UserMessage):
            for block in blocks_of(message.content):
                if isinstance(block, TextBlock):
                    assert said.count(block.text) >= 1, block.text
    images = sum(not isinstance(b, TextBlock) for m in messages if m.role == "user" for b in blocks_of(m.content))
    kept = sum(not isinstance(b, TextBlock) for m in out if isinstance(m, UserMessage) for b in blocks_of(m.content))
    assert kept == images


def test_calls_without_results_get_an_error_result() -> None:
    out = mended([user("q"), assistant("", call("a"), call("b")), result("b", "B"), user("next")])
    assert [(m.role, getattr(m, "tool_call_id", "")) for m in out] == [
        ("user", ""),
        ("assistant", ""),
        ("toolResult", "a"),
        ("toolResult", "b"),
        ("user", ""),
    ]
    assert (text_of(out[2].content), text_of(out[3].content)) == (NO_RESULT, "B")


def test_a_late_real_result_wins_over_a_stand_in() -> None:
    stand_in = result("a", "No result provided", is_error=True)
    out = mended([user("q"), assistant("", call("a")), stand_in, user("hm"), result("a", "real")])
    assert [text_of(m.content) for m in out if m.role == "toolResult"] == ["real"]


def test_repeated_ids_become_unique_and_keep_their_results() -> None:
    history = [
        user("q"),
        assistant("", call("x", n=1), call("x", n=2)),
        result("x", "one"),
        result("x", "two"),
        assistant("", call("x", n=3)),
        result("x", "three"),
    ]
    out = mended(history, "lenient")
    check_legal(out, profile("lenient"))
    by_id = {c.id: c.arguments["n"] for m in out if isinstance(m, AssistantMessage) for c in m.tool_calls}
    results = {m.tool_call_id: text_of(m.content) for m in out if isinstance(m, ToolResultMessage)}
    assert {by_id[i]: t for i, t in results.items()} == {1: "one", 2: "two", 3: "three"}


def test_failed_replies_go_with_their_calls_and_aborted_words_stay() -> None:
    out = mended(
        [
            user("q"),
            assistant("half an answer", call("a"), stop_reason="aborted"),
            result("a"),
            assistant("", stop_reason="error", error_message="overloaded"),
            user("again"),
        ],
        "lenient",
    )
    assert [(m.role, text_of(m.content)) for m in out] == [
        ("user", "q"),
        ("assistant", "half an answer"),
        ("user", "again"),
    ]


def test_thinking_of_another_model_is_left_out() -> None:
    message = AssistantMessage(
        (ThinkingBlock("hm", "sig"), TextBlock("so", "tsig"), ToolCall("c", "t", {}, "gsig")), "p", "m", "x"
    )
    same = mended([user("q"), message, result("c")], same=True)
    other = mended([user("q"), message, result("c")], same=False)
    assert same[1].content == message.content
    assert other[1].content == (TextBlock("so"), ToolCall("c", "t", {}))


def test_a_history_that_begins_with_a_reply_gets_a_user_turn() -> None:
    out = mended([assistant("hello"), user("q")], "anthropic")
    assert [m.role for m in out] == ["user", "assistant", "user"]


def test_unknown_profiles_are_named() -> None:
    with pytest.raises(UsageError, match=r"'antropic' \(did you mean anthropic\?\)"):
        profile("antropic")


# --- invariants -----------------------------------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "call|fc_1", "x" * 70, "", "ü!"])


def blocks() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.sampled_from(["", " ", "text"]).map(TextBlock),
        st.builds(ThinkingBlock, st.sampled_from(["", "hm"]), st.sampled_from([None, "sig"])),
        st.builds(ToolCall, IDS, st.sampled_from(["t", "", "u"]), st.just({})),
    )


def messages() -> st.SearchStrategy[ModelMessage]:
    return st.one_of(
        st.builds(UserMessage, st.one_of(st.text("ab ", max_size=4), st.just((TextBlock("u"),)))),
        st.builds(
            AssistantMessage,
            st.lists(blocks(), max_size=4).map(tuple),
            stop_reason=st.sampled_from(["stop", "toolUse", "error", "aborted"]),
        ),
        st.builds(ToolResultMessage, IDS, st.just("t"), st.just((TextBlock("r"),))),
    )


@settings(max_examples=300, deadline=None)
@given(history=st.lists(messages(), max_size=12), name=st.sampled_from(sorted(PROFILES)), same=st.booleans())
def test_any_history_becomes_legal_and_stays_so(history: list[ModelMessage], name: str, same: bool) -> None:
    rules = profile(name)
    before = repr(history)
    once = mended(history, rules, same=same)
    check_legal(once, rules)
    assert mended(once, rules, same=same) == once
    assert repr(history) == before
    assert_in_order([b.text for m in history if isinstance(m, UserMessage) for b in blocks_of(m.content)], once)


def assert_in_order(texts: list[Any], messages: Sequence[ModelMessage]) -> None:
    """All texts of the user stand in the request, in order."""
    rest = "\n".join(text_of(m.content, "\n") for m in messages if isinstance(m, UserMessage))
    for text in texts:
        before, found, rest = rest.partition(text)
        assert found == text, (text, before)
