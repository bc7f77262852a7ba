"""Edge cases of history repair: one test for each numbered row of the list of edge cases, part B.

B49 to B57 are about the history limit and stand with it. Where a row tells what OpenClaw gives and
lamella does otherwise on purpose, docs/decisions/0017 has the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from attrs import evolve, frozen
from builders import assistant, call, result, transcript, usage, user, write_lines

from lamella.context.images import BAD_IMAGE, EMPTY_IMAGE, OLD_IMAGE
from lamella.context.profiles import PROFILES
from lamella.context.repair import repair
from lamella.context.repairs.blocks import EMPTY_MESSAGE
from lamella.context.repairs.ids import clean_id, unique_ids
from lamella.context.repairs.pairing import NO_RESULT, pair_results
from lamella.context.repairs.responses import is_reasoning_item
from lamella.context.repairs.turns import merge_turns
from lamella.sessions.transcript import SessionFile
from lamella.text.conversation import serialize_conversation
from lamella.text.estimate import estimate_context, estimate_tokens
from lamella.types.message_json import parse_message
from lamella.types.messages import (
    AssistantMessage,
    ImageBlock,
    ModelMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    blocks_of,
    text_of,
)

STRICT, NINE = PROFILES["strict"].ids, PROFILES["mistral"].ids
PNG = "iVBORw0KGgo="
RS = '{"id":"rs_1","type":"reasoning"}'


def mended(messages: Sequence[ModelMessage], name: str = "lenient", **options: Any) -> list[ModelMessage]:
    return list(repair(tuple(messages), PROFILES[name], same_model=lambda _m: True, **options))


def raw(*blocks: Any, role: str = "assistant", **fields: Any) -> ModelMessage:
    return parse_message({"role": role, "content": list(blocks), **fields})  # type: ignore[return-value]


def shape(messages: Sequence[ModelMessage]) -> list[str]:
    """Each message in a word: its role's letter and its blocks."""
    return [message.role[0] + ":" + " ".join(map(_word, blocks_of(message.content))) for message in messages]


def _word(block: Any) -> str:
    match block:
        case TextBlock():
            return block.text
        case ThinkingBlock():
            return f"({block.thinking})"
        case ToolCall():
            return f"{block.name}#{block.id}"
        case _:
            return f"[{block.mime_type}]"


@frozen
class Row:
    """A row: what comes in, for which profile, and what goes out."""

    number: str
    messages: Sequence[ModelMessage]
    expected: list[str]
    profile: str = "lenient"
    tools: tuple[str, ...] = ()


def spawn(**arguments: Any) -> ModelMessage:
    return raw({"type": "toolCall", "id": "a", "name": "sessions_spawn", "arguments": arguments})


def image(data: str, mime_type: str = "image/png") -> UserMessage:
    return UserMessage((ImageBlock(data, mime_type),))


USE = {"type": "toolUse", "id": "1", "name": "x"}

ROWS = [
    Row("B1", [assistant("", call("a")), user("x"), result("a", "A")], ["a:demo#a", "t:A", "u:x"]),
    Row("B2", [assistant("", call("a"))], ["a:demo#a", f"t:{NO_RESULT}"]),
    Row("B3", [assistant("", call("a")), result("a", "1"), result("a", "2")], ["a:demo#a", "t:1"]),
    Row(
        "B4", [assistant("", call("a")), result("a", "1"), assistant("k"), result("a", "2")], ["a:demo#a", "t:1", "a:k"]
    ),
    Row("B5", [result("a", "1"), user("q"), assistant("k")], ["u:q", "a:k"]),
    Row("B6", [assistant("", call("a"), stop_reason="error"), user("q")], ["u:q"]),
    Row("B7", [assistant("said", call("a"), stop_reason="aborted"), result("a"), user("q")], ["a:said", "u:q"]),
    Row("B11", [raw({"type": "toolCall", "id": "a", "name": "read"}), user("q")], ["u:q"]),
    Row("B12", [assistant("", call("a")), result("a", "A")], ["a:demo#a", "t:A"]),
    Row(
        "B13",
        [assistant("t", call("a", "n" * 65), call("b", "a b"), call("c", "a.b")), result("b"), user("q")],
        ["a:t", "u:q"],
    ),
    Row("B14", [assistant("", call("a", " read ")), result("a", "A", " read ")], ["a:read#a", "t:A"]),
    Row("B15", [assistant("", call("a", "READ")), result("a", "A")], ["a:READ#a", "t:A"], tools=("read",)),
    Row("B15-unknown", [assistant("t", call("a", "write")), result("a", "A")], ["a:t"], tools=("read",)),
    Row("B16", [assistant("", call("a", "any")), result("a", "A")], ["a:any#a", "t:A"], tools=()),
    Row(
        "B19",
        [
            user("q"),
            assistant("", call("call_a|b"), call("call_ab"), call("callab")),
            result("callab", "3"),
            result("call_ab", "2"),
            result("call_a|b", "1"),
        ],
        ["u:q", "a:demo#callab demo#callab2594389b demo#callaba4b42f05", "t:1", "t:2", "t:3"],
        "strict",
    ),
    Row(
        "B22",
        [user("q"), assistant("", call("x" * 60)), result("x" * 60, "A")],
        ["u:q", f"a:demo#{'x' * 40}", "t:A"],
        "strict",
    ),
    Row("B26", [UserMessage("one"), UserMessage("two")], ["u:one\n\ntwo"], "anthropic"),
    Row(
        "B28", [user("p"), raw({**USE, "input": {}}), user("q")], ["u:p", "a:x#1", f"t:{NO_RESULT}", "u:q"], "anthropic"
    ),
    Row("B28-no-input", [user("p"), raw(USE), user("q")], ["u:p\n\nq"], "anthropic"),
    Row("B29", [user("p"), raw({"type": "text", "text": "t"}, USE), user("q")], ["u:p", "a:t", "u:q"], "anthropic"),
    Row("B30", [assistant("hello"), user("q")], ["u:(session bootstrap)", "a:hello", "u:q"], "gemini"),
    Row("B31", [user("p"), raw({"type": "thinking", "thinking": "hm"}), user("q")], ["u:p\n\nq"], "strict"),
    Row(
        "B34",
        [user("p"), AssistantMessage((ThinkingBlock("", RS),)), user("q")],
        ["u:p", "u:q"],
        "openai-responses",
    ),
    Row(
        "B35",
        [AssistantMessage((ThinkingBlock("", RS), call("call|fc_1"))), result("call|fc_1", "A")],
        ["a:() demo#call|fc_1", "t:A"],
        "openai-responses",
    ),
    Row(
        "B36", [assistant("", call("call|fc_1")), result("call|fc_1", "A")], ["a:demo#call", "t:A"], "openai-responses"
    ),
    Row("B40", [image(" ")], [f"u:{EMPTY_IMAGE}"]),
    Row("B40-missing", [raw({"type": "image"}, role="user")], [f"u:{EMPTY_IMAGE}"]),
    Row("B41", [image("not base64!")], [f"u:{BAD_IMAGE}"]),
    Row("B42", [image(PNG, "image/jpeg")], ["u:[image/png]"]),
    Row("B42-untyped", [raw({"type": "image", "data": PNG}, role="user")], ["u:[image/png]"]),
    Row(
        "B43", [image(PNG), assistant("seen"), image("/9j/")], [f"u:{OLD_IMAGE}", "a:seen", "u:[image/jpeg]"], "strict"
    ),
    Row("B43-cached", [image(PNG), assistant("seen"), user("q")], ["u:[image/png]", "a:seen", "u:q"], "anthropic"),
    Row("B44", [image(PNG), user("q")], ["u:[image/png] q"], "strict"),
    Row("B45", [user("p"), assistant(" "), user("q")], ["u:p\n\nq"], "anthropic"),
    Row("B57", [result("a"), user("q"), assistant("k")], ["u:q", "a:k"]),
    Row("empty-user", [user(" ")], [f"u:{EMPTY_MESSAGE}"]),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_rows(row: Row) -> None:
    once = mended(row.messages, row.profile, tools=row.tools)
    assert shape(once) == row.expected
    assert mended(once, row.profile, tools=row.tools) == once


# --- rows that look at more than texts and ids -----------------------------------------------------------


def test_b2_the_stand_in_is_an_error_of_the_called_tool() -> None:
    stand_in = mended([assistant("", call("a", "read"))])[1]
    assert isinstance(stand_in, ToolResultMessage)
    assert (stand_in.is_error, stand_in.tool_name, stand_in.tool_call_id) == (True, "read", "a")


def test_b3_b4_b5_results_that_are_left_out_are_counted() -> None:
    paired = pair_results([result("z"), assistant("", call("a"), call("b")), result("a"), result("a")])
    assert (paired.added, paired.duplicates, paired.orphans) == (1, 1, 1)


def test_b8_a_result_without_a_name_gets_that_of_its_call() -> None:
    out = mended([assistant("", call("a", "read")), result("a", name="  ")])
    assert isinstance(out[1], ToolResultMessage)
    assert out[1].tool_name == "read"


def test_b9_an_id_that_is_used_again_becomes_two() -> None:
    turn = [assistant("", call("call_1")), result("call_1", "1")]
    out = mended([*turn, assistant("", call("call_1")), result("call_1", "2")])
    assert [text_of(m.content) for m in out if m.role == "toolResult"] == ["1", "2"]
    assert len({m.tool_call_id for m in out if isinstance(m, ToolResultMessage)}) == 2


@pytest.mark.parametrize("name", PROFILES)
def test_b10_b32_a_clean_history_is_the_very_same_object(name: str) -> None:
    clean = (user("a"), assistant("", call("abcdefgh1")), result("abcdefgh1"), assistant("d"), user("e"))
    assert repair(clean, PROFILES[name], same_model=lambda _m: True) is clean


def test_b17_contents_of_attachments_are_redacted() -> None:
    attachment = {"name": "f", "mimeType": "text/plain", "content": "SECRET"}
    out = mended([spawn(task="t", attachments=[attachment])])
    assert isinstance(out[0], AssistantMessage)
    wanted = {"task": "t", "attachments": [{**attachment, "content": "__OPENCLAW_REDACTED__"}]}
    assert out[0].tool_calls[0].arguments == wanted
    assert attachment["content"] == "SECRET"


@pytest.mark.parametrize(
    ("number", "given", "strict", "nine"),
    [
        ("B18", "call_abc|fc_123", "callabcfc123", "callabcfc"),
        ("B20", "___", "sanitizedtoolid", "44d8b78be"),
        ("B21", "", "defaulttoolid", "defaultid"),
        ("B23", "call", "call", clean_id("call", NINE)),
    ],
)
def test_b18_to_b23_ids(number: str, given: str, strict: str, nine: str) -> None:
    assert (clean_id(given, STRICT), clean_id(given, NINE)) == (strict, nine)
    assert len(nine) == 9 and nine.isalnum()


def test_b23_short_ids_are_the_same_in_every_request() -> None:
    history = [assistant("", call("ab12")), result("ab12")]
    assert mended(history, "mistral") == mended(history, "mistral")
    assert len(unique_ids(history, NINE)[1].tool_call_id) == 9  # type: ignore[union-attr]


def test_b24_replies_merge_and_the_later_numbers_count() -> None:
    first, second = assistant("1", usage=usage(1)), assistant("2", usage=usage(2), stop_reason="length")
    (merged,) = merge_turns([first, second])
    assert isinstance(merged, AssistantMessage)
    assert (text_of(merged.content, "|"), merged.usage, merged.stop_reason) == ("1|2", usage(2), "length")
    (kept,) = merge_turns([first, evolve(second, usage=None)])
    assert isinstance(kept, AssistantMessage)
    assert kept.usage == usage(1)


def test_b25_user_blocks_merge_in_order_and_the_later_time_counts() -> None:
    picture = ImageBlock(PNG, "image/png")
    first, second = UserMessage((TextBlock("1"), picture), 5), UserMessage((TextBlock("2"),), 9)
    assert merge_turns([first, second]) == (UserMessage((TextBlock("1"), picture, TextBlock("2")), 9),)


def test_b27_a_result_between_users_keeps_them_apart() -> None:
    history = (user("a"), result("x"), user("b"))
    assert merge_turns(history) is history


def test_b30_a_second_pass_adds_nothing() -> None:
    once = repair((assistant("hello"), user("q")), PROFILES["gemini"], same_model=lambda _m: True)
    assert repair(once, PROFILES["gemini"], same_model=lambda _m: True) is once


def test_b33_foreign_signatures_are_no_reasoning_items() -> None:
    foreign = AssistantMessage((ThinkingBlock("hm", "EqQB+anthropic=="), TextBlock("so"), call("call|fc_1")))
    assert not any(map(is_reasoning_item, foreign.content))
    out = repair((foreign, result("call|fc_1")), PROFILES["openai-responses"], same_model=lambda _m: False)
    assert shape(out) == ["a:so demo#call", "t:done"]  # lamella leaves another model's thinking out


def provenance(**fields: Any) -> dict[str, Any]:
    return {"provenance": {"kind": "inter_session", "sourceSessionKey": "agent:b:main", "sourceTool": "send", **fields}}


MARK = "[Inter-session message] sourceSession=agent:b:main sourceTool=send\n"


@pytest.mark.parametrize(
    ("number", "content", "fields", "expected"),
    [
        ("B37", (ImageBlock(PNG, "image/png"),), provenance(), [MARK, "image"]),
        ("B37-text", "hi", provenance(), [MARK + "hi"]),
        ("B37-blank", (TextBlock("hi"),), provenance(sourceTool=" "), [MARK.replace(" sourceTool=send", "") + "hi"]),
        ("B39", "hi", provenance(kind="rumour"), ["hi"]),
        ("B39-shape", "hi", {"provenance": "inter_session"}, ["hi"]),
    ],
)
def test_b37_b39_provenance(number: str, content: Any, fields: Any, expected: list[str]) -> None:
    (message,) = mended([UserMessage(content, extra=fields)])
    assert [getattr(b, "text", "image") for b in blocks_of(message.content)] == expected


def test_b38_the_mark_is_put_once() -> None:
    once = mended([UserMessage((TextBlock("hi"),), extra=provenance())])
    assert mended(once) == once
    assert text_of(once[0].content).count("[Inter-session message]") == 1


def test_b46_details_reach_no_model() -> None:
    big = evolve(result("a", "A"), details={"log": "x" * 5_000_000})
    out = mended([assistant("", call("a")), big])
    assert isinstance(out[1], ToolResultMessage)
    assert out[1].details is None
    assert "xxx" not in serialize_conversation([big])
    assert estimate_tokens(big) == estimate_tokens(out[1])


def test_b47_replies_without_usage_are_estimated() -> None:
    assert estimate_context([user("q"), assistant("a")]).tokens == 2


async def test_b58_words_without_an_answer_are_sent_once_with_the_next_prompt(tmp_path: Path) -> None:
    model = scripted([{"throwBeforeStart": "gone"}, "both answered"])
    agent = open_agent(tmp_path, model)
    await agent.ask("first")
    await agent.ask("second")
    texts = "\n".join(text_of(m.content) for m in model.requests[-1].messages if isinstance(m, UserMessage))
    assert (texts.count("first"), texts.count("second")) == (1, 1)
    assert texts.index("first") < texts.index("second")


# --- rows about the transcript's file -------------------------------------------------------------------------


def read_back(path: Path) -> list[str]:
    return [text_of(m.content) for m in SessionFile.open(path).context().messages if isinstance(m, UserMessage)]


def torn(data: bytes) -> bytes:
    return data[:-20]


def windows(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def damaged(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:2], lines[2][:-30] + b"\n", *lines[3:]])


@pytest.mark.parametrize(
    ("number", "change", "expected"),
    [
        ("B59", torn, ["one", "two", "three"]),
        ("B61", damaged, ["one", "three", "four"]),
        ("B62", windows, ["one", "two", "three", "four"]),
    ],
)
def test_b59_to_b62_damaged_files(
    tmp_path: Path, number: str, change: Callable[[bytes], bytes], expected: list[str]
) -> None:
    path = write_lines(tmp_path / "s.jsonl", transcript(["one", "two", "three", "four"]))
    path.write_bytes(change(path.read_bytes()))
    before = path.read_bytes()
    assert read_back(path) == expected
    assert path.read_bytes() == before


def test_b60_a_file_that_is_no_transcript_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"type": "other"}) + "\n", encoding="utf-8")
    before = path.read_bytes()
    SessionFile.open(path)
    assert path.read_bytes() == before
