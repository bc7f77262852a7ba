"""Plugins shape a run as extensions of the real Pi did: the same requests reach the model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from pi_golden import newest, scenarios

from lamella import Tool, hookimpl
from lamella.models.scripted import ScriptedModel
from lamella.types import hooks as h
from lamella.types.messages import Message, TextBlock, ToolCall, ToolResultMessage, blocks_of, text_of

CALL = {"type": "toolCall", "id": "c1", "name": "demo", "arguments": {}}
SECOND = {**CALL, "id": "c2"}


def recorded(name: str) -> list[list[str]]:
    """The messages of each model call that the real Pi made."""
    case = next(s for s in scenarios("agent") if s["name"] == name)
    calls = [row["llmCall"]["messages"] for row in newest(case)["log"] if "llmCall" in row]
    return [[m for m in call if not m.startswith("system:")] for call in calls]


def sent(model: ScriptedModel) -> list[list[str]]:
    return [[f"{m.role}:{_shown(m)}" for m in request.messages] for request in model.requests]


def _shown(message: Message) -> str:
    parts = []
    for block in blocks_of(getattr(message, "content", "")):
        match block:
            case TextBlock():
                parts.append(block.text)
            case ToolCall():
                parts.append(f"<call {block.id} {block.name} {{}}>")
    return "|".join(parts)


def plugin(name: str, **hooks: Any) -> Any:
    for hook, function in hooks.items():
        function.__name__ = hook
    return type(name, (), {"name": name, **{k: hookimpl(f) for k, f in hooks.items()}})()


def demo(text: str = "demo result", delay: float = 0.0) -> Tool:
    async def run(_arguments: Any, _context: Any) -> str:
        await asyncio.sleep(delay)
        return text

    return Tool("demo", "A demo.", {"type": "object", "properties": {}}, run)


def last_only(self: Any, event: h.BeforeModelCall) -> list[Message]:
    return list(event.messages[-1:])


def refuse(self: Any, event: h.BeforeToolCall) -> h.ToolCallVerdict:
    return h.ToolCallVerdict(block=True, reason="policy says no")


def adds(suffix: str) -> Any:
    def change(self: Any, event: Any) -> Any:
        if isinstance(event, h.Input):
            return h.InputResult(event.text + suffix)
        text = text_of(event.message.content) + suffix
        return ToolResultMessage("", "", (TextBlock(text),))

    return change


SCENARIOS: dict[str, tuple[list[Any], list[str], list[Any], str]] = {
    "context_hook_prunes": (["one", "two"], ["q1", "q2"], [plugin("a", context=last_only)], ""),
    "tool_call_hook_blocks": ([{"content": [CALL]}, "ok"], ["q"], [plugin("a", before_tool_call=refuse)], "x"),
    "tool_result_hooks_chain": (
        [{"content": [CALL]}, "ok"],
        ["q"],
        [plugin("a", tool_result_persist=adds("+1")), plugin("b", tool_result_persist=adds("+2"))],
        "raw",
    ),
    "input_hook_transforms": (["ok"], ["hi"], [plugin("a", input=adds("!")), plugin("b", input=adds("?"))], ""),
}


@pytest.mark.parametrize("name", list(SCENARIOS))
async def test_requests_are_the_same(name: str, tmp_path: Path) -> None:
    steps, prompts, plugins, tool_text = SCENARIOS[name]
    model = scripted(steps)
    async with open_agent(tmp_path, model, plugins=plugins, tools=[demo(tool_text)]) as runtime:
        for prompt in prompts:
            await runtime.ask(prompt)
    assert sent(model) == recorded(name)


async def test_an_input_that_is_handled_reaches_no_model(tmp_path: Path) -> None:
    def handle(self: Any, event: h.Input) -> h.InputResult:
        return h.InputResult(handled=True)

    model = scripted(["never"])
    async with open_agent(tmp_path, model, plugins=[plugin("a", input=handle)]) as runtime:
        await runtime.ask("hi")
    assert sent(model) == recorded("input_hook_handled") == []


@pytest.mark.parametrize(
    ("name", "steps", "queue", "text"),
    [
        ("steer_while_running", [{"content": [CALL, SECOND]}, "saw it"], "steer", "turn left"),
        ("follow_up_while_running", [{"content": [CALL]}, "first done", "second done"], "follow_up", "then this"),
    ],
)
async def test_queued_messages_enter_where_pi_lets_them_enter(
    name: str, steps: list[Any], queue: str, text: str, tmp_path: Path
) -> None:
    model = scripted(steps)
    async with open_agent(tmp_path, model, tools=[demo(delay=0.05)]) as runtime, runtime.session() as session:
        running = asyncio.create_task(session.prompt("go"))
        while not model.requests:
            await asyncio.sleep(0.002)
        getattr(session.agent, queue)(text)
        await running
    assert sent(model) == recorded(name)
