"""A session's totals hold all that it cost: its turns, summaries, silent turns, and calls of plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agents import scripted
from compacting import WINDOW, agent, entry, place, reply, talk

from lamella import hookimpl
from lamella.types import hooks as h
from lamella.types.host import Host


class Asks:
    """Calls the model before and after each turn, beside the conversation."""

    name = "asks"

    @hookimpl
    async def before_turn(self, event: h.BeforeTurn, host: Host) -> None:
        await host.run_silent_turn("what is to be kept?")

    @hookimpl
    async def agent_end(self, event: h.AgentEnded, host: Host) -> None:
        await host.complete("a title, please")


def cost(total: float) -> dict[str, Any]:
    return {"text": "x", "usage": {"input": 10, "output": 2, "totalTokens": 12, "cost": {"total": total}}}


async def test_calls_of_plugins_count(tmp_path: Path) -> None:
    model = scripted([cost(1), cost(2), cost(4)], context_window=WINDOW)
    async with agent(tmp_path, model, plugins=[Asks()]) as runtime:
        await runtime.ask("hello")
        stored = entry(runtime)
    assert stored["lifetimeUsage"] == {"input": 30, "output": 6, "cacheRead": 0, "cacheWrite": 0, "cost": 7}
    assert stored["inputTokens"] == 10  # the turn's own, as OpenClaw counts


async def test_summaries_count(tmp_path: Path) -> None:
    model = scripted([reply("SUMMARY", 70), reply("PREFIX", 7)], context_window=WINDOW)
    async with agent(tmp_path, model) as runtime:
        place(runtime, talk("a", "b", "c"))
        async with runtime.session() as session:
            done = await session.compact()
        assert done.entry_id
        assert entry(runtime)["lifetimeUsage"]["input"] == 70 + 7 * (len(model.requests) - 1)
