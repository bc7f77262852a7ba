"""Whole turns: what is stored, retried, compacted, counted, and told."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, open_agent, scripted
from builders import CASES
from pi_golden import newest, scenarios

from lamella import hookimpl
from lamella.errors import ContextOverflow, ThinkingRejected, UsageError
from lamella.sessions.transcript import SessionFile
from lamella.types import events as e
from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.messages import Message, ThinkingBlock, UserMessage, text_of
from lamella.types.tools import Tool

SMALL = {"compaction.reserve_tokens": 200, "compaction.keep_recent_tokens": 59, "context.estimator": "pi"}


def long(tag: str, count: int) -> str:
    return " ".join(f"{tag}{i}" for i in range(count))


def reply(text: str, total: int = 50, **more: Any) -> dict[str, Any]:
    return {"text": text, "usage": {"input": total, "totalTokens": total}, **more}


def tool_call(name: str = "demo", call_id: str = "c1", **arguments: Any) -> dict[str, Any]:
    return {"content": [{"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}]}


CALL = {"type": "toolCall", "id": "c1", "name": "demo", "arguments": {}}


def demo(text: str = "demo result", **options: Any) -> Tool:
    return Tool("demo", "A demo.", {"type": "object", "properties": {}}, lambda _a, _c: text, **options)


def said(messages: Any) -> list[str]:
    return [f"{m.role}:{text_of(m.content)}" for m in messages]


def rows(runtime: Any) -> list[dict[str, Any]]:
    (path,) = runtime.store.folder.glob("*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- storing ------------------------------------------------------------------------------------------


async def test_a_turn_is_stored_and_counted(tmp_path: Path) -> None:
    usage = {"input": 10, "output": 5, "cacheRead": 3, "totalTokens": 18}
    model = scripted([{"text": "hello there", "usage": usage}])
    async with open_agent(tmp_path, model) as runtime:
        result = await runtime.ask("hi")
        assert result.text == "hello there"
        assert [r["type"] for r in rows(runtime)] == [
            "session",
            "model_change",
            "thinking_level_change",
            "message",
            "message",
        ]
        entry = runtime.store.index.get("agent:main:main")
    assert entry is not None
    assert (entry["inputTokens"], entry["outputTokens"], entry["totalTokens"]) == (10, 5, 13)
    assert (entry["usedTokens"], entry["contextTokens"], entry["totalTokensFresh"]) == (18, 100_000, True)
    assert entry["sessionFile"] == f"{entry['sessionId']}.jsonl"


async def test_the_users_words_are_on_disk_before_the_model_is_called(tmp_path: Path) -> None:
    seen: list[str] = []

    def step(_request: Any) -> str:
        (path,) = (tmp_path / "state/agents/main/sessions").glob("*.jsonl")
        seen.append(path.read_text())
        return "ok"

    async with open_agent(tmp_path, scripted([step])) as runtime:
        await runtime.ask("remember me")
    assert "remember me" in seen[0]


async def test_a_conversation_goes_on_in_another_runtime(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["one"])) as runtime:
        await runtime.ask("first")
    model = scripted(["two"])
    async with open_agent(tmp_path, model) as runtime:
        await runtime.ask("second")
    assert said(model.requests[0].messages) == ["user:first", "assistant:one", "user:second"]


async def test_an_unanswered_message_is_kept(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted([{"throwBeforeStart": "invalid api key"}])) as runtime:
        result = await runtime.ask("a long question")
        assert result.error is not None
    model = scripted(["answer"])
    async with open_agent(tmp_path, model) as runtime:
        await runtime.ask("?")
    assert said(model.requests[0].messages) == ["user:a long question", "user:?"]


async def test_new_starts_a_new_session_and_puts_the_old_one_aside(tmp_path: Path) -> None:
    class Watch:
        name = "watch"

        def __init__(self) -> None:
            self.seen: list[Any] = []

        @hookimpl
        def session_end(self, event: h.SessionEnd) -> None:
            self.seen.append(("end", event.session_id, event.transcript.exists()))

        @hookimpl
        def session_start(self, event: h.SessionStart) -> None:
            self.seen.append(("start", event.session_id, event.previous_id))

    watch = Watch()
    async with open_agent(tmp_path, scripted(["a", "b"]), plugins=[watch]) as runtime:
        first = await runtime.ask("x")
        second = await runtime.ask("y", new=True)
        assert first.session_id != second.session_id
        (live,) = runtime.store.folder.glob("*.jsonl")
        (archive,) = runtime.store.folder.glob("*.jsonl.reset.*")
        assert [live.stem, archive.name.split(".")[0]] == [second.session_id, first.session_id]
    assert watch.seen == [
        ("start", first.session_id, None),
        ("end", first.session_id, True),
        ("start", second.session_id, first.session_id),
    ]


# --- retries -------------------------------------------------------------------------------------------


async def test_retries_store_the_users_words_once(tmp_path: Path) -> None:
    case = json.loads((CASES / "K18/script.json").read_text())
    steps = [{"text": a["reply"]} if "reply" in a else {"error": a["error"]} for a in case["attempts"]]
    model = scripted([*steps, "next"])
    async with open_agent(tmp_path, model) as runtime:
        recorder = Recorder()
        runtime.listeners.append(recorder)
        result = await runtime.ask(case["user"])
        assert result.text == "Done, ferns at six."
        await runtime.ask("and then?")
        stored = [r["message"] for r in rows(runtime) if r["type"] == "message"]
    assert sum(m["role"] == "user" and m["content"][0]["text"] == case["user"] for m in stored) == 1
    for request in model.requests[:3]:
        assert said(request.messages) == [f"user:{case['user']}"]
    assert said(model.requests[3].messages) == [
        f"user:{case['user']}",
        "assistant:Done, ferns at six.",
        "user:and then?",
    ]
    assert [(s.attempt, s.max_attempts) for s in recorder.of(e.AutoRetryStart)] == [(1, 3), (2, 3)]
    assert [(s.success, s.attempt) for s in recorder.of(e.AutoRetryEnd)] == [(True, 2)]


async def test_retries_end(tmp_path: Path) -> None:
    model = scripted([{"error": "overloaded"}] * 4)
    async with open_agent(tmp_path, model) as runtime:
        recorder = Recorder()
        runtime.listeners.append(recorder)
        result = await runtime.ask("go")
    assert result.error is not None
    assert len(model.requests) == 4
    assert [(s.success, s.final_error) for s in recorder.of(e.AutoRetryEnd)] == [(False, "overloaded")]


REFUSED = {"throwBeforeStart": "messages.1.content.0: Invalid `signature` in `thinking` block", "status": 400}
THOUGHT = {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"}


def thinking_in(request: Any) -> tuple[str, bool]:
    """The level that a request asks for, and whether it gives thinking back."""
    return request.thinking, any(isinstance(b, ThinkingBlock) for m in request.messages for b in m.content)


async def test_refused_thinking_is_left_out_for_the_rest_of_the_turn(tmp_path: Path) -> None:
    again = {"content": [THOUGHT, CALL | {"id": "c2"}]}
    model = scripted([{"content": [THOUGHT, CALL]}, REFUSED, again, "done", "next"])
    recorder = Recorder()
    async with open_agent(tmp_path, model, tools=[demo()], settings={"agent.thinking": "low"}) as runtime:
        runtime.listeners.append(recorder)
        result = await runtime.ask("go")
        assert (result.text, result.error) == ("done", None)
        seen = [thinking_in(request) for request in model.requests]
        assert seen == [("low", False), ("low", True), ("off", False), ("off", False)]
        assert [text_of(m.content) for m in model.requests[3].messages if m.role == "toolResult"] == ["demo result"] * 2
        assert "thinking_left_out" in [notice.code for notice in recorder.of(e.Notice)]
        await runtime.ask("more")
        assert thinking_in(model.requests[4]) == ("low", True)


async def test_a_second_refusal_of_thinking_is_the_turns_error(tmp_path: Path) -> None:
    model = scripted([REFUSED, REFUSED, "never"])
    async with open_agent(tmp_path, model) as runtime:
        result = await runtime.ask("go")
    assert isinstance(result.error, ThinkingRejected)
    assert len(model.requests) == 2


async def test_permanent_errors_are_not_retried(tmp_path: Path) -> None:
    model = scripted([{"error": "invalid api key"}, "ok"])
    async with open_agent(tmp_path, model) as runtime:
        assert (await runtime.ask("go")).error is not None
        assert (await runtime.ask("again")).text == "ok"
    assert len(model.requests) == 2


# --- compaction ------------------------------------------------------------------------------------------


# The scripts behind the recorded runs; lamella's summaries are steps of the same script.
LIKE_PI: dict[str, tuple[list[Any], list[str], dict[str, Any]]] = {
    "plain_prompt": (["hello there"], ["hi"], {}),
    "tool_turn": ([{"content": [{"type": "text", "text": "using"}, CALL]}, "finished"], ["use the tool"], {}),
    "threshold_compaction": (
        [reply(long("a", 60), 300), reply(long("b", 60), 850), "SUMMARY#1", reply("after", 200)],
        ["first question", "second question", "third"],
        {"compaction.reserve_tokens": 200, "compaction.keep_recent_tokens": 60},
    ),
    "transient_error_retried": (
        [{"error": "529 overloaded_error"}, {"error": "503 service unavailable"}, "finally"],
        ["go"],
        {},
    ),
}


@pytest.mark.parametrize("name", list(LIKE_PI))
async def test_the_file_is_the_one_that_pi_writes(name: str, tmp_path: Path) -> None:
    steps, prompts, settings = LIKE_PI[name]
    recorded = next(s for s in scenarios("agent") if s["name"] == name)
    window = 1000 if settings else 100_000
    model = scripted(steps, context_window=window, provider="fake", id="fake-model")
    settings = {"context.estimator": "pi", **settings}
    async with open_agent(tmp_path, model, settings=settings, tools=[demo("tool text")]) as runtime:
        for prompt in prompts:
            await runtime.ask(prompt)
        stored = rows(runtime)
    assert flow(stored) == flow(newest(recorded)["file"])


def flow(lines: list[dict[str, Any]]) -> list[Any]:
    """What a file tells, without ids: kinds, roles, texts, and where a compaction cuts.

    lamella repeats model and level after a compaction; Pi does not.
    """
    position = {line.get("id"): i for i, line in enumerate(lines)}
    out: list[Any] = []
    for line in lines:
        previous = out[-1] if out else None
        repeats = line["type"] in ("model_change", "thinking_level_change")
        if repeats and previous is not None and previous[0] == "compaction":
            continue
        if line["type"] == "message":
            message = line["message"]
            if isinstance(message, dict):
                role = message["role"]
                stop = message.get("stopReason")
            else:
                role, stop = message.partition(":")[0], line.get("stopReason")
            out.append((line["type"], role, stop))
        elif line["type"] == "compaction":
            out.append((line["type"], line["summary"], position[line["firstKeptEntryId"]], line["tokensBefore"]))
        else:
            out.append((line["type"],))
    return out


async def test_e09_a_compaction_remembers_what_the_one_before_kept(tmp_path: Path) -> None:
    steps = [reply(long("a", 60), 300), reply(long("b", 60), 850), "FIRST", reply(long("d", 60), 860), "SECOND"]
    model = scripted(steps, context_window=1000)
    async with open_agent(tmp_path, model, settings=SMALL) as runtime:
        for question in ("q1", "q2", "q3"):
            await runtime.ask(question)
        entry = runtime.store.index.get("agent:main:main")
        compactions = [r for r in rows(runtime) if r["type"] == "compaction"]
    update = text_of(model.requests[4].messages[0].content)
    assert "b59" in update  # kept by the first, folded by the second
    assert "<previous-summary>\nFIRST" in update
    assert [c["summary"] for c in compactions] == ["FIRST", "SECOND"]
    assert entry is not None
    assert entry["compactionCount"] == 2
    assert entry["lastCompactionCause"] == "threshold"


OVERFLOW = {"error": "prompt is too long: 1200 tokens > 1000 maximum"}


async def test_an_overflow_is_compacted_and_tried_again(tmp_path: Path) -> None:
    talk = [reply(long("z", 80), 200), reply(long("a", 80), 300)]
    model = scripted([*talk, OVERFLOW, "SUMMARY", "BEGINNING", reply("recovered", 150)], context_window=1000)
    async with open_agent(tmp_path, model, settings=SMALL) as runtime:
        recorder = Recorder()
        runtime.listeners.append(recorder)
        await runtime.ask("zeroth")
        await runtime.ask("first")
        result = await runtime.ask("second")
    assert result.text == "recovered"
    assert result.compactions == 1
    assert said(model.requests[5].messages)[-1] == "user:second"
    (end,) = recorder.of(e.AutoCompactionEnd)
    assert (end.reason, end.will_retry, end.error) == ("overflow", True, None)


async def test_an_overflow_that_nothing_helps_is_a_clear_error_and_keeps_the_session(tmp_path: Path) -> None:
    talk = [reply(long("z", 80), 200), reply(long("a", 80), 300)]
    model = scripted([*talk, OVERFLOW, "SUMMARY", "BEGINNING", *[OVERFLOW] * 4], context_window=1000)
    async with open_agent(tmp_path, model, settings=SMALL) as runtime:
        await runtime.ask("zeroth")
        await runtime.ask("first")
        before = rows(runtime)
        result = await runtime.ask("second")
        after = rows(runtime)
    assert isinstance(result.error, ContextOverflow)
    assert "larger window" in result.error.hint
    assert after[: len(before)] == before
    assert sum(r["type"] == "compaction" for r in after) == 1


async def test_with_compaction_switched_off_nothing_compacts(tmp_path: Path) -> None:
    model = scripted([reply(long("a", 80), 950), OVERFLOW], context_window=1000)
    async with open_agent(tmp_path, model, settings={**SMALL, "compaction.enabled": False}) as runtime:
        await runtime.ask("first")
        result = await runtime.ask("second")
        assert not any(r["type"] == "compaction" for r in rows(runtime))
    assert isinstance(result.error, ContextOverflow)
    assert "compaction.enabled is false" in result.error.hint


async def test_a_failed_summary_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    model = scripted([reply(long("a", 60), 300), reply(long("b", 60), 850), {"error": "boom"}, reply("c", 10)])
    model = scripted(
        [reply(long("a", 60), 300), reply(long("b", 60), 850), {"error": "invalid key"}, "S", reply("c", 10)],
        context_window=1000,
    )
    async with open_agent(tmp_path, model, settings=SMALL) as runtime:
        recorder = Recorder()
        runtime.listeners.append(recorder)
        await runtime.ask("q1")
        result = await runtime.ask("q2")
        assert result.error is None
        assert [x.error for x in recorder.of(e.AutoCompactionEnd)] == ["invalid key"]
        assert not any(r["type"] == "compaction" for r in rows(runtime))
        assert (await runtime.ask("q3")).text == "c"


async def test_a_plugin_summarises_cancels_or_fails(tmp_path: Path) -> None:
    class Summary:
        name = "summary"

        def __init__(self) -> None:
            self.answers: list[Any] = [
                h.CompactionResult(cancel=True, reason="not now"),
                RuntimeError("broke"),
                h.CompactionResult("PLUGIN SUMMARY", details={"mine": True}),
            ]
            self.after: list[h.AfterCompaction] = []

        @hookimpl
        async def on_compaction(self, event: h.Compacting, host: Host) -> h.CompactionResult:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            assert event.preparation.first_kept_entry_id
            return answer

        @hookimpl
        def after_compaction(self, event: h.AfterCompaction) -> None:
            self.after.append(event)

    plugin = Summary()
    model = scripted(
        [reply(long("a", 60), 300), reply(long("b", 60), 850), "ENGINE", reply(long("d", 60), 870)],
        context_window=1000,
    )
    async with open_agent(tmp_path, model, settings=SMALL, plugins=[plugin]) as runtime:
        await runtime.ask("q1")
        await runtime.ask("q2")  # cancelled
        assert not any(r["type"] == "compaction" for r in rows(runtime))
        await runtime.ask("q3")  # before the prompt: the plugin fails, the engine summarises; after: the plugin
        compactions = [r for r in rows(runtime) if r["type"] == "compaction"]
    assert compactions[0]["summary"].endswith("ENGINE")
    assert compactions[1]["summary"] == "PLUGIN SUMMARY"
    assert compactions[1]["fromHook"] is True
    details = compactions[1]["details"]
    assert (details["mine"], details["cause"], details["summarisedBy"]) == (True, "threshold", "plugin")
    assert details["flush"] == "none: slot"
    assert [a.cause for a in plugin.after] == ["threshold", "threshold"]


async def test_a_manual_compaction_takes_instructions_and_says_when_there_is_nothing(tmp_path: Path) -> None:
    settings = {**SMALL, "compaction.keep_recent_tokens": 10}
    model = scripted([reply(long("a", 60), 300), reply(long("b", 60), 400), "SUMMARY", "PREFIX"])
    async with open_agent(tmp_path, model, settings=settings) as runtime, runtime.session() as session:
        await session.prompt("q1")
        await session.prompt("q2")
        outcome = await session.compact("watch the numbers")
        assert outcome.freed > 0
        asked = text_of(next(m for m in model.requests[2].messages if isinstance(m, UserMessage)).content)
        assert "Additional focus: watch the numbers" in asked
        again = await session.compact()
        assert "nothing to compact" in again.error


# --- tools, hooks, queues -------------------------------------------------------------------------------


async def test_tools_run_and_results_go_back(tmp_path: Path) -> None:
    model = scripted([tool_call(), "finished"])
    async with open_agent(tmp_path, model, tools=[demo("tool text")]) as runtime:
        result = await runtime.ask("use the tool")
    assert result.text == "finished"
    assert said(model.requests[1].messages)[-1] == "toolResult:tool text"
    assert "demo" in [t.name for t in model.requests[0].tools]


async def test_a_declined_tool_is_told_to_the_model(tmp_path: Path) -> None:
    async def no(_tool: Tool, _arguments: Any) -> bool:
        return False

    model = scripted([tool_call(), "fine"])
    async with open_agent(tmp_path, model, tools=[demo(writes=True)], confirm=no) as runtime:
        await runtime.ask("go")
    assert said(model.requests[1].messages)[-1] == "toolResult:The user declined this tool call."


async def test_hooks_shape_the_request_without_touching_the_transcript(tmp_path: Path) -> None:
    class Shape:
        name = "shape"

        @hookimpl
        def input(self, event: h.Input) -> h.InputResult:
            return h.InputResult(event.text + "!")

        @hookimpl
        def before_prompt_build(self, event: h.BeforePromptBuild) -> h.PromptAddition:
            return h.PromptAddition(append_system="APPENDED", prepend_context="CONTEXT")

        @hookimpl
        def context(self, event: h.BeforeModelCall) -> list[Message]:
            return list(event.messages[-1:])

    model = scripted(["one", "two"])
    async with open_agent(tmp_path, model, plugins=[Shape()]) as runtime:
        await runtime.ask("q1")
        await runtime.ask("q2")
        stored = [r["message"] for r in rows(runtime) if r["type"] == "message"]
    users = [m["content"][0]["text"] for m in stored if m["role"] == "user"]
    assert users == ["q1!", "q2!"]
    assert said(model.requests[1].messages) == ["user:CONTEXT\n\nq2!"]
    assert model.requests[1].system_prompt.endswith("APPENDED")


async def test_a_plugin_may_answer_itself(tmp_path: Path) -> None:
    class Ping:
        name = "ping"

        @hookimpl
        def input(self, event: h.Input) -> h.InputResult:
            return h.InputResult(handled=True, reply="pong")

    model = scripted([])
    async with open_agent(tmp_path, model, plugins=[Ping()]) as runtime:
        result = await runtime.ask("ping")
    assert (result.text, result.handled, model.requests) == ("pong", True, [])


async def test_steering_and_follow_ups_enter_the_run(tmp_path: Path) -> None:
    async def slow(_arguments: Any, _context: Any) -> str:
        await asyncio.sleep(0.05)
        return "done"

    tool = Tool("slow", "", {"type": "object"}, slow)
    model = scripted([tool_call("slow"), "saw it", "then this"])
    async with open_agent(tmp_path, model, tools=[tool]) as runtime, runtime.session() as session:
        running = asyncio.create_task(session.prompt("go"))
        while not model.requests:
            await asyncio.sleep(0.005)
        session.agent.steer("turn left")
        session.agent.follow_up("and stop")
        with pytest.raises(UsageError, match="a turn is running"):
            await session.agent.prompt("again")
        result = await running
    assert said(model.requests[1].messages)[-1] == "user:turn left"
    assert said(model.requests[2].messages)[-1] == "user:and stop"
    assert result.text == "then this"


async def test_an_abort_at_any_moment_leaves_a_legal_transcript(tmp_path: Path) -> None:
    model = scripted([{"text": "never", "delayMs": 5_000}, "after"])
    async with open_agent(tmp_path, model) as runtime, runtime.session() as session:
        running = asyncio.create_task(session.prompt("go"))
        while not model.requests:
            await asyncio.sleep(0.005)
        session.abort()
        result = await running
        assert result.aborted
        assert (await session.prompt("again")).text == "after"
    assert said(model.requests[1].messages) == ["user:go", "user:again"]


async def test_the_host_acts_on_the_session(tmp_path: Path) -> None:
    class Acts:
        name = "acts"

        def __init__(self) -> None:
            self.silent: Any = None

        @hookimpl
        async def before_turn(self, event: h.BeforeTurn, host: Host) -> None:
            if event.prompt == "one":
                self.silent = await host.run_silent_turn("save what matters", tools=["demo"])
                answer = await host.complete("2+2?")
                host.append_entry("acts", {"answer": text_of(answer.content)})
                host.enqueue_event("the window was refreshed")
                await host.write_memory("memory/x.md", "a fact")
                host.patch_session_entry(memoryFlushAt=7)

    plugin = Acts()
    steps = [tool_call(), "NO_REPLY", "4", "first answer", "second answer"]
    model = scripted(steps)
    async with open_agent(tmp_path, model, plugins=[plugin], tools=[demo()]) as runtime:
        await runtime.ask("one")
        entry = runtime.store.index.get("agent:main:main")
        stored = rows(runtime)
        assert "a fact" in (runtime.workspace / "memory/x.md").read_text()
    assert (plugin.silent.text, plugin.silent.success) == ("NO_REPLY", True)
    assert [t.name for t in model.requests[0].tools] == ["demo"]
    assert entry is not None
    assert entry["memoryFlushAt"] == 7
    assert "save what matters" not in json.dumps(stored)
    assert {"answer": "4"} in [r.get("data") for r in stored]
    assert said(model.requests[3].messages) == ["user:the window was refreshed", "user:one"]
    assert "pendingEvents" not in entry


async def test_two_runtimes_take_turns_on_one_session(tmp_path: Path) -> None:
    first, second = scripted(["a1", "a3"]), scripted(["a2"])
    async with open_agent(tmp_path, first) as one, open_agent(tmp_path, second) as two, one.session() as session:
        await session.prompt("q1")
        await two.ask("q2")
        await session.prompt("q3")
        (path,) = one.store.folder.glob("*.jsonl")
    assert said(first.requests[1].messages) == [
        "user:q1",
        "assistant:a1",
        "user:q2",
        "assistant:a2",
        "user:q3",
    ]
    assert len(SessionFile.open(path).context().messages) == 6


async def test_queued_lines_wait_for_a_turn_that_stores_them(tmp_path: Path) -> None:
    class Full:
        name = "full"

        @hookimpl
        def before_agent_start(self, event: h.BeforePromptBuild) -> None: ...

    model = scripted(["one", "two"])
    async with open_agent(tmp_path, model, plugins=[Full()]) as runtime, runtime.session() as session:
        await session.prompt("first")
        session.agent.record.enqueue("a line")
        file = session.agent.file
        real = file.append_message
        file.append_message = lambda _message: (_ for _ in ()).throw(OSError("disk full"))  # type: ignore[method-assign]
        with pytest.raises(OSError, match="disk full"):
            await session.prompt("second")
        file.append_message = real  # type: ignore[method-assign]
        assert (runtime.store.index.get("agent:main:main") or {})["pendingEvents"] == ["a line"]
        await session.prompt("third")
        assert "pendingEvents" not in (runtime.store.index.get("agent:main:main") or {})
    assert said(model.requests[-1].messages)[-2:] == ["user:a line", "user:third"]
