"""A process that uses an agent folder as several do at once, until anything comes in.

session_soak.py HOME SEED       turns, resets, compactions, maintenance, restoring, and syncs of memory

It prints the token of a message once its turn has ended, and counts it in sessions.json before. Nothing is ever
deleted, so each of them stays.
"""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

from agents import open_agent, scripted
from attrs import evolve
from notes import memory_context
from soak import lines

from lamella.errors import SessionError, UsageError
from lamella.runtime import Runtime
from lamella.sessions import upkeep
from lamella.sessions.maintenance import Limits
from lamella_memory_core import Config
from lamella_memory_core.service import Memory

KEYS = [f"agent:main:{name}" for name in ("main", "a", "b", "c", "d", "e")]
COUNTER = "agent:main:counter"
# What may be said of a session that another process is working on, or has changed.
TAKEN = ("is locked", "in the meantime", "No such file", "has a session by now")


def open_runtime(home: Path) -> Runtime:
    model = scripted([lambda _request: "done"] * 100_000, context_window=50_000)
    return open_agent(home, model, settings={"compaction.keep_recent_tokens": 50, "session.lock_timeout_seconds": 60})


def open_memory(home: Path, runtime: Runtime) -> Memory:
    config = Config(session_memory=True, embedder="none")
    context = memory_context(home / "ws", state="index", config=config)
    return Memory(evolve(context, sessions_dir=runtime.sessions_dir), config)


async def use(home: Path, seed: str) -> None:
    chance = random.Random(seed)
    async with open_runtime(home) as runtime:
        memory = open_memory(home, runtime)
        for number, line in enumerate(lines()):
            if line:
                memory.close()
                return
            key = chance.choice(KEYS)
            match chance.randrange(20):
                case 0 | 1:
                    async with runtime.session(key) as session:
                        await session.compact()
                case 2 | 3:
                    _maintain(runtime, chance.randrange(1, 5))
                case 4:
                    _restore(runtime, chance)
                case 5:
                    memory.sync()
                case _:
                    await _say(runtime, key, f"{seed}.{number}", new=chance.random() < 0.1)


async def _say(runtime: Runtime, key: str, token: str, *, new: bool) -> None:
    result = await runtime.ask(f"<{token}> " + "and more " * 40, key=key, new=new)
    assert result.error is None, result.error
    runtime.store.index.update(COUNTER, _one_more)
    sys.stdout.write(f"{token}\n")
    sys.stdout.flush()


def _one_more(entry: dict[str, Any] | None) -> dict[str, Any]:
    return {"sessionId": "counter", "updatedAt": 1, "turns": (entry or {}).get("turns", 0) + 1}


def _maintain(runtime: Runtime, entries: int) -> None:
    for done in upkeep.maintain(runtime.store, Limits(entries=entries), {KEYS[0], COUNTER}):
        assert not done.problem or any(words in done.problem for words in TAKEN), done.problem


def _restore(runtime: Runtime, chance: random.Random) -> None:
    try:
        archives = upkeep.list_archives(runtime.store)
        if archives:
            chosen = chance.choice(archives).path
            upkeep.restore(runtime.store, upkeep.plan_restore(runtime.store, chosen))
    except (SessionError, UsageError, FileNotFoundError) as error:
        assert any(words in str(error) for words in (*TAKEN, "is there already", "does not tell")), error


if __name__ == "__main__":
    asyncio.run(use(Path(sys.argv[1]), sys.argv[2]))
