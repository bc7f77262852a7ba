"""Recorded results of OpenClaw 2026.3.13 for the parts of history repair and the token estimate.

Where lamella answers otherwise on purpose, `OWN` has its answer and docs/decisions/0017 the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from lamella.context.images import without_old_images
from lamella.context.profiles import PROFILES
from lamella.context.repair import repair
from lamella.context.repairs.blocks import clean, spoken
from lamella.context.repairs.changes import History, each
from lamella.context.repairs.ids import clean_id, unique_ids
from lamella.context.repairs.pairing import NO_RESULT, pair_results
from lamella.context.repairs.responses import without_lone_items
from lamella.context.repairs.turns import merge_turns
from lamella.text.estimate import estimate_pi, estimate_tokens
from lamella.types.message_json import dump_message, parse_message
from lamella.types.messages import ModelMessage

FILE = Path(__file__).parents[2] / "data" / "context" / "history_vectors.json"
ROWS: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))

THEIR_STAND_IN = (
    "[openclaw] missing tool result in session history; inserted synthetic error result for transcript repair."
)
RULES = {"strict": PROFILES["strict"].ids, "strict9": PROFILES["mistral"].ids}


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def called(call_id: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "toolCall", "id": call_id, "name": "read", "arguments": {}}]}


def answered(call_id: str, value: str) -> dict[str, Any]:
    return {"role": "toolResult", "toolCallId": call_id, "toolName": "read", "content": [text(value)], "isError": False}


OWN: dict[tuple[str, str], Any] = {
    ("pairing.repair", "dupInSpan"): {
        "unchanged": False,
        "added": 0,
        "droppedDuplicateCount": 1,
        "droppedOrphanCount": 0,
        "messages": [called("c"), answered("c", "1")],
    },
    ("pairing.repair", "dupAcross"): {
        "unchanged": False,
        "added": 0,
        "droppedDuplicateCount": 1,
        "droppedOrphanCount": 0,
        "messages": [called("c"), answered("c", "1"), {"role": "assistant", "content": [text("k")]}],
    },
    ("pairing.repair", "sameIdReused"): {
        "unchanged": True,
        "added": 0,
        "droppedDuplicateCount": 0,
        "droppedOrphanCount": 0,
        "messages": [called("c"), answered("c", "1"), called("c"), answered("c", "2")],
    },
    ("turns.anthropic", "mergeUsersBlocks"): [{"role": "user", "content": [text("1\n\n2")]}],
    ("turns.anthropic", "mergeUsersStringsQuirk"): [{"role": "user", "content": [text("1\n\n2")]}],
    ("turns.anthropic", "danglingToolUse"): [{"role": "user", "content": [text("q")]}],
    ("thinking.drop", "mixed"): [{"role": "assistant", "content": [text("y")]}],
    ("openai.reasoning", "orphanDropped"): [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "thinkingSignature": '{"id":"rs_1","type":"reasoning"}'},
                text("ok"),
            ],
        }
    ],
}
# Failed replies go before pairing; see the whole repair for those two.
FAILED_REPLIES = {
    "errorAssistant": [{"role": "user", "content": "x"}],
    "abortedWithResult": [{"role": "user", "content": "y"}],
}


def given(row: Mapping[str, Any]) -> History:
    """The messages of a row."""
    return tuple(parse_message(m) for m in typed(row["input"]["messages"]))  # type: ignore[misc]


def typed(value: Any) -> Any:
    """With MIME types for the images of the rows, which OpenClaw does not look at."""
    return json.loads(json.dumps(value).replace('"type": "image",', '"type": "image", "mimeType": "",'))


def essence(messages: History) -> list[dict[str, Any]]:
    """What the rows look at, with lamella's wording put into OpenClaw's."""
    kept = ("role", "content", "toolCallId", "toolName", "isError")
    rows = [{k: v for k, v in dump_message(m).items() if k in kept} for m in messages]
    return json.loads(json.dumps(rows).replace(NO_RESULT, THEIR_STAND_IN))  # type: ignore[no-any-return]


def plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A recorded list in the form of `essence`: one name for a call's type and its arguments."""
    kept = ("role", "content", "toolCallId", "toolName", "isError")
    rows = json.dumps([{k: v for k, v in m.items() if k in kept} for m in messages])
    rows = rows.replace('"type": "toolUse"', '"type": "toolCall"').replace('"input": {}', '"arguments": {}')
    return json.loads(rows)  # type: ignore[no-any-return]


def cleaned(messages: History, name: str = "anthropic", tools: tuple[str, ...] = ()) -> History:
    """The step that looks at single messages, for a profile."""

    def change(message: ModelMessage) -> ModelMessage | None:
        return spoken(clean(message, PROFILES[name], lambda _m: True, frozenset(tools)))

    return each(messages, change)


def pairing(row: Mapping[str, Any]) -> dict[str, Any]:
    found = pair_results(given(row))
    return {
        "unchanged": found.messages == given(row),
        "added": found.added,
        "droppedDuplicateCount": found.duplicates,
        "droppedOrphanCount": found.orphans,
        "messages": essence(found.messages),
    }


def images(row: Mapping[str, Any]) -> dict[str, Any]:
    messages = given(row)
    pruned = without_old_images(messages)
    shown = json.dumps(essence(pruned)).replace(', "mimeType": ""', "")
    return {"mutated": pruned is not messages, "messages": json.loads(shown)}


def items(row: Mapping[str, Any]) -> Any:
    messages = given(row)
    found = without_lone_items(messages)
    return {"unchanged": True} if found is messages else essence(found)


ANSWERS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "toolCallId.sanitize": lambda row: clean_id(row["input"]["id"], RULES[row["input"]["mode"]]),
    "toolCallId.rewrite": lambda row: essence(
        unique_ids(pair_results(given(row)).messages, RULES[row["input"]["mode"]])
    ),
    "toolCalls.sanitize": lambda row: essence(
        cleaned(given(row), tools=tuple(row["input"].get("allowedToolNames", ())))
    ),
    "pairing.repair": pairing,
    "turns.anthropic": lambda row: essence(merge_turns(cleaned(given(row)))),
    "turns.gemini": lambda row: essence(merge_turns(given(row))),
    "thinking.drop": lambda row: essence(cleaned(given(row), "strict")),
    "openai.pairs": items,
    "openai.reasoning": lambda row: essence(cleaned(given(row), "openai-responses")),
    "images.pruneProcessed": images,
    "tokens.estimate": lambda row: estimate_pi(parse_message(typed(row["input"]["message"]))),
}


def recorded(row: Mapping[str, Any]) -> Any:
    """The recorded output in the form of the answers; results in the order of their calls."""
    output = row["output"]
    if row["group"] == "toolCallId.rewrite":
        order = [b["id"] for b in output[0]["content"]]
        output = [output[0], *sorted(output[1:], key=lambda m: order.index(m["toolCallId"]))]
    if isinstance(output, list):
        return plain(output)
    if isinstance(output, dict) and "messages" in output:
        return {**output, "messages": plain(output["messages"])}
    return output


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['group']}-{row['name'][:30]}")
def test_recorded_results(row: dict[str, Any]) -> None:
    if row["name"] in FAILED_REPLIES:
        whole = repair(given(row), PROFILES["lenient"], same_model=lambda _m: True)
        assert essence(whole) == FAILED_REPLIES[row["name"]]
        return
    wanted = recorded(row)
    own = OWN.get((row["group"], row["name"]))
    assert own != wanted, "no deviation any more: take the row out of OWN"
    assert ANSWERS[row["group"]](row) == (wanted if own is None else own)


def test_every_deviation_is_a_row() -> None:
    assert OWN.keys() <= {(row["group"], row["name"]) for row in ROWS}


def test_a_reused_id_becomes_two() -> None:
    (row,) = (r for r in ROWS if r["name"] == "sameIdReused")
    out = repair(given(row), PROFILES["lenient"], same_model=lambda _m: True)
    first, second = (m["toolCallId"] for m in essence(out) if m["role"] == "toolResult")
    assert first == "c"
    assert second.startswith("c") and second != "c"


def test_chinese_costs_more_than_the_recorded_estimate() -> None:
    (row,) = (r for r in ROWS if r["group"] == "tokens.estimate" and r["name"] == "cjk")
    assert (row["output"], estimate_tokens(parse_message(row["input"]["message"]))) == (1, 5)
