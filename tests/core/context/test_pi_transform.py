"""Histories as Pi sends them: what is left out, what is added, and where lamella goes another way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from lamella.context.images import IMAGE_LEFT_OUT, without_images
from lamella.context.profiles import profile
from lamella.context.repair import repair
from lamella.context.repairs.pairing import NO_RESULT
from lamella.context.repairs.thinking import written_by
from lamella.types.message_json import dump_message, parse_message

DATA = Path(__file__).parents[2] / "data" / "units"
ROWS: list[dict[str, Any]] = json.loads((DATA / "transform_messages.json").read_text(encoding="utf-8"))

# Where lamella answers otherwise (docs/decisions/0003), with what it gives: roles and first texts.
DEVIATIONS = {
    "error and aborted assistants are dropped": [
        ("user", "q"),
        ("assistant", "part"),
        ("user", "again"),
        ("assistant", "fine"),
    ],
    "aborted assistant with tool results": [("user", "q"), ("user", "go")],
}

# Pi joins turns of one role elsewhere.
PROFILE = evolve(profile("anthropic"), merge_turns=False, first_user=False, thinking="all")


def sent(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of a case as lamella would send them."""
    model = row["model"]
    messages = [parse_message(m) for m in row["messages"]]
    if "image" not in model["input"]:
        messages = [without_images(m) for m in messages]  # type: ignore[arg-type]
    made = repair(
        messages,  # type: ignore[arg-type]
        PROFILE,
        same_model=lambda m: written_by(m, model["provider"], model["id"], model["api"]),
    )
    return [dump_message(m) for m in made]


def essence(message: dict[str, Any]) -> tuple[Any, ...]:
    """Role, blocks and error flag, with lamella's wording put into Pi's."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    worded = json.dumps(blocks).replace(NO_RESULT, "No result provided")
    pictures = "tool image" if message["role"] == "toolResult" else "image"
    worded = worded.replace(IMAGE_LEFT_OUT, f"({pictures} omitted: model does not support images)")
    return message["role"], json.loads(worded), message.get("isError"), message.get("toolCallId")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["note"])
def test_requests_as_pi_makes_them(row: dict[str, Any]) -> None:
    made = sent(row)
    if row["note"] in DEVIATIONS:
        texts = [m["content"] if isinstance(m["content"], str) else m["content"][0]["text"] for m in made]
        assert list(zip((m["role"] for m in made), texts, strict=True)) == DEVIATIONS[row["note"]]
        return
    recorded = row["result"]
    wanted = recorded["1.6.0"] if isinstance(recorded.get("1.6.0"), list) else recorded["0.58.0"]
    assert [essence(m) for m in made] == [essence(m) for m in wanted]
