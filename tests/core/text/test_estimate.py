from __future__ import annotations

import json

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from pi_units import cases, newest

from lamella.text.estimate import (
    ESTIMATORS,
    SizeCache,
    estimate_context,
    estimate_pi,
    estimate_text,
    estimate_tokens,
    should_compact,
)
from lamella.text.javascript import cut_utf16, js_json, js_number, utf16_length, utf16_sorted
from lamella.types.message_json import parse_message, parse_usage
from lamella.types.messages import (
    AssistantMessage,
    ImageBlock,
    OtherMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)


@pytest.mark.parametrize("case", cases("estimate_tokens"), ids=lambda c: json.dumps(c["message"])[:60])
def test_pi_estimate_equals_pi(case):
    assert estimate_pi(parse_message(case["message"])) == newest(case["tokens"])


@pytest.mark.parametrize("case", cases("estimate_context"))
def test_context_estimate_equals_pi(case):
    estimate = estimate_context([parse_message(m) for m in case["messages"]], estimate_pi)
    assert {
        "tokens": estimate.tokens,
        "usageTokens": estimate.usage_tokens,
        "trailingTokens": estimate.trailing_tokens,
        "lastUsageIndex": estimate.last_usage_index,
    } == newest(case["estimate"])


@pytest.mark.parametrize("case", cases("context_tokens"))
def test_usage_context_tokens_equal_pi(case):
    usage = parse_usage(case["usage"])
    assert usage is not None
    assert usage.context_tokens == newest(case["tokens"])


@pytest.mark.parametrize("case", cases("should_compact"))
def test_should_compact_equals_pi(case):
    settings = case["settings"]
    assert should_compact(
        case["contextTokens"], case["contextWindow"], settings["reserveTokens"], settings["enabled"]
    ) == newest(case["result"])


def test_usage_of_a_failed_reply_is_not_trusted():
    reply = AssistantMessage((TextBlock("cut off"),), usage=Usage(total_tokens=900), stop_reason="aborted")
    estimate = estimate_context([UserMessage("question"), reply])
    assert estimate.last_usage_index is None
    assert estimate.tokens == estimate_tokens(UserMessage("question")) + estimate_tokens(reply)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcdefgh", 2),
        ("漢字かな交じり", 8),
        ("한국어", 4),
        ("héé", 2),
        ("中文 mixed", 4),
        ("🎉🎉", 2),
        ("สวัสดี", 4),
        ("привет", 3),
        ("\ud83c", 2),
    ],
)
def test_own_estimate_weighs_scripts_differently(text, tokens):
    assert estimate_text(text) == tokens
    assert estimate_tokens(UserMessage(text)) == tokens


def test_own_estimate_counts_images_calls_and_nothing_hidden():
    image = ImageBlock("A" * 100_000, "image/png")
    assert estimate_tokens(UserMessage((TextBlock("abcd"), image))) == 1201
    assert estimate_tokens(ToolResultMessage("1", "shot", (image, image), details={"big": "x" * 999})) == 2400
    call = AssistantMessage((ToolCall("1", "read", {"path": "notes/今天.md"}),))
    assert estimate_tokens(call) > estimate_tokens(AssistantMessage((ToolCall("1", "read", {}),)))
    assert estimate_tokens(OtherMessage({"role": "mystery", "content": "z" * 50})) == 0


def test_figures_are_kept_while_the_same_contents_are_in_the_list():
    asked = []

    def estimator(message):
        asked.append(message.role)
        return 10

    sizes = SizeCache(estimator)
    prompt, answer = UserMessage((TextBlock("q"),)), ToolResultMessage("1", "read", (TextBlock("r"),), details={"a": 1})
    assert sizes.total([prompt, answer]) == 20
    assert sizes.total([prompt, evolve(answer, details=None), prompt]) == 30
    assert asked == ["user", "toolResult"]
    assert sizes.total([]) == 0
    assert sizes.total([prompt]) == 10  # forgotten meanwhile
    assert asked == ["user", "toolResult", "user"]


def test_estimators_are_found_by_name():
    assert ESTIMATORS["lamella"] is estimate_tokens
    assert ESTIMATORS["pi"] is estimate_pi


@given(st.text(), st.text())
def test_estimates_never_shrink_when_text_is_added(first, second):
    assert estimate_text(first + second) >= estimate_text(first)


# --- JavaScript's view of text and JSON ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (1.5, "1.5"),
        (-12.25, "-12.25"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1.5e300, "1.5e+300"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.25e-9, "1.25e-9"),
        (2**53 + 1, "9007199254740992"),
        (123456789012345678901234567890, "1.2345678901234568e+29"),
        (10**400, "null"),
        (float("nan"), "null"),
        (float("inf"), "null"),
    ],
)
def test_numbers_print_as_in_javascript(value, text):
    assert js_number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"b":1,"a":[true,null,"x"]}'),
        ({"b": 1, "10": 2, "9": 3, "01": 4}, '{"9":3,"10":2,"b":1,"01":4}'),
        ({"4294967295": 1, "1": 2}, '{"1":2,"4294967295":1}'),
        ("é漢🎉", '"é漢🎉"'),
        ("\ud83c", '"\\ud83c"'),
        ('a"\\\n\x01\x7f\u2028', '"a\\"\\\\\\n\\u0001\x7f\u2028"'),
        ((1, 2), "[1,2]"),
    ],
)
def test_json_prints_as_in_javascript(value, text):
    assert js_json(value) == text


def test_json_refuses_other_objects():
    with pytest.raises(TypeError, match="set"):
        js_json({"a": {1, 2}})


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c), max_leaves=8))
def test_json_can_be_read_back(value):
    assert json.loads(js_json(value), parse_int=float) == _as_javascript_reads(value)


def _as_javascript_reads(value):
    if isinstance(value, list):
        return [_as_javascript_reads(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@given(st.text(), st.integers(0, 30))
def test_cut_keeps_whole_characters_within_the_limit(text, units):
    kept = cut_utf16(text, units)
    assert text.startswith(kept)
    assert utf16_length(kept) <= units
    assert kept == text or utf16_length(text[: len(kept) + 1]) > units


def test_sorting_by_utf16_units_puts_astral_characters_before_private_use():
    assert utf16_sorted(["\uf000", "🎉", "a"]) == ["a", "🎉", "\uf000"]
