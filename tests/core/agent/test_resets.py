"""Resets of a running agent: who asks, what is kept, in which order, and what becomes of the transcript (rows G28 to
G33, G50 to G52)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from inside import lamella

from lamella.plugins import hookimpl
from lamella.runtime import Runtime
from lamella.session import BEGUN
from lamella.sessions.routing import Chat
from lamella.sessions.transcript import SessionFile
from lamella.sessions.upkeep import plan_restore, restore
from lamella.text.days import unix_ms
from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.messages import UserMessage, text_of

KEY = "agent:main:main"


class Watch:
    """Tells what plugins see of sessions that begin and end."""

    name = "watch"

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    @hookimpl
    def session_end(self, event: h.SessionEnd, host: Host) -> None:
        assert host.turn.session_id == event.session_id == host.session_entry()["sessionId"]
        said = [text_of(m.content) for m in host.messages() if isinstance(m, UserMessage)]
        self.seen.append(("end", event.reason, event.transcript.is_file(), said))

    @hookimpl
    def session_start(self, event: h.SessionStart, host: Host) -> None:
        assert host.turn.session_id == event.session_id == host.session_entry()["sessionId"]
        self.seen.append(("start", event.reason, event.bare))


def agent(home: Path, *plugins: Any, settings: Mapping[str, Any] | None = None) -> Runtime:
    return open_agent(home, scripted(["a"] * 30), plugins=plugins, settings=settings)


def entry(runtime: Runtime, key: str = KEY) -> dict[str, Any]:
    return dict(runtime.store.index.get(key) or {})


def age(runtime: Runtime, minutes: int, *fields: str) -> None:
    runtime.store.index.update(KEY, lambda old: {**(old or {}), **{f: unix_ms() - minutes * 60_000 for f in fields}})


def live(runtime: Runtime) -> list[str]:
    return sorted(p.stem for p in runtime.sessions_dir.glob("*.jsonl"))


def archives(runtime: Runtime) -> list[str]:
    return sorted(p.name.split(".")[0] for p in runtime.sessions_dir.glob("*.jsonl.reset.*"))


async def test_g28_g29_a_request_ends_one_session_and_begins_another(tmp_path: Path) -> None:
    watch = Watch()
    async with agent(tmp_path, watch) as runtime:
        first = await runtime.ask("hello")
        session = runtime.session()
        second = await session.receive("/NEW tell me a joke")
        third = await session.receive("/reset")
        assert (third.text, third.handled) == (BEGUN, True)
        assert archives(runtime) == sorted([first.session_id, second.session_id])
        assert entry(runtime)["sessionId"] == third.session_id
        assert live(runtime) == []  # nothing was said yet
        assert (await session.receive("go on")).session_id == third.session_id
    assert watch.seen == [
        ("start", "new", False),
        ("end", "reset", True, ["hello"]),
        ("start", "reset", False),
        ("end", "reset", True, ["tell me a joke"]),
        ("start", "reset", True),
    ]


async def test_g31_g32_groups_and_senders(tmp_path: Path) -> None:
    async with agent(tmp_path) as runtime:
        group = runtime.session(runtime.chat_key(Chat("telegram", "-1", "group")).text)
        first = await group.receive("hello")
        assert (await group.receive("/reset", authorized=False)).session_id == first.session_id
        assert (await group.receive("@bot /reset")).session_id == first.session_id  # nobody told its name
        assert (await group.receive("@bot /reset", names=("bot",))).session_id != first.session_id


async def test_g33_what_was_chosen_stays_and_counters_go(tmp_path: Path) -> None:
    chosen = {"label": "work", "modelOverride": "m", "thinkingLevel": "high"}
    async with agent(tmp_path) as runtime:
        async with runtime.session(thinking="high") as session:
            await session.prompt("x")
        runtime.store.index.patch(KEY, {**chosen, "compactionCount": 4, "memoryFlushAt": 1})
        async with runtime.session() as session:
            await session.receive("/new y")
            assert session.agent.thinking == "high"
        found = entry(runtime)
        assert chosen.items() <= found.items()
        assert found["compactionCount"] == 0
        assert "memoryFlushAt" not in found


@pytest.mark.parametrize(("mode", "minutes"), [("idle", 61), ("daily", 60 * 25)])
async def test_sessions_that_are_over_end_with_the_next_message(mode: str, minutes: int, tmp_path: Path) -> None:
    watch = Watch()
    async with agent(tmp_path, watch, settings={"session.reset.mode": mode}) as runtime:
        first = await runtime.ask("x")
        runtime.store.index.patch(KEY, {"label": "work"})
        age(runtime, minutes, "lastInteractionAt")
        second = await runtime.ask("y")
        assert archives(runtime) == [first.session_id]
        assert second.session_id != first.session_id
        assert "label" not in entry(runtime)
    assert [seen[:2] for seen in watch.seen] == [("start", "new"), ("end", mode), ("start", mode)]


async def test_without_a_policy_a_session_goes_on_for_ever(tmp_path: Path) -> None:
    async with agent(tmp_path) as runtime:
        first = await runtime.ask("x")
        age(runtime, 60 * 24 * 400, "lastInteractionAt", "updatedAt")
        assert (await runtime.ask("y")).session_id == first.session_id


async def test_g52_what_runs_by_itself_neither_ends_nor_freshens_a_session(tmp_path: Path) -> None:
    async with agent(tmp_path, settings={"session.reset.mode": "idle"}) as runtime:
        first = await runtime.ask("x")
        age(runtime, 120, "lastInteractionAt")
        async with runtime.session(trigger="heartbeat") as background:
            assert (await background.prompt("beat")).session_id == first.session_id
        runtime.store.index.patch(KEY, {"displayName": "d"})
        assert (await runtime.ask("y")).session_id != first.session_id


async def test_a_compaction_by_hand_is_no_message(tmp_path: Path) -> None:
    async with agent(tmp_path, settings={"session.reset.mode": "idle"}) as runtime:
        first = await runtime.ask("x")
        age(runtime, 120, "lastInteractionAt")
        async with runtime.session() as session:
            await session.compact()
            assert await session.begin() == first.session_id


async def test_g51_a_request_waits_for_its_turn(tmp_path: Path) -> None:
    async with agent(tmp_path) as runtime:
        session = runtime.session()
        results = await asyncio.gather(*(session.receive(text) for text in ("1", "2", "/new 3", "4")))
        ids = [result.session_id for result in results]
        assert ids[0] == ids[1] != ids[2] == ids[3]


async def test_a_transcript_that_cannot_be_read_does_not_hinder_a_reset(tmp_path: Path) -> None:
    async with agent(tmp_path) as runtime:
        first = await runtime.ask("x")
        path = runtime.sessions_dir / f"{first.session_id}.jsonl"
        path.write_text("no session at all\n")
        second = await runtime.session().receive("/new y")
        assert second.error is None
        (archive,) = runtime.sessions_dir.glob("*.jsonl.reset.*")
        assert archive.read_text() == "no session at all\n"
        assert "transcript_unreadable" in [notice.code for notice in runtime.notices]


async def test_a_transcript_that_cannot_be_renamed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Path, target: Path) -> Path:
        raise PermissionError(13, "in use", str(self))

    async with agent(tmp_path) as runtime:
        first = await runtime.ask("x")
        with monkeypatch.context() as fault:
            fault.setattr(Path, "rename", fails)
            second = await runtime.session().receive("/new y")
        assert live(runtime) == sorted([first.session_id, second.session_id])
        assert entry(runtime)["sessionId"] == second.session_id


async def test_other_words_can_be_triggers(tmp_path: Path) -> None:
    async with agent(tmp_path, settings={"session.reset_triggers": ["/fresh", ""]}) as runtime:
        session = runtime.session()
        first = await session.receive("/new is ordinary now")
        assert (await session.receive("/fresh start")).session_id != first.session_id
        assert prompts(runtime, KEY) == ["start"]


def test_g28_g29_requests_at_the_command_line(tmp_path: Path) -> None:
    ask = lambda text: lamella("ask", text, "--model", "offline", "--json", home=tmp_path, check=True).json  # noqa: E731
    first, bare, second, third = (ask(text) for text in ("hello", "/new", "again", "/RESET and again"))
    assert (bare["text"], bare["sessionId"]) == (BEGUN, second["sessionId"])
    assert len({first["sessionId"], second["sessionId"], third["sessionId"]}) == 3


async def test_a_shared_transcript_stays_where_it_is(tmp_path: Path) -> None:
    async with agent(tmp_path) as runtime:
        first = await runtime.ask("x")
        runtime.store.index.update("agent:main:other", lambda _old: entry(runtime))
        await runtime.session().receive("/new y")
        assert (live(runtime).count(first.session_id), archives(runtime)) == (1, [])


async def test_runtimes_that_reset_a_key_at_once_lose_nothing(tmp_path: Path) -> None:
    async with agent(tmp_path) as one, agent(tmp_path) as two:
        for number in range(5):
            asked = [runtime.session().receive(f"/new {name}{number}") for runtime, name in ((one, "a"), (two, "b"))]
            assert [result.error for result in await asyncio.gather(*asked)] == [None, None]
        said = []
        for path in one.sessions_dir.glob("*.jsonl*"):
            if path.suffix != ".lock":
                messages = SessionFile.open(path).context().messages
                said += [text_of(m.content) for m in messages if isinstance(m, UserMessage)]
        assert sorted(said) == sorted(f"{name}{n}" for n in range(5) for name in "ab")
        assert live(one) == [entry(one)["sessionId"]]


async def test_a_plugin_that_fails_at_the_end_does_not_hinder_a_reset(tmp_path: Path) -> None:
    class Fails:
        name = "fails"

        @hookimpl
        def session_end(self, event: h.SessionEnd) -> None:
            raise RuntimeError("no")

    async with agent(tmp_path, Fails()) as runtime:
        first = await runtime.ask("x")
        assert (await runtime.session().receive("/new y")).session_id != first.session_id
        assert archives(runtime) == [first.session_id]


async def test_a_reset_archive_comes_back_with_its_entry(tmp_path: Path) -> None:
    async with agent(tmp_path) as runtime:
        first = await runtime.ask("x")
        (path,) = runtime.sessions_dir.glob("*.jsonl")
        before = path.read_bytes()
        runtime.store.index.patch(KEY, {"label": "work", "memoryFlushAt": 1})
        await runtime.session().receive("/new")
        (archive,) = runtime.sessions_dir.glob("*.jsonl.reset.*")
        assert archive.read_bytes() == before
        restore(runtime.store, plan_restore(runtime.store, archive))
        assert (entry(runtime)["sessionId"], entry(runtime)["memoryFlushAt"]) == (first.session_id, 1)
        assert path.read_bytes() == before


# --- threads ---------------------------------------------------------------------------------------------

PARENT = "agent:main:slack:channel:c"
THREAD = f"{PARENT}:thread:1"


def prompts(runtime: Runtime, key: str) -> list[str]:
    file = SessionFile.open(runtime.store.require(runtime.key(key)).path)
    return [text_of(m.content) for m in file.context().messages if isinstance(m, UserMessage)]


async def test_a_thread_begins_as_a_copy_once(tmp_path: Path) -> None:
    async with agent(tmp_path) as runtime:
        await runtime.ask("in the channel", key=PARENT)
        began = await runtime.ask("in the thread", key=THREAD)
        await runtime.ask("later", key=PARENT)
        assert prompts(runtime, THREAD) == ["in the channel", "in the thread"]
        assert prompts(runtime, PARENT) == ["in the channel", "later"]
        file = SessionFile.open(runtime.store.require(runtime.key(THREAD)).path)
        assert (file.id, file.header.fields["sessionKey"]) == (began.session_id, THREAD)
        await runtime.session(THREAD).receive("/new alone")
        assert prompts(runtime, THREAD) == ["alone"]


@pytest.mark.parametrize(("tokens", "limit", "copied"), [(100_001, 100_000, 0), (100_000, 100_000, 1), (10**7, 0, 1)])
async def test_g50_a_large_parent_is_not_copied(tokens: int, limit: int, copied: int, tmp_path: Path) -> None:
    async with agent(tmp_path, settings={"session.parent_fork_max_tokens": limit}) as runtime:
        await runtime.ask("in the channel", key=PARENT)
        runtime.store.index.patch(PARENT, {"totalTokens": tokens, "totalTokensFresh": True})
        await runtime.ask("in the thread", key=THREAD)
        assert prompts(runtime, THREAD)[: copied + 1] == ["in the channel", "in the thread"][1 - copied :]
        assert entry(runtime, THREAD)["forkedFromParent"] is True
