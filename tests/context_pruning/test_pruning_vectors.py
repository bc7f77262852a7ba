"""Recorded results of OpenClaw 2026.3.13 for pruning, making requests fit, and limits of results.

Where lamella answers otherwise on purpose, `OWN` says so, and docs/decisions/0021 has the reason.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from openclaw_vectors import messages, recorded
from pruning import from_openclaw, settings

from lamella.config.structure import structure
from lamella.types.message_json import dump_message
from lamella.types.messages import OtherMessage, ToolResultMessage
from lamella_context_pruning import Config
from lamella_context_pruning.draft import Draft
from lamella_context_pruning.fit import fit
from lamella_context_pruning.globs import allowed
from lamella_context_pruning.persist import shortened, stored_limit
from lamella_context_pruning.prune import prune

ROWS = recorded("pruning.json")
KEPT = ("role", "content", "toolCallId", "toolName", "isError")


def rows(group: str) -> list[Any]:
    return [pytest.param(r, id=r["name"]) for r in ROWS if r["group"] == group]


def essence(found: Any) -> list[dict[str, Any]]:
    """What the rows look at, with long texts as they give them."""
    return [hashed({k: v for k, v in dump_message(m).items() if k in KEPT}) for m in found]


def hashed(value: Any) -> Any:
    """A value with the length and hash of its long texts in their place; recorded ones as they are."""
    if isinstance(value, str):
        return value if len(value) <= 400 else (len(value), hashlib.sha256(value.encode()).hexdigest())
    if isinstance(value, list):
        return [hashed(v) for v in value]
    if isinstance(value, dict):
        if "$len" in value:
            return (value["$len"], value["$sha256"])
        return {k: hashed(v) for k, v in value.items() if k != "timestamp"}
    return value


@pytest.mark.parametrize("row", rows("pruning.prune"))
def test_pruning_is_that_of_openclaw(row: dict[str, Any]) -> None:
    given = messages(row["input"]["messages"])
    before = list(given)
    draft = Draft(given)
    replaced = prune(draft, row["input"]["contextWindowTokens"], from_openclaw(row["input"]["settings"]))
    assert (draft.messages is given) == row["output"]["unchanged"]
    assert bool(replaced) != row["output"]["unchanged"]
    assert essence(draft.messages) == hashed(row["output"]["messages"])
    assert given == before


@pytest.mark.parametrize("row", rows("pruning.globs"))
def test_patterns_are_those_of_openclaw(row: dict[str, Any]) -> None:
    match = row["input"]["match"]
    found = {n: allowed(n, match.get("allow", ()), match.get("deny", ())) for n in row["input"]["names"]}
    assert found == row["output"]


# Without a section OpenClaw is off; installing lamella's plugin turns it on. What OpenClaw replaces
# in silence, lamella calls a mistake.
MISTAKES = {
    '{"mode":"cache-ttl","ttl":"bad"}': {"ttl"},
    "clamped": {"keep_last_assistants", "soft_trim_ratio", "hard_clear_ratio", "soft_trim.max_chars"},
}


@pytest.mark.parametrize("row", rows("pruning.settings"))
def test_settings_are_those_of_openclaw_or_mistakes(row: dict[str, Any]) -> None:
    raw = row["input"]["raw"] or {}
    names = {
        "mode": "mode",
        "ttl": "ttl",
        "keepLastAssistants": "keep_last_assistants",
        "softTrimRatio": "soft_trim_ratio",
        "hardClearRatio": "hard_clear_ratio",
        "hardClear": "hard_clear",
        "softTrim": "soft_trim",
    }
    section = {names[k]: v for k, v in raw.items()}
    if "softTrim" in raw:
        section["soft_trim"] = {"max_chars": raw["softTrim"]["maxChars"]}
    config, problems = structure(Config, section)
    mistakes = MISTAKES["clamped"] if len(raw) > 3 else MISTAKES.get(row["name"], set())
    assert {p.path for p in problems} == mistakes
    if not mistakes:
        assert config is not None
        assert config.mode == raw.get("mode", "cache-ttl")
        if row["output"]:
            assert config == from_openclaw(row["output"])
            assert config.ttl_ms == row["output"]["ttlMs"]


@pytest.mark.parametrize("row", rows("toolResult.maxChars"))
def test_the_stored_limit_is_that_of_openclaw(row: dict[str, Any]) -> None:
    assert stored_limit(row["input"]["contextWindowTokens"], settings().results) == row["output"]


@pytest.mark.parametrize("row", rows("toolResult.persistCap"))
def test_stored_results_have_the_sizes_of_openclaw(row: dict[str, Any]) -> None:
    (message,) = messages([{"isError": False, **row["input"]["message"]}])
    assert isinstance(message, ToolResultMessage)
    kept = shortened(message, 400_000, None)
    sizes = [len(b.text) if hasattr(b, "text") else "image" for b in kept.content]  # type: ignore[union-attr]
    match row["output"]:
        case {"same": True}:
            assert kept is message
        case {"len": length}:
            assert length - 20 < sizes[0] <= length  # type: ignore[operator]
        case [first, "image", last]:
            assert sizes[1] == "image"
            assert first - 20 < sizes[0] <= first
            assert last - 20 < sizes[2] <= last
        case _:
            pytest.fail("a shape of its own")


# The marks are lamella's: they tell how much is missing. Content that is not shortened is the same.
THEIR_MARKS = ("[truncated: output exceeded context limit]", "[compacted: tool output removed to free context]")


@pytest.mark.parametrize("row", rows("contextGuard"))
def test_requests_fit_as_in_openclaw(row: dict[str, Any]) -> None:
    given = messages(row["input"]["messages"])
    if row["name"] == "legacyToolRoleString":
        assert isinstance(given[0], OtherMessage)  # no role of the session format; no model sees it
        given = [ToolResultMessage("x", "", given[0].raw["content"])]
    before = list(given)
    draft = Draft(given)
    fit(draft, row["input"]["contextWindowTokens"], settings())
    assert given == before
    for original, found, theirs in zip(given, draft.messages, row["output"]["messages"], strict=True):
        expected = hashed(theirs["content"])
        if not any(mark in json.dumps(theirs) for mark in THEIR_MARKS):
            assert found is original
            assert hashed(dump_message(found)["content"]) == expected
            continue
        assert isinstance(found, ToolResultMessage)
        content = dump_message(found)["content"]
        assert isinstance(content, list) == isinstance(theirs["content"], list)
        text = content if isinstance(content, str) else content[0]["text"]
        assert len(text) <= 1024
        assert ("[Old tool result" in text) == (THEIR_MARKS[1] in json.dumps(theirs))
        assert isinstance(content, str) or len(content) == 1
