"""Compactions of every cause through one pipeline: when they run, where they cut, what they must gain, how they fail.

Edge cases E2 to E8 and E17 to E23, and cases K45, K46, K48 and K50. No plugin summarises here: this is the
engine's own part. What follows an overflow is in test_overflow.py, what memory saves before in
tests/memory_core/test_flush.py.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, scripted
from builders import CASES, assistant, user
from compacting import KEY, OVERFLOW, WINDOW, agent, entry, is_summary, place, reply, rows, talk, words
from legal import check_pairing

from lamella.agent.cut import prepare_compaction
from lamella.cli.commands import run_command
from lamella.config.schema import CompactionSection
from lamella.errors import ContextOverflow
from lamella.models.scripted import ScriptedModel
from lamella.sessions.keys import parse_key
from lamella.sessions.transcript import SessionFile
from lamella.text.conversation import convert_to_model_messages
from lamella.text.estimate import estimate_pi
from lamella.types import events as e
from lamella.types.messages import UserMessage, text_of
from lamella.types.model import ModelRequest
from lamella.types.tools import Tool

# --- when ------------------------------------------------------------------------------------------------------


async def test_e02_k48_right_after_a_compaction_there_is_nothing_to_compact(tmp_path: Path) -> None:
    model = scripted(["SUMMARY", "PREFIX"], context_window=WINDOW)
    async with agent(tmp_path, model) as runtime:
        place(runtime, talk("a", "b", "c"))
        async with runtime.session() as session:
            first = await session.compact()
            calls = len(model.requests)
            second = await session.compact()
            assert entry(runtime)["compactionCount"] == 1
    assert first.entry_id
    assert second.error.startswith("nothing to compact")
    assert len(model.requests) == calls


async def test_e03_after_an_abort_the_size_is_checked_before_the_next_prompt(tmp_path: Path) -> None:
    slow = {"text": words("d"), "usage": {"input": 900, "totalTokens": 900}, "stopReason": "aborted"}
    model = scripted([slow, "SUMMARY", "ok"], context_window=WINDOW)
    async with agent(tmp_path, model) as runtime:
        place(runtime, talk("a", "b", *"cdefg"))
        first = await runtime.ask("one " * 40)
        assert first.aborted
        assert not rows(runtime, "compaction")
        await runtime.ask("two")
        assert [c["details"]["cause"] for c in rows(runtime, "compaction")] == ["threshold"]
    assert is_summary(model.requests[1])


async def test_e04_after_a_failed_reply_the_last_good_count_decides(tmp_path: Path) -> None:
    overloaded = {"throwBeforeStart": "529 overloaded", "status": 529}
    model = scripted([reply(words("c"), 850)], context_window=WINDOW)
    async with agent(tmp_path, model, {"compaction.enabled": False}) as runtime:
        place(runtime, talk("a", "b"))
        await runtime.ask("x")
    model = scripted([overloaded], context_window=WINDOW)
    async with agent(tmp_path, model, {"retry.enabled": False, "compaction.enabled": False}) as runtime:
        assert (await runtime.ask("y")).error is not None
    model = scripted(["SUMMARY", "PREFIX", "fine"], context_window=WINDOW)
    async with agent(tmp_path, model) as runtime:
        assert (await runtime.ask("z")).text == "fine"
        (compaction,) = rows(runtime, "compaction")
    assert compaction["details"]["cause"] == "threshold"
    assert compaction["details"]["tokensBefore"] >= 850


async def test_e05_an_overflow_of_an_earlier_model_compacts_nothing(tmp_path: Path) -> None:
    async with agent(tmp_path, scripted([OVERFLOW, OVERFLOW], context_window=WINDOW)) as runtime:
        assert isinstance((await runtime.ask("x")).error, ContextOverflow)
    model = scripted(["ok"], context_window=100_000, id="large")
    async with agent(tmp_path, model) as runtime:
        assert (await runtime.ask("y")).text == "ok"
        assert not rows(runtime, "compaction")


async def test_compaction_switched_off_compacts_nothing_and_names_the_key(tmp_path: Path) -> None:
    model = scripted([OVERFLOW], context_window=WINDOW)
    async with agent(tmp_path, model, {"compaction.enabled": False}) as runtime:
        place(runtime, talk(*"abcdefgh"))
        failed = await runtime.ask("x")
        assert not rows(runtime, "compaction")
    assert isinstance(failed.error, ContextOverflow)
    assert "compaction.enabled" in failed.error.hint


async def test_by_hand_it_compacts_also_where_it_is_switched_off(tmp_path: Path) -> None:
    async with agent(
        tmp_path, scripted(["SUMMARY"] * 2, context_window=WINDOW), {"compaction.enabled": False}
    ) as runtime:
        place(runtime, talk(*"abcdefgh"))
        async with runtime.session() as session:
            assert (await session.compact()).entry_id


# --- where to cut ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", range(100, 9_001, 100))
def test_k45_e07_e08_a_cut_never_parts_a_call_from_its_result(keep: int, tmp_path: Path) -> None:
    file = SessionFile.open(shutil.copy(CASES / "K45" / "long_turn.jsonl", tmp_path))
    before = file.context().messages
    plan = prepare_compaction(file.context(), keep_recent_tokens=keep, reserve_tokens=100, estimate=estimate_pi)
    if plan is None:
        return
    first_kept = file.entry(plan.first_kept_entry_id).message
    assert first_kept is None or first_kept.role != "toolResult"
    file.append_compaction("SUMMARY", plan.first_kept_entry_id, plan.tokens_before)
    _, *kept = file.context().messages
    assert [*plan.messages_to_summarize, *plan.turn_prefix, *kept] == list(before)
    check_pairing(convert_to_model_messages(kept))
    assert text_of(kept[-1].content) == "Which drawer has beans?"  # type: ignore[union-attr]
    if plan.is_split_turn:
        assert isinstance(plan.turn_prefix[0], UserMessage)
        assert text_of(plan.turn_prefix[0].content) == "Catalogue the seed library."


def test_k45_a_single_long_turn_can_be_compacted() -> None:
    context = SessionFile.open(CASES / "K45" / "long_turn.jsonl").context()
    plans = [
        prepare_compaction(context, keep_recent_tokens=keep, reserve_tokens=100, estimate=estimate_pi)
        for keep in range(100, 9_001, 100)
    ]
    assert any(plan is not None and plan.is_split_turn for plan in plans)


# --- what a compaction must gain -------------------------------------------------------------------------------


def echo(request: ModelRequest) -> dict[str, Any]:
    """A summary as long as what it stands for; else a short answer."""
    prompt = text_of(request.messages[-1].content)
    return reply(prompt if prompt.startswith("<conversation>") else "ok", 0)


async def test_k50_a_summary_that_frees_nothing_is_not_taken_and_not_asked_for_again(tmp_path: Path) -> None:
    """Six turns over the threshold, each in a new process."""
    model = scripted([echo] * 40, context_window=8_000)
    settings = {"compaction.reserve_tokens": 2_000, "compaction.keep_recent_tokens": 1_000}
    async with agent(tmp_path, model, settings) as runtime:
        place(runtime, [m for n in range(61) for m in (user(f"ask {n}"), assistant(words("w")))])
    for number in range(6):
        before = len(model.requests)
        async with agent(tmp_path, model, settings) as runtime:
            answer = await runtime.ask(f"turn {number}")
            assert (answer.text, answer.compactions) == ("ok", 0)
            assert not rows(runtime, "compaction")
        assert sum(map(is_summary, model.requests[before:])) <= 3
    assert 1 <= sum(map(is_summary, model.requests)) <= 6


async def test_k50_a_summary_that_frees_nothing_is_tried_again_when_the_context_has_grown(tmp_path: Path) -> None:
    summaries = iter([echo, "SUMMARY", "PREFIX", "PREFIX"])

    def play(request: ModelRequest) -> Any:
        if not is_summary(request):
            return words("z", 500)
        summary = next(summaries)
        return summary(request) if callable(summary) else summary

    model = scripted([play] * 8, context_window=8_000)
    settings = {"compaction.reserve_tokens": 2_000, "compaction.keep_recent_tokens": 1_000}
    async with agent(tmp_path, model, settings) as runtime:
        place(runtime, [m for n in range(61) for m in (user(f"ask {n}"), assistant(words("w")))])
        await runtime.ask("one")
        stalled = entry(runtime)["compactionStalled"]
        assert not rows(runtime, "compaction")
        await runtime.ask("two")
        assert len(rows(runtime, "compaction")) == 1
        assert "compactionStalled" not in entry(runtime)
    assert stalled["cause"] == "threshold"


async def test_k50_a_fixed_part_that_is_too_large_is_named_and_asks_no_model(tmp_path: Path) -> None:
    model = scripted(["ok"] * 6 + [OVERFLOW], context_window=8_000)
    big = Tool("big", "word " * 6_300, {"type": "object", "properties": {}}, lambda _a, _c: "")
    events = Recorder()
    async with agent(tmp_path, model, tools=[big]) as runtime:
        runtime.listeners.append(events)
        for number in range(6):
            assert (await runtime.ask(f"turn {number}")).text == "ok"
        failed = await runtime.ask("and now")
    told = {end.error for end in events.of(e.AutoCompactionEnd) if end.reason == "threshold"}
    assert any("the system prompt and the tools alone take about 7" in str(error) for error in told)
    assert not any(map(is_summary, model.requests))
    assert failed.error is not None
    assert "tools.deny" in failed.error.hint


async def test_k50_a_message_larger_than_the_window_is_refused_before_it_is_stored(tmp_path: Path) -> None:
    model = scripted(["ok"], context_window=8_000)
    async with agent(tmp_path, model) as runtime:
        for _ in range(3):
            failed = await runtime.ask("word " * 10_000)
            assert isinstance(failed.error, ContextOverflow)
        assert (await runtime.ask("short")).text == "ok"
        assert len(model.requests) == 1


async def test_k50_bookkeeping_alone_is_never_compacted(tmp_path: Path) -> None:
    model = scripted(["ok"] * 3, context_window=8_000)
    async with agent(tmp_path, model) as runtime, runtime.session() as session:
        await session.prompt("one")
        for number in range(100):
            session.agent.file.append_custom("test", {"number": number})
        await session.prompt("two")
        await session.prompt("three")
        assert not rows(runtime, "compaction")


async def test_e23_a_compaction_records_what_it_did(tmp_path: Path) -> None:
    model = scripted([reply(words("d", 98), 850), "SUMMARY", "PREFIX"], context_window=WINDOW)
    async with agent(tmp_path, model) as runtime:
        path = place(runtime, talk("a", "b", "c"))
        folded = [r["id"] for r in map(json.loads, path.read_text().splitlines()) if r["type"] == "message"]
        answer = await runtime.ask("ask d")
        (compaction,) = rows(runtime, "compaction")
        (note,) = entry(runtime)["compactions"]
    assert answer.compactions == 1
    details = compaction["details"]
    assert details["tokensAfter"] < details["tokensBefore"] == 850
    assert details["foldedEntryIds"] == folded
    assert (details["summarisedBy"], details["flush"], details["cause"]) == (
        "scripted/script",
        "none: slot",
        "threshold",
    )
    assert (note["before"], note["after"]) == (details["tokensBefore"], details["tokensAfter"])
    assert (note["by"], note["flush"], note["cause"]) == ("scripted/script", "none: slot", "threshold")


# --- failures --------------------------------------------------------------------------------------------------

SCRIPTS = json.loads((CASES / "K46" / "summariser_scripts.json").read_text())


def as_step(script: Mapping[str, Any]) -> dict[str, Any]:
    if script.get("no_model"):
        return {"throwBeforeStart": "no model is configured"}
    if "returns" in script:
        return {"text": script["returns"]}
    if script["raises"] == "timeout":
        return {"text": "late", "delayMs": 60_000}
    status = re.match(r"\d+", script["raises"])
    return {"throwBeforeStart": script["raises"], **({"status": int(status[0])} if status else {})}


@pytest.mark.parametrize("script", SCRIPTS, ids=json.dumps)
async def test_k46_e17_e20_e21_a_failed_summary_replaces_nothing(tmp_path: Path, script: dict[str, Any]) -> None:
    asked = 0

    def step(request: ModelRequest) -> Any:
        nonlocal asked
        if not is_summary(request):
            return reply("fine", 5_500)
        asked += 1
        return as_step(script)

    events = Recorder()
    settings = {
        "compaction.reserve_tokens": 1_500,
        "compaction.keep_recent_tokens": 400,
        "compaction.timeout_seconds": 1,
        "retry.enabled": False,
    }
    async with agent(tmp_path, scripted([step] * 20, context_window=6_000), settings) as runtime:
        runtime.listeners.append(events)
        path = place(runtime, CASES / "K46" / "history.jsonl")
        before = path.read_bytes()
        answer = await runtime.ask("go on")
        assert not rows(runtime, "compaction")
        assert path.read_bytes().startswith(before)
        assert not entry(runtime).get("compactionCount")
        context = runtime.store.open(runtime.store.require(parse_key(KEY)), cwd="").context()
    assert answer.text == "fine"
    assert "note 19" in str(context.messages)
    assert 1 <= asked <= 3
    assert all(end.error for end in events.of(e.AutoCompactionEnd))


@pytest.mark.parametrize("summary", ["NO_REPLY", "**no_reply**\n", words("w", 2_000)], ids=["token", "marked", "huge"])
async def test_silence_and_a_summary_that_fills_the_window_replace_nothing_by_hand_either(
    summary: str, tmp_path: Path
) -> None:
    async with agent(tmp_path, scripted([summary, summary], context_window=WINDOW)) as runtime:
        path = place(runtime, talk(*"abcdefgh"))
        before = path.read_bytes()
        async with runtime.session() as session:
            outcome = await session.compact()
        assert path.read_bytes() == before
    assert outcome.entry_id is None
    assert "empty summary" in outcome.error or "free 0 of" in outcome.error


async def test_e20_an_abort_during_a_compaction_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    slow = {"text": "SUMMARY", "delayMs": 60_000}
    async with agent(tmp_path, scripted([slow], context_window=WINDOW)) as runtime:
        path = place(runtime, talk("a", "b", "c"))
        before = path.read_bytes()
        async with runtime.session() as session:
            asyncio.get_running_loop().call_later(0.1, session.abort)
            outcome = await session.compact()
        assert (outcome.error, outcome.entry_id) == ("aborted", None)
        assert path.read_bytes() == before


async def test_e18_e19_a_compaction_that_overflows_itself_is_not_repeated_and_the_session_stays(tmp_path: Path) -> None:
    model = scripted([OVERFLOW] * 4, context_window=WINDOW)
    async with agent(tmp_path, model) as runtime:
        path = place(runtime, talk("a", "b", "c"))
        before, session_id = path.read_bytes(), entry(runtime)["sessionId"]
        failed = await runtime.ask("x")
        assert path.read_bytes().startswith(before)
        assert entry(runtime)["sessionId"] == session_id
        assert not rows(runtime, "compaction")
    assert isinstance(failed.error, ContextOverflow)
    assert failed.error.hint.startswith("Compaction gave nothing: prompt is too long")
    assert [is_summary(r) for r in model.requests] == [False, True]


# --- by hand ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["/compact focus on API: keys", "/compact: focus on API: keys"])
async def test_e22_instructions_follow_the_command(command: str, tmp_path: Path) -> None:
    model = scripted(["SUMMARY", "PREFIX"], context_window=WINDOW)
    async with agent(tmp_path, model) as runtime:
        place(runtime, talk("a", "b", "c"))
        async with runtime.session() as session:
            assert await run_command(runtime, session, command)
        (compaction,) = rows(runtime, "compaction")
    assert compaction["details"]["cause"] == "manual"
    assert text_of(model.requests[0].messages[0].content).endswith("Additional focus: focus on API: keys")


async def test_k48_a_tiny_session_is_left_alone(tmp_path: Path) -> None:
    model: ScriptedModel = scripted([])
    async with agent(tmp_path, model, {"compaction.keep_recent_tokens": 20_000}) as runtime:
        path = place(runtime, CASES / "K48" / "tiny.jsonl")
        before = path.read_bytes()
        async with runtime.session() as session:
            outcome = await session.compact()
        assert path.read_bytes() == before
    assert outcome.error.startswith("nothing to compact")
    assert CompactionSection().keep_recent_tokens == 20_000


async def test_k48_the_earlier_summary_is_handed_on(tmp_path: Path) -> None:
    def echoed(request: ModelRequest) -> str:
        lines = text_of(request.messages[-1].content).split("\n")
        return "\n".join(line for line in lines if "PREVIOUS-SUMMARY" in line or "plant table" in line) or "nothing"

    model = scripted([echoed] * 4, context_window=8_000)
    async with agent(tmp_path, model, {"compaction.keep_recent_tokens": 2_000}) as runtime:
        place(runtime, CASES / "K48" / "chain.jsonl")
        async with runtime.session() as session:
            await session.compact()
            (summary, *_) = session.agent.file.context().messages
    assert "budget 4100" in summary.summary  # type: ignore[union-attr]
    assert "below 2 metres" in summary.summary  # type: ignore[union-attr]
