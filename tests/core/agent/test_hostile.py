"""Tools, files and callers that misbehave: the turn goes on, nothing stays locked, nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, open_agent, scripted

from lamella import hookimpl
from lamella.errors import ContextOverflow, ModelAborted, SessionLocked, TranscriptError
from lamella.types import hooks as h
from lamella.types.events import Notice, PluginFault
from lamella.types.host import Host
from lamella.types.messages import ToolResultMessage, text_of
from lamella.types.results import ToolResult
from lamella.types.tools import Tool

CALL = {"content": [{"type": "toolCall", "id": "c1", "name": "demo", "arguments": {}}]}
EMPTY = {"type": "object", "properties": {}}


def demo(run: Any) -> Tool:
    return Tool("demo", "A demo.", EMPTY, run)


def leave(_arguments: Any, _context: Any) -> str:
    sys.exit(3)


async def leave_async(_arguments: Any, _context: Any) -> str:
    sys.exit(3)


async def cancel_async(_arguments: Any, _context: Any) -> str:
    raise asyncio.CancelledError


def stop_iteration(_arguments: Any, _context: Any) -> str:
    raise StopIteration


def gives(value: Any) -> Any:
    return lambda _arguments, _context: value


CIRCLE: dict[str, Any] = {}
CIRCLE["self"] = CIRCLE


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (leave, "SystemExit"),
        (leave_async, "SystemExit"),
        (cancel_async, "CancelledError"),
        (stop_iteration, "StopIteration"),
        (gives(None), "returned NoneType"),
        (gives(b"\xff"), "returned bytes"),
        (gives(ToolResult(None)), "content of type NoneType"),  # type: ignore[arg-type]
        (gives(ToolResult((1,))), "a block of type int"),  # type: ignore[arg-type]
        (gives(ToolResult("fine", details={"x": object()})), "details that are not JSON"),
        (gives(ToolResult("fine", details=CIRCLE)), "details that are not JSON"),
    ],
)
async def test_a_tool_that_misbehaves_gives_an_error_result(run: Any, said: str, tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted([CALL, "done", "next"]), tools=[demo(run)]) as runtime:
        result = await runtime.ask("one")
        assert result.text == "done"
        (answer,) = [m for m in result.messages if isinstance(m, ToolResultMessage)]
        assert answer.is_error
        assert said in text_of(answer.content)
        assert (await runtime.ask("two")).text == "next"


async def test_a_stored_result_that_a_plugin_broke_is_stored_as_it_was(tmp_path: Path) -> None:
    class Breaks:
        name = "breaks"

        @hookimpl
        def tool_result_persist(self, event: h.ToolResultPersist, host: Host) -> ToolResultMessage:
            return ToolResultMessage("c1", "demo", (object(),))  # type: ignore[arg-type]

    model = scripted([CALL, "done"])
    async with open_agent(tmp_path, model, tools=[demo(gives("fine"))], plugins=[Breaks()]) as runtime:
        result = await runtime.ask("one")
    assert [text_of(m.content) for m in result.messages if isinstance(m, ToolResultMessage)] == ["fine"]


async def test_a_cancelled_wait_for_a_busy_session_takes_no_lock(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["one", "two"])) as runtime:
        await runtime.ask("first")
        located = runtime.store.require(runtime.key())
        other = runtime.store.lock(located)
        other.acquire()
        waiting = asyncio.ensure_future(runtime.ask("second"))
        await asyncio.sleep(0.2)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        other.release()
        await asyncio.sleep(0.2)
        assert not list(runtime.store.folder.glob("*.lock"))
        assert (await runtime.ask("third")).text == "two"


async def test_a_session_that_is_removed_while_one_waits_leaves_nothing_locked(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["one", "two"])) as runtime:
        await runtime.ask("first")
        other = runtime.store.lock(runtime.store.require(runtime.key()))
        other.acquire()
        waiting = asyncio.ensure_future(runtime.ask("second"))
        await asyncio.sleep(0.2)
        runtime.store.index.remove(runtime.key().text)
        other.release()
        with contextlib.suppress(Exception):
            await waiting
        assert not list(runtime.store.folder.glob("*.lock"))


async def test_a_message_that_can_never_fit_does_not_spoil_the_session(tmp_path: Path) -> None:
    model = scripted(["one", "two"], context_window=2000)
    async with open_agent(tmp_path, model) as runtime:
        await runtime.ask("first")
        refused = await runtime.ask("word " * 5000)
        assert isinstance(refused.error, ContextOverflow)
        assert "it was not stored" in str(refused.error)
        assert (await runtime.ask("second")).text == "two"


async def test_counters_go_to_the_session_that_they_belong_to(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted([CALL, "done"]), tools=[demo(lambda *_: restart())]) as runtime:

        def restart() -> str:
            runtime.store.start(runtime.key())
            return "another process gave the key a new session"

        result = await runtime.ask("one")
        entry = runtime.store.require(runtime.key()).entry
    assert result.text == "done"
    assert entry["sessionId"] != result.session_id
    assert "usedTokens" not in entry


async def test_a_reply_is_not_withheld_when_its_counters_cannot_be_saved(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted([CALL, "done"]), tools=[demo(lambda *_: block())]) as runtime:

        def block() -> str:
            index = runtime.store.index.path
            index.unlink()
            index.mkdir()
            return "the index cannot be written"

        recorder = Recorder()
        runtime.listeners.append(recorder)
        result = await runtime.ask("one")
    assert result.text == "done"
    assert "counters_not_saved" in [notice.code for notice in recorder.of(Notice)]


async def test_an_abort_ends_the_wait_for_a_busy_session(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["one", "two"])) as runtime, runtime.session() as session:
        await session.prompt("first")
        with runtime.store.lock(runtime.store.require(runtime.key())):
            waiting = asyncio.ensure_future(session.prompt("second"))
            await asyncio.sleep(0.2)
            session.abort()
            with pytest.raises(ModelAborted):
                await asyncio.wait_for(waiting, 5)
        assert (await session.prompt("third")).text == "two"


@pytest.mark.parametrize("hook", ["input", "before_turn", "before_prompt_build"])
async def test_an_abort_does_not_wait_for_hooks_and_keeps_what_was_said(hook: str, tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def hang(self: Any, event: Any, host: Host) -> None:
        if not reached.is_set():
            reached.set()
            await asyncio.sleep(3600)

    plugin = type("Hangs", (), {"name": "hangs", hook: hookimpl(hang)})()
    model = scripted(["fine"])
    async with open_agent(tmp_path, model, plugins=[plugin]) as runtime, runtime.session() as session:
        turn = asyncio.ensure_future(session.prompt("first"))
        await asyncio.wait_for(reached.wait(), 5)
        session.abort()
        assert (await asyncio.wait_for(turn, 5)).aborted
        assert (await session.prompt("second")).text == "fine"
    assert "first" in str(model.requests[0].messages)


async def test_a_plugin_that_chooses_an_unknown_model_changes_nothing(tmp_path: Path) -> None:
    class Chooses:
        name = "chooses"

        @hookimpl
        def before_agent_start(self, event: h.BeforePromptBuild, host: Host) -> h.PromptAddition:
            return h.PromptAddition(model="nobody/nothing")

    async with open_agent(tmp_path, scripted(["fine"]), plugins=[Chooses()]) as runtime:
        assert (await runtime.ask("one")).text == "fine"


async def test_an_answer_with_wrong_parts_is_skipped(tmp_path: Path) -> None:
    class Wrong:
        name = "wrong"

        @hookimpl
        def before_prompt_build(self, event: h.BeforePromptBuild, host: Host) -> h.PromptAddition:
            return h.PromptAddition(prepend_context=5)  # type: ignore[arg-type]

    async with open_agent(tmp_path, scripted(["fine"]), plugins=[Wrong()]) as runtime:
        recorder = Recorder()
        runtime.listeners.append(recorder)
        assert (await runtime.ask("one")).text == "fine"
    assert [fault.error for fault in recorder.of(PluginFault)] == ["returned prepend_context=5, expected a string"]


async def test_a_busy_session_says_who_is_at_it(tmp_path: Path) -> None:
    settings = {"session.lock_timeout_seconds": 0.1}
    async with open_agent(tmp_path, scripted(["one", "two"]), settings=settings) as runtime:
        await runtime.ask("first")
        busy = runtime.store.lock(runtime.store.require(runtime.key()))
        with busy, pytest.raises(SessionLocked, match=r"waited 0\.1 s"):
            await runtime.ask("second")


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_transcript_that_vanishes_during_a_turn_is_not_written_into_nothing(
    replaced: bool, tmp_path: Path
) -> None:
    async with open_agent(tmp_path, scripted([CALL, "done", "again"]), tools=[demo(lambda *_: vanish())]) as runtime:

        def vanish() -> str:
            (path,) = runtime.store.folder.glob("*.jsonl")
            copy = path.read_bytes()
            path.unlink()
            if replaced:
                path.write_bytes(copy)
            return "gone"

        with pytest.raises(TranscriptError, match="removed or replaced"):
            await runtime.ask("one")
        assert (await runtime.ask("two")).error is None
        (path,) = runtime.store.folder.glob("*.jsonl")
        assert b"two" in path.read_bytes()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
async def test_a_transcript_that_is_no_file_is_not_waited_for(make: Any, tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["one"])) as runtime:
        located = runtime.store.start(runtime.key())
        make(located.path)
        with pytest.raises(TranscriptError, match="is not a regular file"):
            await runtime.ask("first")


async def test_a_transcript_replaced_between_turns_is_read_again(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["one", "two"])) as runtime, runtime.session() as session:
        await session.prompt("first")
        (path,) = runtime.store.folder.glob("*.jsonl")
        copy = path.read_bytes().replace(b"first", b"other")  # as long as before
        path.unlink()
        path.write_bytes(copy)
        await session.prompt("second")
        assert b"other" in path.read_bytes()
        assert b"second" in path.read_bytes()
