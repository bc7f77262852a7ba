"""Entries of sessions.json with values that lamella never writes: a turn runs, flushes and compacts all the same.

Other programs and people write that file too; a session must not be lost for a counter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from compacting import KEY, entry, is_summary, place, reply, rows, talk, words

from lamella.config.structure import structure
from lamella.runtime import Runtime
from lamella.sessions.status import session_status
from lamella.types.model import ModelRequest
from lamella_memory_core import Config, MemoryCore

WINDOW = 24_000
# Which session it is and where its transcript lies: damage of these is told in tests/core/sessions.
IDENTITY = {"sessionId", "sessionFile"}
JUNK: list[Any] = ["x", "", -1, 1.5, 10**30, True, [], [1], [[2]], {"a": 1}, [{"a": 1}]]


def agent(home: Path) -> Runtime:
    """A model that fills the window with each reply, so that each turn flushes and compacts."""

    def step(request: ModelRequest) -> dict[str, Any]:
        return reply("SUMMARY" if is_summary(request) else "NO_REPLY", 23_000)

    config, _ = structure(Config, {"embedder": "none"}, path="plugins.config.memory-core")
    assert config is not None
    model = scripted([step] * 30, context_window=WINDOW)
    return open_agent(home, model, plugins=[MemoryCore(config)], settings={"compaction.keep_recent_tokens": 500})


def within(value: Any, junk: Any) -> Any:
    """A value with everything replaced that is in it."""
    if isinstance(value, dict):
        return {name: within(inner, junk) for name, inner in value.items()}
    return [within(inner, junk) for inner in value] if isinstance(value, list) else junk


@pytest.mark.parametrize("change", [within, lambda _value, junk: junk], ids=["within", "whole"])
@pytest.mark.parametrize("junk", JUNK, ids=json.dumps)
async def test_a_turn_survives_values_of_other_kinds(change: Any, junk: Any, tmp_path: Path) -> None:
    async with agent(tmp_path) as runtime:
        place(runtime, talk(*"abcdefghijklmnop"))
        assert (await runtime.ask("one")).error is None
        index = runtime.store.folder / "sessions.json"
    stored = json.loads(index.read_text(encoding="utf-8"))
    assert {"compactions", "memoryFlushAt", "lifetimeUsage", "turns"} <= stored[KEY].keys()
    damaged = {name: v if name in IDENTITY else change(v, junk) for name, v in stored[KEY].items()}
    damaged["compactionStalled"] = change({"cause": "threshold", "tokens": 5}, junk)
    damaged["pendingEvents"] = change(["a line for the next turn"], junk)
    index.write_text(json.dumps({KEY: damaged}), encoding="utf-8")
    async with agent(tmp_path) as runtime:
        before = len(rows(runtime, "compaction"))
        (row,) = runtime.store.rows()
        assert session_status(row, runtime.settings, {}).to_json()["key"] == KEY
        for tag in ("three", "four"):
            assert (await runtime.ask(words(tag, 3_000))).error is None
        assert len(rows(runtime, "compaction")) > before
        after = entry(runtime)
    assert after["lastCompactionCause"] in ("threshold", "overflow")
    assert isinstance(after["turns"], int)
