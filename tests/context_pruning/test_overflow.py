"""Stored results that are too long for the window are shortened when compaction is not enough (C26 to C29)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, open_agent, scripted
from attrs import evolve
from builders import assistant, call, result, user
from pruning import long_result, results, settings

from lamella.sessions.lines import to_entry
from lamella.types import events as e
from lamella.types.entries import Entry
from lamella.types.message_json import dump_message
from lamella.types.messages import Message, text_of
from lamella_context_pruning import ContextPruning
from lamella_context_pruning.stored import replacements

OVERFLOW = {"error": "prompt is too long: 200000 tokens > 100000 maximum"}


def entries(*messages: Message) -> list[Entry]:
    return [
        to_entry({"type": "message", "id": f"e{i}", "parentId": None, "timestamp": "", "message": dump_message(m)})
        for i, m in enumerate(messages)
    ]


def compaction(first_kept: str) -> Entry:
    return to_entry({"type": "compaction", "id": "c", "timestamp": "", "summary": "s", "firstKeptEntryId": first_kept})


def test_c26_nothing_too_long_is_no_change_with_a_reason(tmp_path: Path) -> None:
    model = scripted([{"text": "a"}, OVERFLOW, OVERFLOW, OVERFLOW, OVERFLOW, OVERFLOW], context_window=100_000)
    agent, seen = open_agent(tmp_path, model, plugins=[ContextPruning()]), Recorder()
    agent.listeners.append(seen)

    async def talk() -> Any:
        async with agent.session() as session:
            await session.prompt("one")
            return await session.prompt("two")

    assert asyncio.run(talk()).error is not None
    (notice,) = [n for n in seen.of(e.Notice) if n.code == "nothing_to_shorten"]
    assert "no stored tool result has more than 120000 characters" in notice.message


def test_only_what_the_context_holds_is_looked_at() -> None:
    old, kept = long_result("a", 5000), long_result("b", 5000)
    branch = [*entries(user("u"), old, user("v"), kept), compaction("e2")]
    assert list(replacements(branch, 1000)) == ["e3"]
    assert list(replacements([*branch[:-1], compaction("nobody")], 1000)) == []
    assert list(replacements(branch[:-1], 1000)) == ["e1", "e3"]
    assert replacements(branch, 5000) == {}


def test_c29_a_string_is_shortened_as_one_block() -> None:
    (short,) = replacements(entries(evolve(result("a"), content="x" * 5000)), 3000).values()
    assert isinstance(short.content, str)
    assert len(short.content) <= 3000


def test_a_read_is_told_which_lines_are_missing() -> None:
    messages = [assistant("", call("a", "read", path="f", offset=11)), result("a", "line\n" * 2000, "read")]
    (short,) = replacements(entries(*messages), 4000).values()
    assert "; read with offset=" in text_of(short.content)


@pytest.mark.parametrize("first", [True, False], ids=["C28", "C27"])
def test_c27_c28_an_overflow_shortens_what_is_stored(first: bool, tmp_path: Path) -> None:
    """A session with a long result that another window let in; its branch holds a compaction, or begins with it."""
    model = scripted([{"text": "a"}, OVERFLOW, {"text": "done"}], context_window=100_000)
    off = {"fit": {"enabled": False}, "mode": "off"}
    agent = open_agent(tmp_path, model, plugins=[ContextPruning(settings(**off))])

    async def first_turn() -> None:
        async with agent.session() as session:
            await session.prompt("one")

    asyncio.run(first_turn())
    located = agent.store.locate(agent.key())
    assert located is not None
    rows = [json.loads(line) for line in located.path.read_text().splitlines()]
    long = long_result("r", 200_000)
    calls = assistant("", call("r", "exec"))
    extra: list[dict[str, Any]] = [
        {"type": "message", "message": dump_message(calls)},
        {"type": "message", "message": dump_message(long)},
        {"type": "message", "message": dump_message(assistant("fine"))},
    ]
    start = rows[:1] if first else rows
    if first:
        extra = extra[1:]  # the long result is the very first entry
    else:
        extra.append({"type": "compaction", "summary": "S", "firstKeptEntryId": "n0", "tokensBefore": 9})
    parent = None if first else rows[-1]["id"]
    for i, row in enumerate(extra):
        row |= {"id": f"n{i}", "parentId": parent, "timestamp": "2026-05-10T09:00:00.000Z"}
        parent = row["id"]
    located.path.write_text("".join(json.dumps(r) + "\n" for r in [*start, *extra]))
    before = located.path.read_bytes()

    agent = open_agent(
        tmp_path,
        model,
        settings={"compaction.enabled": False},
        plugins=[ContextPruning(settings(**off))],
    )

    async def second_turn() -> Any:
        async with agent.session() as session:
            return await session.prompt("two")

    outcome = asyncio.run(second_turn())
    assert outcome.error is None
    assert outcome.text == "done"
    assert located.path.read_bytes().startswith(before)
    context = agent.store.open(located, cwd="").context()
    (short,) = results(context.messages)
    assert len(text_of(short.content)) <= 120_000
    assert text_of(short.content).startswith("<r")
    roles = [m.role for m in context.messages if m.role != "custom"]
    assert roles[:2] == ["toolResult", "assistant"] if first else roles[0] == "compactionSummary"
    assert [text_of(m.content) for m in model.requests[-1].messages if m.role == "user"][-1] == "two"
