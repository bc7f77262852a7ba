"""History repair: reported faults, and what each step does, through `repair` and its steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from attrs import evolve
from builders import CASES, assistant, call, result, usage, user
from legal import check_legal, check_order, said_by_user

from lamella.context.images import OLD_IMAGE
from lamella.context.profiles import PROFILES, ProviderProfile, profile, profile_for
from lamella.context.repair import repair
from lamella.context.repairs.calls import callable_names
from lamella.context.repairs.pairing import NO_RESULT
from lamella.context.repairs.responses import is_reasoning_item
from lamella.errors import UsageError
from lamella.sessions.transcript import SessionFile
from lamella.text.conversation import convert_to_model_messages
from lamella.types.message_json import parse_message
from lamella.types.messages import (
    AssistantMessage,
    ImageBlock,
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
from lamella.types.tools import Tool

every_profile = pytest.mark.parametrize("rules", list(PROFILES.values()), ids=list(PROFILES))

DOCS = Path(__file__).parents[3] / "docs"
PNG = "iVBORw0KGgo="


def mended(
    messages: Sequence[Message], rules: ProviderProfile | str = "anthropic", *, same: bool = True, tools: Any = ()
) -> list[ModelMessage]:
    rules = profile(rules) if isinstance(rules, str) else rules
    return list(repair(convert_to_model_messages(messages), rules, same_model=lambda _m: same, tools=tools))


def shape(messages: Sequence[ModelMessage]) -> list[tuple[str, str]]:
    return [(m.role, text_of(m.content, "\n\n")) for m in messages]


# --- reported faults -----------------------------------------------------------------------------------


def case(name: str) -> list[Message]:
    """The messages of a case, a list or the context of a transcript."""
    file = CASES / name / "messages.json"
    if file.exists():
        return [parse_message(m) for m in json.loads(file.read_text(encoding="utf-8"))]
    (transcript,) = (CASES / name).glob("*.jsonl")
    return list(SessionFile.open(transcript).context().messages)


@every_profile
@pytest.mark.parametrize("name", ["K21", "K22", "K23", "K24", "K25", "K26", "K31"])
def test_reported_faults(name: str, rules: ProviderProfile) -> None:
    messages = convert_to_model_messages(case(name))
    out = mended(messages, rules)
    check_legal(out, rules)
    check_order([t for t in said_by_user(messages) if isinstance(t, str)], out)
    assert [b for b in said_by_user(out) if not isinstance(b, str)] == [
        b for b in said_by_user(messages) if not isinstance(b, str)
    ]
    assert out[-1].role == "user"


@every_profile
def test_k22_open_calls_get_one_error_each_however_often(rules: ProviderProfile) -> None:
    history: list[Any] = case("K22")
    for round_number in range(5):
        out = mended(history, rules)
        results = [m for m in out if isinstance(m, ToolResultMessage)]
        assert [text_of(r.content) for r in results] == [NO_RESULT, "tank 2: 80 percent", NO_RESULT]
        assert [r.is_error for r in results] == [True, False, True]
        history = [*history, assistant(f"reply {round_number}"), user("Any news?")]


@every_profile
def test_k23_the_late_real_result_wins(rules: ProviderProfile) -> None:
    out = mended(case("K23"), rules)
    texts = [text_of(m.content) for m in out if isinstance(m, ToolResultMessage)]
    assert texts[:2] == ["g1 = 23", "g2 = 17"]
    assert texts[2].startswith("tool says: ")
    assert len(texts) == 3


@every_profile
def test_k24_repeated_ids_keep_their_results(rules: ProviderProfile) -> None:
    out = mended(case("K24"), rules)
    assert out == mended(case("K24"), rules)
    arguments = {c.id: c.arguments for m in out if isinstance(m, AssistantMessage) for c in m.tool_calls}
    pairs = {
        text_of(m.content): next(iter(arguments[m.tool_call_id].values()))
        for m in out
        if isinstance(m, ToolResultMessage)
    }
    assert pairs["one"] == "1"
    assert pairs["two"] == "2"
    assert (pairs["first edit"], pairs["second edit"]) == (1, 2)


def test_k24_unique_ids_stay_where_nothing_limits_them() -> None:
    ids = ["read:0", "call|x", "é" * 90]
    history = [user("q"), assistant("", *map(call, ids)), *map(result, ids)]
    out = mended(history, "lenient")
    assert [c.id for c in out[1].tool_calls] == ids  # type: ignore[union-attr]


# --- pairing --------------------------------------------------------------------------------------------


def test_calls_without_results_get_an_error_result() -> None:
    out = mended([user("q"), assistant("", call("a"), call("b")), result("b", "B"), user("next")])
    assert [getattr(m, "tool_call_id", m.role) for m in out] == ["user", "assistant", "a", "b", "user"]
    assert (text_of(out[2].content), text_of(out[3].content)) == (NO_RESULT, "B")


@pytest.mark.parametrize(
    "stand_in",
    [
        result("a", NO_RESULT, is_error=True),
        result("a", "No result provided", is_error=True),
        evolve(result("a", "some program's own words", is_error=True), details={"synthetic": True}),
    ],
)
def test_a_late_real_result_wins_over_any_stand_in(stand_in: ToolResultMessage) -> None:
    out = mended([user("q"), assistant("", call("a")), stand_in, user("hm"), result("a", "real")])
    assert [text_of(m.content) for m in out if m.role == "toolResult"] == ["real"]


def test_a_real_result_stays_when_a_stand_in_comes_late() -> None:
    out = mended([user("q"), assistant("", call("a")), result("a", "real"), result("a", NO_RESULT, is_error=True)])
    assert [text_of(m.content) for m in out if m.role == "toolResult"] == ["real"]


def test_a_tool_that_quotes_the_stand_in_is_believed() -> None:
    history = [user("q"), assistant("", call("a")), result("a", NO_RESULT), result("a", "second")]
    assert [text_of(m.content) for m in mended(history) if m.role == "toolResult"] == [NO_RESULT]


def test_a_result_goes_to_the_newest_call_with_its_id() -> None:
    history = [user("q"), assistant("", call("x", n=1)), user("hm"), assistant("", call("x", n=2)), result("x", "two")]
    out = mended(history, "lenient")
    assert [text_of(m.content) for m in out if m.role == "toolResult"] == [NO_RESULT, "two"]


def test_failed_replies_go_with_their_calls_and_aborted_words_stay() -> None:
    history = [
        user("q"),
        assistant("half an answer", call("a"), stop_reason="aborted"),
        result("a"),
        assistant("", stop_reason="error", error_message="overloaded"),
        user("again"),
    ]
    assert shape(mended(history, "lenient")) == [("user", "q"), ("assistant", "half an answer"), ("user", "again")]


# --- thinking and signatures -------------------------------------------------------------------------------


def thinker(*blocks: Any) -> AssistantMessage:
    return AssistantMessage(blocks, "p", "m", "x", stop_reason="toolUse")


def test_thinking_of_another_model_is_left_out() -> None:
    message = thinker(ThinkingBlock("hm", "sig"), TextBlock("so", "tsig"), ToolCall("c", "t", {}, "gsig"))
    same = mended([user("q"), message, result("c", name="t")], same=True)
    other = mended([user("q"), message, result("c", name="t")], same=False)
    assert same[1].content == message.content
    assert other[1].content == (TextBlock("so"), ToolCall("c", "t", {}))


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("anthropic", False, True), ("openai-chat", True, True), ("gemini", True, True), ("strict", False, False)],
)
def test_thinking_stays_through_the_running_loop(name: str, first: bool, second: bool) -> None:
    history = [
        user("one"),
        thinker(ThinkingBlock("old", "c2ln"), call("a")),
        result("a"),
        assistant("done"),
        user("two"),
        thinker(ThinkingBlock("new", "c2ln"), call("b")),
        result("b"),
        user("steered while the loop ran"),
    ]
    kept = [b.thinking for m in mended(history, name) for b in blocks_of(m.content) if isinstance(b, ThinkingBlock)]
    assert kept == ["old"] * first + ["new"] * second


def test_what_a_server_would_refuse_of_thinking_is_left_out() -> None:
    message = thinker(ThinkingBlock("cut off before it was signed"), TextBlock("so"), ThinkingBlock("last", "sig"))
    assert mended([user("q"), message], "anthropic")[1].content == (TextBlock("so"),)
    foreign = thinker(ThinkingBlock("hm", "not base64!"), ToolCall("c", "t", {}, "no!"), ToolCall("d", "t", {}, "eWVz"))
    out = mended([user("q"), foreign], "gemini")[1].content
    assert out == (ThinkingBlock("hm"), ToolCall("c", "t", {}), ToolCall("d", "t", {}, "eWVz"))


# --- calls ---------------------------------------------------------------------------------------------------


@every_profile
def test_a_blank_text_goes_back_for_its_signature_where_servers_sign_such(rules: ProviderProfile) -> None:
    signed = TextBlock(" ", "c2ln")
    (_, reply) = mended([user("hi"), AssistantMessage((signed, TextBlock("word")))], rules)
    assert reply.content == ((signed, TextBlock("word")) if rules.name == "gemini" else (TextBlock("word"),))


def test_a_signature_that_nests_deeply_is_no_reasoning_item() -> None:
    assert not is_reasoning_item(ThinkingBlock("hm", '{"a": ' + "[" * 100_000))


def test_new_calls_get_the_name_of_the_tool_that_is_meant() -> None:
    names = ["read", " read ", "Read", "functions.read", "tools/Write", "no such tool!", "x" * 70]
    reply = assistant("", *(call(f"c{i}", name) for i, name in enumerate(names)))
    found = [c.name for c in callable_names(reply, ["read", "write"]).tool_calls]
    assert found == ["read", "read", "read", "read", "write", "no_such_tool_", "x" * 64]


def test_new_calls_without_an_id_get_one_and_right_ones_stay() -> None:
    reply = assistant("", call("", "read"), call("b", "read"), call(" ", "read"))
    assert [c.id for c in callable_names(reply, ["read"]).tool_calls] == ["call_auto_1", "b", "call_auto_3"]
    right = assistant("text", call("b", "read"), call("c", "Unknown"))
    assert callable_names(right, ["read"]) is right


async def test_a_tool_under_another_name_runs_and_an_unknown_one_is_answered(tmp_path: Path) -> None:
    step = {"content": [{"type": "toolCall", "id": f"c{i}", "name": n, "arguments": {}} for i, n in enumerate(CALLED)]}
    model = scripted([step, "done"])
    tool = Tool("demo", "A demo.", {"type": "object"}, lambda _arguments, _context: "ran")
    await open_agent(tmp_path, model, tools=[tool]).ask("go")
    results = [m for m in model.requests[1].messages if isinstance(m, ToolResultMessage)]
    assert [text_of(r.content) for r in results] == ["ran", "ran", "Tool no_such_one not found"]


CALLED = ["functions.demo", "Demo", "no such.one"]


def test_ambiguous_names_are_not_guessed() -> None:
    reply = assistant("", call("a", "READ"))
    assert callable_names(reply, ["Read", "read"]) is reply


# --- images ----------------------------------------------------------------------------------------------------


def shown(image: ImageBlock, rules: ProviderProfile | str = "anthropic") -> Any:
    (message,) = mended([UserMessage((TextBlock("look"), image))], rules)
    assert not isinstance(message.content, str)
    return message.content[1]


def test_images_that_are_too_large_or_of_a_strange_type_become_a_note() -> None:
    small = evolve(profile("anthropic"), max_image=4)
    assert "8 bytes, the provider takes 4" in shown(ImageBlock(PNG, "image/png"), small).text
    assert "does not take image/bmp" in shown(ImageBlock("Qk0AAA==", "image/bmp")).text
    assert "does not take image/gif" in shown(ImageBlock("R0lGODlh", "image/gif"), "gemini").text


def test_old_images_stay_where_servers_cache_prefixes() -> None:
    image = ImageBlock(PNG, "image/png")
    asked = UserMessage((image,))
    screenshot = evolve(result("a"), content=(image,))
    history = [asked, assistant("seen"), user("more"), assistant("", call("a")), screenshot]
    for name, rules in PROFILES.items():
        blocks = [b for m in mended(history, rules) for b in blocks_of(m.content)]
        assert (TextBlock(OLD_IMAGE) in blocks) is (name == "strict")
        assert blocks.count(image) == (1 if name == "strict" else 2)  # that of the running turn always stays


# --- whose turn it is --------------------------------------------------------------------------------------------


def test_a_history_that_begins_with_a_reply_gets_a_user_turn() -> None:
    out = mended([assistant("hello"), user("q")], "anthropic")
    assert [m.role for m in out] == ["user", "assistant", "user"]


def test_mistral_gets_a_reply_between_results_and_a_user_message() -> None:
    out = mended([user("q"), assistant("", call("a")), result("a"), user("stop")], "mistral")
    assert [m.role for m in out] == ["user", "assistant", "toolResult", "assistant", "user"]


def test_a_user_message_without_words_stays_a_turn() -> None:
    out = mended([user("q"), assistant("a"), UserMessage(" \n")], "anthropic")
    assert shape(out)[-1] == ("user", "(empty message)")


@every_profile
def test_a_legal_history_comes_back_as_the_same_object(rules: ProviderProfile) -> None:
    history = (
        user("q"),
        assistant("look", call("abcdefgh1"), usage=usage(5)),
        result("abcdefgh1"),
        assistant("done"),
        user("more"),
    )
    assert repair(history, rules, same_model=lambda _m: True) is history


def test_unknown_profiles_are_named() -> None:
    with pytest.raises(UsageError, match=r"'antropic' \(did you mean anthropic\?\)"):
        profile("antropic")


def test_the_profile_follows_the_provider_before_the_format() -> None:
    assert profile_for("mistral", "openai-completions").name == "mistral"
    assert profile_for("deepseek", "openai-completions").name == "openai-chat"
    assert profile_for("me", "scripted").name == "lenient"


def test_the_profiles_in_the_docs_are_the_profiles() -> None:
    page = (DOCS / "explanation" / "history.md").read_text(encoding="utf-8")
    rows = {cells[1].strip(" `"): cells for line in page.splitlines() if len(cells := line.split("|")) == 7}
    for name, rules in PROFILES.items():
        ids, turns, images = rows[name][2], rows[name][3], rows[name][5]
        assert str(rules.ids.longest or "any") in ids
        assert ("alternate" in turns) is rules.merge_turns
        assert ("user first" in turns) is rules.first_user
        assert ("a reply behind results" in turns) is rules.reply_after_results
        assert f"{rules.max_image // 1024**2} MiB" in images
        assert ("a note for those of earlier turns" in images) is not rules.old_images
