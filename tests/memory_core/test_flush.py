"""The memory flush in whole turns: what becomes of the user's words, of failures and bounds, and what may be written.

Edge cases E36 to E41 and E45, and cases K61, K64, K65 and K66. When it runs, and its prompt: test_flush_rules.py.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, open_agent, scripted
from builders import CASES

from lamella.config.structure import structure
from lamella.memory.journal import read_journal
from lamella.models.scripted import ScriptedModel
from lamella.runtime import Runtime
from lamella.sessions.keys import parse_key
from lamella.text.days import human_day
from lamella.types.messages import UserMessage, text_of
from lamella.types.model import ModelRequest
from lamella_memory_core import Config, MemoryCore
from lamella_memory_core.flush.turn import MAX_CALLS

KEY = "agent:main:main"
# A window of 24,000 tokens: compaction above 18,000, a flush from 14,000 on.
WINDOW, FLUSH_AT = 24_000, 14_000


def memory(**settings: Any) -> MemoryCore:
    config, problems = structure(Config, {"embedder": "none", **settings}, path="plugins.config.memory-core")
    assert config is not None, problems
    return MemoryCore(config)


def agent(home: Path, model: Any, *, settings: Mapping[str, Any] | None = None, **config: Any) -> Runtime:
    settings = {"compaction.reserve_tokens_floor": 20_000, "agent.timezone": "UTC", **(settings or {})}
    return open_agent(home, model, settings=settings, plugins=[memory(**config)])


def reply(text: str, used: int = 100) -> dict[str, Any]:
    return {"text": text, "usage": {"input": used, "totalTokens": used}}


def write(content: str = "- boiler: Anna, 4711", **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "toolCall", "id": "w1", "name": "write", "arguments": {"content": content, **more}}]}


def is_flush(request: ModelRequest) -> bool:
    last = [m for m in request.messages if isinstance(m, UserMessage)][-1]
    return "Save now what must outlast" in text_of(last.content)


def kinds(model: ScriptedModel) -> list[str]:
    return ["flush" if is_flush(r) else "talk" for r in model.requests]


def entry(runtime: Runtime) -> dict[str, Any]:
    return dict(runtime.store.index.get(KEY) or {})


def note(runtime: Runtime) -> Path:
    return runtime.workspace / "memory" / f"{human_day(tz='UTC')}.md"


# --- whole turns -------------------------------------------------------------------------------------------


async def nearly_full(home: Path, steps: list[Any], used: int = FLUSH_AT, **options: Any) -> tuple[Runtime, Any]:
    """A session whose next turn finds `used` tokens, and the model that plays `steps` then."""
    async with agent(home, scripted([reply("first answer", used)], context_window=WINDOW), **options) as runtime:
        await runtime.ask("first question")
    model = scripted(steps, context_window=WINDOW)
    return agent(home, model, **options), model


async def test_k65_e41_the_users_words_are_sent_once_after_the_flush(tmp_path: Path) -> None:
    script = json.loads((CASES / "K65" / "script.json").read_text(encoding="utf-8"))
    steps = [step["reply"] for step in script["model"]]
    opened, model = await nearly_full(tmp_path, steps)
    events = Recorder()
    async with opened as runtime:
        runtime.listeners.append(events)
        result = await runtime.ask(script["user"])
        stored = runtime.store.locate(parse_key(KEY)).path.read_text(encoding="utf-8")  # type: ignore[union-attr]
        after = entry(runtime)
    assert kinds(model) == ["flush", "talk"]
    assert text_of(model.requests[1].messages[-1].content) == script["user"]
    assert result.text == script["model"][1]["reply"]
    users = [json.loads(r)["message"] for r in stored.splitlines() if '"role":"user"' in r]
    assert [u["content"][0]["text"] for u in users] == ["first question", script["user"]]
    assert "NO_REPLY" not in stored
    assert all("NO_REPLY" not in repr(event) for event in events.events)
    assert after["lastFlushOutcome"] == "nothing"
    assert after["memoryFlushCompactionCount"] == 0
    assert after["memoryFlushAt"] > 0


async def test_the_flush_uses_the_prefix_of_the_session_and_two_tools(tmp_path: Path) -> None:
    opened, model = await nearly_full(tmp_path, ["NO_REPLY", "ok"], settings={"tools.deny": ["write", "edit"]})
    async with opened as runtime:
        await runtime.ask("second")
        (flush, talk) = model.requests
    assert sorted(t.name for t in flush.tools) == ["read", "write"]
    assert flush.system_prompt.startswith(talk.system_prompt)
    assert [m.content for m in flush.messages[:-1]] == [m.content for m in talk.messages[:-1]]


async def test_what_a_flush_writes_is_in_the_note_the_journal_and_the_counters(tmp_path: Path) -> None:
    opened, model = await nearly_full(tmp_path, [write(), "NO_REPLY", "ok", "later"])
    async with opened as runtime:
        await runtime.ask("second")
        assert note(runtime).read_text().endswith("\n- boiler: Anna, 4711\n")
        (line,) = read_journal(runtime.state_dir).entries
        first_answer = next(i for i, role in message_ids(runtime) if role == "assistant")
        marked = entry(runtime)
        await runtime.ask("third")  # once in a cycle
    who = line.provenance
    assert (who.actor, who.trigger, who.session_id, who.entry_id) == (
        "flush",
        "memory",
        marked["sessionId"],
        first_answer,
    )
    assert marked["lastFlushOutcome"] == "written"
    assert marked["lastFlushPath"] == f"memory/{human_day(tz='UTC')}.md"
    assert kinds(model) == ["flush", "flush", "talk", "talk"]


def message_ids(runtime: Runtime) -> list[tuple[str, str]]:
    path = runtime.store.locate(parse_key(KEY)).path  # type: ignore[union-attr]
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(r["id"], r["message"]["role"]) for r in rows if r["type"] == "message"]


async def test_below_the_threshold_and_with_flushes_off_nothing_runs(tmp_path: Path) -> None:
    for number, (used, options) in enumerate(
        [
            (FLUSH_AT - 100, {}),
            (FLUSH_AT, {"flush": False}),
            (FLUSH_AT, {"settings": {"compaction.flush": False}}),
            (FLUSH_AT, {"settings": {"compaction.enabled": False}}),
        ]
    ):
        opened, model = await nearly_full(tmp_path / str(number), ["ok"], used, **options)
        async with opened as runtime:
            assert (await runtime.ask("x")).error is None
            assert "lastFlushOutcome" not in entry(runtime)
        assert kinds(model) == ["talk"]


@pytest.mark.parametrize(
    "fault",
    [{"throwBeforeStart": "503 service unavailable", "status": 503}, {"throwBeforeStart": "prompt is too long"}],
    ids=["503", "overflow"],
)
async def test_e40_e39_a_flush_that_fails_costs_nothing_but_the_flush(tmp_path: Path, fault: dict[str, Any]) -> None:
    """Not even a compaction, however its call fails; after two failures the next try waits for a compaction."""
    opened, model = await nearly_full(tmp_path, [fault, "one", fault, "two", "three", "S", fault])
    async with opened as runtime:
        texts = [(await runtime.ask(t)).text for t in ("a", "b", "c")]
        after = entry(runtime)
    assert texts == ["one", "two", "three"]
    assert kinds(model) == ["flush", "talk", "flush", "talk", "talk"]
    assert "memoryFlushAt" not in after
    assert after["memoryFlushFailures"] == {"cycle": 0, "count": 2}
    assert after["lastFlushOutcome"] == "none: gate: failed 2 times since the last compaction"
    assert not after["compactionCount"]


async def test_a_flush_is_bounded_in_time(tmp_path: Path) -> None:
    slow = {"text": "NO_REPLY", "delayMs": 60_000}
    opened, _ = await nearly_full(tmp_path, [slow, "ok"], flush_timeout_seconds=1)
    async with opened as runtime:
        assert (await runtime.ask("x")).text == "ok"
        assert entry(runtime)["lastFlushOutcome"] == "failed: no answer within 1 s"


LOOK = {"content": [{"type": "toolCall", "id": "r1", "name": "read", "arguments": {"path": "nothing.md"}}]}


@pytest.mark.parametrize("steps", [[LOOK] * MAX_CALLS, ["I will remember that."], [""]], ids=["reads", "talk", "empty"])
async def test_a_flush_that_neither_writes_nor_is_silent_is_tried_again(tmp_path: Path, steps: list[Any]) -> None:
    """It is bounded in calls, too."""
    opened, _ = await nearly_full(tmp_path, [*steps, "ok", write(), "NO_REPLY", "ok"])
    async with opened as runtime:
        assert (await runtime.ask("x")).text == "ok"
        assert entry(runtime)["lastFlushOutcome"] == "failed: the model neither wrote nor answered NO_REPLY"
        assert (await runtime.ask("y")).text == "ok"
        assert entry(runtime)["lastFlushOutcome"] == "written"


async def test_an_abort_ends_a_flush(tmp_path: Path) -> None:
    opened, _ = await nearly_full(tmp_path, [{"text": "NO_REPLY", "delayMs": 60_000}])
    async with opened as runtime, runtime.session() as session:
        asyncio.get_running_loop().call_later(0.2, session.abort)
        result = await session.prompt("stop")
        assert result.aborted
        assert "memoryFlushAt" not in entry(runtime)


async def test_e45_a_crash_after_the_flush_brings_no_second_one(tmp_path: Path) -> None:
    def die(_request: ModelRequest) -> str:
        raise RuntimeError("the process dies")

    opened, model = await nearly_full(tmp_path, [write(), "NO_REPLY", die])
    with pytest.raises(RuntimeError, match="dies"):
        async with opened as runtime:
            await runtime.ask("x")
    model = scripted(["ok"], context_window=WINDOW)
    async with agent(tmp_path, model) as runtime:
        await runtime.ask("y")
    assert kinds(model) == ["talk"]


async def test_what_was_written_counts_although_the_next_call_fails(tmp_path: Path) -> None:
    opened, _ = await nearly_full(tmp_path, [write(), {"throwBeforeStart": "500 broken", "status": 500}, "ok", "ok"])
    async with opened as runtime:
        await runtime.ask("x")
        await runtime.ask("y")
        assert entry(runtime)["lastFlushOutcome"] == "written"
        assert note(runtime).read_text().count("4711") == 1


async def test_k64_the_size_of_the_transcript_flushes_once_in_a_cycle(tmp_path: Path) -> None:
    scenario = json.loads((CASES / "K64" / "scenario.json").read_text())
    settings = {"compaction.flush_transcript_bytes": 5_000}
    steps = [reply("x" * 6_000), "NO_REPLY", *["ok"] * (scenario["userMessages"] + 2)]
    model = scripted(steps, context_window=scenario["window"])
    for half in range(2):  # a restart in between
        async with agent(tmp_path, model, settings=settings) as runtime:
            for number in range(scenario["userMessages"] // 2 + 1 - half):
                await runtime.ask(f"{half} {number}")
    assert kinds(model).count("flush") == 1
    assert kinds(model)[1] == "flush"


async def test_the_size_counts_from_the_last_compaction_on(tmp_path: Path) -> None:
    settings = {"compaction.flush_transcript_bytes": 20_000, "compaction.keep_recent_tokens": 10}
    steps = ["x" * 9_000, "y" * 9_000, "NO_REPLY", "SUMMARY", "PREFIX", *["ok"] * 3, "z" * 18_000, "NO_REPLY", "ok"]
    model = scripted(steps, context_window=200_000)
    async with agent(tmp_path, model, settings=settings) as runtime:
        async with runtime.session() as session:
            await session.prompt("a" * 2_000)
            await session.prompt("b")
            await session.compact()
            for text in ("c", "d"):
                await session.prompt(text)
            before = len(model.requests)
            await session.prompt("e")
            assert not any(map(is_flush, model.requests[before:]))
        assert entry(runtime)["compactionTranscriptBytes"] > 18_000


# --- before a compaction -----------------------------------------------------------------------------------


def compactions(runtime: Runtime) -> list[dict[str, Any]]:
    path = runtime.store.locate(parse_key(KEY)).path  # type: ignore[union-attr]
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [r for r in rows if r["type"] == "compaction"]


OVERFLOW = {"error": "prompt is too long: 30000 tokens > 24000 maximum"}


async def test_on_an_overflow_what_will_be_folded_is_flushed(tmp_path: Path) -> None:
    """No turn came near the threshold before; the flush sees the part that goes, and nothing else."""
    settings = {"compaction.keep_recent_tokens": 100}
    old, kept = "old words. " * 60, "kept words. " * 60
    steps = [reply(old), reply(kept), OVERFLOW, write(), "NO_REPLY", "SUMMARY", "PREFIX", "recovered"]
    model = scripted(steps, context_window=WINDOW)
    async with agent(tmp_path, model, settings=settings) as runtime:
        for text in ("one", "two", "three"):
            answer = await runtime.ask(text)
        (compaction,) = compactions(runtime)
        after = entry(runtime)
        assert "4711" in note(runtime).read_text()
    assert answer.text == "recovered"
    flush = model.requests[3]
    assert is_flush(flush)
    assert "old words" in str(flush.messages)
    assert "kept words" not in str(flush.messages)
    assert compaction["details"]["flush"] == "written"
    assert compaction["details"]["flushPath"].startswith("memory/")
    assert compaction["details"]["observedTokens"] == 30_000
    assert (after["memoryFlushCompactionCount"], after["compactionCount"]) == (0, 1)


async def test_a_compaction_by_hand_is_flushed_too_and_a_flush_of_its_cycle_is_named(tmp_path: Path) -> None:
    settings = {"compaction.keep_recent_tokens": 10}
    # Near the threshold: a flush before the turn, which the first compaction names. The second one has its own.
    steps = [write(), "NO_REPLY", reply("y " * 100), "S", "P", reply("z " * 100), "NO_REPLY", "S", "P"]
    opened, model = await nearly_full(tmp_path, steps, settings=settings)
    async with opened as runtime, runtime.session() as session:
        await session.prompt("x " * 100)
        await session.compact()
        await session.prompt("x " * 100)
        await session.compact()
        found = [c["details"]["flush"] for c in compactions(runtime)]
    assert found == ["written", "nothing"]
    assert kinds(model).count("flush") == 3  # two calls for the first one


async def test_every_compaction_has_an_answer(tmp_path: Path) -> None:
    """Without the plugin, with flushes switched off, and in a heartbeat."""
    old = "old words. " * 60
    settings = {"compaction.keep_recent_tokens": 50}
    cases: list[tuple[str, list[Any], dict[str, Any], str]] = [
        ("slot", [], {}, "none: slot"),
        ("off", [memory(flush=False)], {}, "none: switched off"),
        ("core", [memory()], {"compaction.flush": False}, "none: switched off"),
        ("heartbeat", [memory()], {}, "none: gate: heartbeat turn"),
    ]
    for name, plugins, more, wanted in cases:
        model = scripted([old, old, "SUMMARY", "PREFIX"], context_window=WINDOW)
        trigger: Any = "heartbeat" if name == "heartbeat" else "user"
        opened = open_agent(tmp_path / name, model, settings={**settings, **more}, plugins=plugins)
        async with opened as runtime, runtime.session(trigger=trigger) as session:
            await session.prompt("one")
            await session.prompt("two")
            await session.compact()
            assert [c["details"]["flush"] for c in compactions(runtime)] == [wanted], name


async def test_at_most_one_flush_in_a_turn(tmp_path: Path) -> None:
    """A flush that failed before the turn is not tried again for the overflow of the same turn."""
    busy = {"throwBeforeStart": "503 busy", "status": 503}
    settings = {"compaction.keep_recent_tokens": 50}
    opened, model = await nearly_full(tmp_path, [busy, OVERFLOW, "SUMMARY", "recovered"], settings=settings)
    async with opened as runtime:
        result = await runtime.ask("x " * 100)
        (found,) = [c["details"]["flush"] for c in compactions(runtime)]
    assert result.text == "recovered"
    assert kinds(model).count("flush") == 1
    assert found.startswith("failed: 503")


# --- what may be written -----------------------------------------------------------------------------------


async def test_k66_e36_e37_a_flush_appends_to_the_days_note_and_to_nothing_else(tmp_path: Path) -> None:
    shutil.copytree(CASES / "K66" / "ws", tmp_path / "ws")
    day = human_day(tz="UTC")
    (tmp_path / "ws/memory/2026-05-10.md").rename(tmp_path / f"ws/memory/{day}.md")
    ws = tmp_path / "ws"
    before = {p.relative_to(ws).as_posix(): p.read_bytes() for p in ws.rglob("*") if p.is_file()}
    raw = json.loads((CASES / "K66" / "flush_calls.json").read_text().replace("2026-05-10", day))
    calls = [
        {
            "type": "toolCall",
            "id": f"c{number}",
            "name": call["tool"],
            "arguments": {"path": call["path"], "content": call["content"]},
        }
        for number, call in enumerate(raw)
    ]
    opened, model = await nearly_full(tmp_path, [{"content": calls}, "NO_REPLY", "ok"], settings={"tools.exec": True})
    async with opened as runtime:
        assert (await runtime.ask("x")).text == "ok"
    after = {p.relative_to(ws).as_posix(): p.read_bytes() for p in ws.rglob("*") if p.is_file()}
    assert after.keys() == before.keys()
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {f"memory/{day}.md"}
    kept = after[f"memory/{day}.md"]
    assert kept.startswith(before[f"memory/{day}.md"])
    assert b"\n- afternoon: meter 4 read 121\n" in kept
    assert not (tmp_path / "evil.md").exists()
    results = [m for m in model.requests[1].messages if m.role == "toolResult"]
    assert [r.is_error for r in results] == [False] + [True] * (len(calls) - 1)
    refusals = [text_of(r.content) for r in results[1:-1]]
    assert set(refusals) == {f"Memory flush writes are restricted to memory/{day}.md; use that path only."}


async def test_k66_a_missing_folder_is_made(tmp_path: Path) -> None:
    opened, _ = await nearly_full(tmp_path, [write(path=f"./memory/{human_day(tz='UTC')}.md"), "NO_REPLY", "ok"])
    async with opened as runtime:
        await runtime.ask("x")
        assert "4711" in note(runtime).read_text()


async def test_e38_a_target_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("mine\n")
    opened, model = await nearly_full(tmp_path, [write(), "NO_REPLY", "ok"])
    async with opened as runtime:
        note(runtime).parent.mkdir()
        note(runtime).symlink_to(outside)
        assert (await runtime.ask("x")).text == "ok"
        assert entry(runtime)["lastFlushOutcome"].startswith("failed: ")
    assert outside.read_text() == "mine\n"
    assert [m.is_error for m in model.requests[1].messages if m.role == "toolResult"] == [True]


async def test_k61_a_new_or_reset_session_has_no_mark(tmp_path: Path) -> None:
    async with agent(tmp_path, scripted(["a", "b"])) as runtime:
        for new in (False, True):
            await runtime.ask("x", new=new)
            assert "memoryFlushCompactionCount" not in entry(runtime)
            assert "memoryFlushAt" not in entry(runtime)
