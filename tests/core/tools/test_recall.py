"""The tool `session_recall`, in sessions that were really compacted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import BUILT_IN_TOOLS, open_agent, scripted
from tool_calls import call, context_in, shown

from lamella.errors import ToolError
from lamella.runtime import Runtime
from lamella.types.messages import ToolResultMessage, text_of

SETTINGS = {
    "tools.deny": [t for t in BUILT_IN_TOOLS if t != "session_recall"],
    "compaction.keep_recent_tokens": 50,
}


def asks(**arguments: Any) -> dict[str, Any]:
    return {"content": [{"type": "toolCall", "id": "c1", "name": "session_recall", "arguments": arguments}]}


async def compacted(runtime: Runtime, *texts: str) -> None:
    for text in texts:
        await runtime.ask(text)
    async with runtime.session() as session:
        outcome = await session.compact()
        assert not outcome.error


def answer(runtime: Runtime) -> ToolResultMessage:
    located = runtime.store.require(runtime.key())
    messages = runtime.store.open(located, cwd="").context().messages
    return next(m for m in reversed(messages) if isinstance(m, ToolResultMessage))


async def test_a_model_gets_back_what_a_summary_has_lost(tmp_path: Path) -> None:
    model = scripted(
        ["ok " * 60, "ok " * 60, "A short summary.", asks(query="boiler number"), {"text": "It is AB-1234."}]
    )
    async with open_agent(tmp_path, model, settings=SETTINGS) as runtime:
        await compacted(runtime, "The boiler has the number AB-1234. " + "x " * 50, "Something else. " + "y " * 50)
        await runtime.ask("Which number has the boiler?")
        found = answer(runtime)
    assert not found.is_error
    text = text_of(found.content)
    assert "AB-1234" in text
    assert "Which number" not in text  # that is before its eyes
    assert found.details["entries"][0] in text


async def test_it_reads_an_entry_whole_and_says_how_to_go_on(tmp_path: Path) -> None:
    long = "The key is under the pot. " + "钥匙" * 6000
    model = scripted(["ok", "ok " * 60, "A short summary."], context_window=200_000)
    async with open_agent(tmp_path, model, settings=SETTINGS) as runtime:
        await compacted(runtime, long, "else " * 100)
        entry = runtime.store.index.get("agent:main:main") or {}
        context = context_in(runtime.workspace, session_id=entry["sessionId"])
        tools = runtime.tools.values()
        first = await call(tools, "session_recall", context, query="key pot")
        (found,) = first.details["entries"]
        whole = shown(await call(tools, "session_recall", context, entry=found))
        assert "Use offset=8000 to continue." in whole
        rest = shown(await call(tools, "session_recall", context, entry=found, offset=8000))
    assert len(shown(first)) < 1200
    assert rest.split("\n", 1)[1] == long[8000:]


async def test_nothing_folded_and_wrong_arguments_are_told(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["ok"]), settings=SETTINGS) as runtime:
        await runtime.ask("tea")
        entry = runtime.store.index.get("agent:main:main") or {}
        context = context_in(runtime.workspace, session_id=entry["sessionId"])
        tools = runtime.tools.values()
        assert "Nothing that was folded" in shown(await call(tools, "session_recall", context, query="tea"))
        for wrong in ({}, {"query": " "}, {"query": "tea", "entry": "e"}):
            with pytest.raises(ToolError, match="needs query"):
                await call(tools, "session_recall", context, **wrong)
        with pytest.raises(ToolError, match="'nobody' not found"):
            await call(tools, "session_recall", context, entry="nobody")


async def test_only_the_calling_session_is_read(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["ok", "ok"]), settings=SETTINGS) as runtime:
        await runtime.ask("tea")
        await runtime.ask("secret", key="agent:main:direct:bob")
        for wrong in (context_in(tmp_path, session_id="another"), context_in(tmp_path, session_id="../x")):
            with pytest.raises(ToolError, match="replaced by a new one"):
                await call(runtime.tools.values(), "session_recall", wrong, query="secret")


async def test_it_can_be_switched_off(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted([]), settings={"tools.deny": ["session_recall"]}) as runtime:
        assert "session_recall" not in runtime.tools
    async with open_agent(tmp_path, scripted([]), settings={"tools.deny": []}) as runtime:
        tool = runtime.tools["session_recall"]
        assert (tool.owner, tool.writes) == ("core", False)
