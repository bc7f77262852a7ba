"""Turns of one session that were asked for at once: in order (row G51), and never waiting for themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted

from lamella.errors import ModelAborted, UsageError
from lamella.plugins import hookimpl
from lamella.runtime import Runtime
from lamella.sessions.lanes import Lanes
from lamella.types.messages import UserMessage, text_of


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with open_agent(tmp_path, scripted([f"answer {n}" for n in range(50)])) as runtime:
        yield runtime


def prompts(runtime: Runtime, key: str = "") -> list[str]:
    file = runtime.store.open(runtime.store.require(runtime.key(key)), cwd="/")
    return [text_of(m.content) for m in file.context().messages if isinstance(m, UserMessage)]


@pytest.mark.parametrize("several", [False, True], ids=["one object", "several objects"])
async def test_g51_messages_during_a_turn_follow_in_the_order_they_came(runtime: Runtime, several: bool) -> None:
    session = runtime.session()
    asked = [f"question {n}" for n in range(12)]
    await asyncio.gather(*((runtime.session() if several else session).prompt(text) for text in asked))
    assert prompts(runtime) == asked


async def test_sessions_do_not_wait_for_each_other(runtime: Runtime) -> None:
    place = runtime.lanes.place("agent:main:main")
    await place.take()
    waiting = asyncio.ensure_future(runtime.ask("later"))
    await runtime.ask("now", key="agent:main:other")
    assert not waiting.done()
    place.leave()
    await waiting
    assert prompts(runtime) == ["later"]


@pytest.mark.parametrize("abort", [True, False], ids=["abort", "cancel"])
async def test_who_gives_up_waiting_leaves_the_lane_free(runtime: Runtime, abort: bool) -> None:
    place, session = runtime.lanes.place("agent:main:main"), runtime.session()
    await place.take()
    waiting = asyncio.ensure_future(session.prompt("never"))
    await asyncio.sleep(0.01)
    if abort:
        session.abort()
    else:
        waiting.cancel()
    with pytest.raises(ModelAborted if abort else asyncio.CancelledError):
        await waiting
    place.leave()
    await runtime.ask("at once")
    assert prompts(runtime) == ["at once"]


async def test_giving_up_at_any_moment_keeps_nobody_out() -> None:
    lanes = Lanes()
    for steps in range(12):
        first, second = lanes.place("x"), lanes.place("x")
        await first.take()
        waiting = asyncio.ensure_future(second.take())
        for step in range(steps):
            await asyncio.sleep(0)
            if step == 3:
                first.leave()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        first.leave()
        second.leave()
        last = lanes.place("x")
        await asyncio.wait_for(last.take(), 5)
        last.leave()


async def test_a_turn_that_asks_for_another_one_of_its_session_is_told_so(tmp_path: Path) -> None:
    caught: list[str] = []

    class Asks:
        name = "asks"

        @hookimpl
        async def before_turn(self, event: Any, host: Any) -> None:
            if not caught:
                try:
                    await asyncio.create_task(runtime.ask("inner"))
                except UsageError as error:
                    caught.append(str(error))

    async with open_agent(tmp_path, scripted(["a", "b"]), plugins=[Asks()]) as runtime:
        await runtime.ask("outer")
        assert "a turn is running" in caught[0]
        await runtime.ask("next")
        assert prompts(runtime) == ["outer", "next"]


async def test_a_session_can_begin_without_a_turn(runtime: Runtime) -> None:
    await runtime.ask("before")
    session = runtime.session()
    session.reset()
    started = await session.begin()
    assert runtime.store.require(runtime.key()).entry["sessionId"] == started
    await runtime.ask("after")
    assert prompts(runtime) == ["after"]


@pytest.mark.parametrize("mode", ["warn", "enforce"])
async def test_g19_a_beginning_session_does_what_the_configuration_asks_for(mode: str, tmp_path: Path) -> None:
    settings = {"session.maintenance.mode": mode, "session.maintenance.max_entries": 2}
    async with open_agent(tmp_path, scripted(["a"] * 9), settings=settings) as runtime:
        await runtime.ask("x")  # the main session: oldest, and protected
        for key in ("a", "b", "c"):
            await runtime.ask("x", key=f"agent:main:{key}")
        kept = {row.key.removeprefix("agent:main:") for row in runtime.store.rows()}
        assert kept == ({"main", "c"} if mode == "enforce" else {"main", "a", "b", "c"})
        assert len(list(runtime.sessions_dir.glob("*.deleted.*"))) == 4 - len(kept)
        told = [notice.code for notice in runtime.notices if notice.code == "sessions_maintained"]
        assert len(told) == 4 - len(kept)
