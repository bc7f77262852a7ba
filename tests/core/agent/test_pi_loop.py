"""The loop reports what the real Pi's loop reported, event by event.

Deviations: lamella has no system messages in its transcripts; two error texts are in its own words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from pi_golden import newest, scenarios

from lamella.agent.loop import LoopSetup, run_loop
from lamella.errors import ToolError
from lamella.models.scripted import ScriptedModel
from lamella.text.conversation import convert_to_model_messages
from lamella.types import events as e
from lamella.types.message_json import parse_content, parse_message
from lamella.types.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from lamella.types.model import ModelRequest
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext

# The caller of the loop refuses these in Pi; in lamella only a session continues a run, and it
# never does so from a reply (see AgentSession._history).
REFUSED = {"continue_from_assistant_fails", "continue_from_nothing_fails"}
# lamella's after_tool_call observes; what changes a result is tool_result_persist (test_hooks).
OTHER_HOOK = {"after_hook_replaces"}
OWN_WORDS = ("Validation failed for tool", 'Tool call "')

CASES = [s for s in scenarios("loop") if s["name"] not in REFUSED | OTHER_HOOK]


def shown(message: Message) -> str:
    parts = []
    for block in blocks_of(getattr(message, "content", "")):
        match block:
            case TextBlock():
                parts.append(block.text)
            case ThinkingBlock():
                parts.append(f"<thinking {block.thinking}>")
            case ToolCall():
                arguments = json.dumps(block.arguments, separators=(",", ":"))
                parts.append(f"<call {block.id} {block.name} {arguments}>")
    return own("|".join(parts))


def own(text: str) -> str:
    return next((start for start in OWN_WORDS if text.startswith(start)), text)


def row(message: Message) -> tuple[Any, ...]:
    base = (message.role, shown(message))
    if isinstance(message, AssistantMessage):
        return (*base, message.stop_reason)
    if isinstance(message, ToolResultMessage):
        return (*base, message.tool_call_id, message.is_error)
    return base


def expected_row(message: dict[str, Any]) -> tuple[Any, ...]:
    base = (message["role"], own(message.get("text", "")))
    if message["role"] == "assistant":
        return (*base, message["stopReason"])
    if message["role"] == "toolResult":
        return (*base, message["toolCallId"], message["isError"])
    return base


def got(event: e.AgentEvent) -> tuple[Any, ...]:
    match event:
        case e.MessageStart() | e.MessageEnd():
            return (event.type, row(event.message))
        case e.MessageUpdate():
            return (event.type, event.delta.type)
        case e.ToolExecutionStart():
            return (event.type, event.tool_call_id)
        case e.ToolExecutionUpdate():
            return (event.type, event.tool_call_id, event.partial.content)
        case e.ToolExecutionEnd():
            text = "|".join(b.text for b in event.result.blocks if isinstance(b, TextBlock))
            return (event.type, event.tool_call_id, own(text), event.is_error)
        case e.TurnEnd():
            return (event.type, row(event.message), tuple(row(m) for m in event.tool_results))
        case e.AgentEnd():
            return (event.type, tuple(row(m) for m in event.messages))
        case _:
            return (event.type,)


def wanted(event: dict[str, Any]) -> tuple[Any, ...]:
    kind = event["type"]
    match kind:
        case "message_start" | "message_end":
            return (kind, expected_row(event["message"]))
        case "message_update":
            return (kind, event["delta"])
        case "tool_execution_start":
            return (kind, event["toolCallId"])
        case "tool_execution_update":
            return (kind, event["toolCallId"], event["partial"])
        case "tool_execution_end":
            return (kind, event["toolCallId"], own(event["result"]["text"]), event["isError"])
        case "turn_end":
            return (kind, expected_row(event["message"]), tuple(expected_row(m) for m in event["toolResults"]))
        case "agent_end":
            return (kind, tuple(expected_row(m) for m in event["messages"] if m["role"] != "system"))
        case _:
            return (kind,)


class Policy:
    def __init__(self, scenario: dict[str, Any]) -> None:
        self.before_rules = scenario.get("before") or {}

    async def before(self, call: ToolCall, arguments: JsonObject) -> tuple[JsonObject, str | None]:
        rule = self.before_rules.get(call.name)
        return arguments, rule.get("reason", "") if rule else None

    async def after(self, call: ToolCall, arguments: JsonObject, result: ToolResult, seconds: float) -> None:
        pass

    async def persist(self, message: ToolResultMessage) -> ToolResultMessage:
        return message


def make_tool(name: str, spec: dict[str, Any]) -> Tool:
    async def run(arguments: Any, context: ToolContext) -> ToolResult:
        for text in spec.get("updates", ()):
            context.update(ToolResult(text))
        await asyncio.sleep(spec.get("delay", 0) / 1000)
        if "throws" in spec:
            raise ToolError(spec["throws"])
        return ToolResult(spec.get("text", f"{name} done"), {"ok": True})

    return Tool(name, name, spec.get("parameters") or {"type": "object", "properties": {}}, run)


@pytest.mark.parametrize("case", [pytest.param(c, id=c["name"]) for c in CASES])
async def test_events(case: dict[str, Any]) -> None:
    scenario, recorded = case["scenario"], newest(case)
    steps = [to_step(s) for s in scenario["script"]]
    steering, follow_ups = list(scenario.get("steering") or []), list(scenario.get("followUps") or [])
    tools = {n: make_tool(n, s) for n, s in (scenario.get("tools") or {}).items()}
    aborted = asyncio.Event()
    model = ScriptedModel(steps)
    tools_needed = scenario.get("steerAfterTools", 0)
    finished = 0

    def take(queue: list[str]) -> Sequence[Message]:
        if not queue or finished < tools_needed:
            return ()
        return (UserMessage((TextBlock(queue.pop(0)),), 1),)

    async def build(messages: Sequence[Message], _call: int) -> ModelRequest:
        sent = messages[-1:] if case["name"] == "transform_context" else messages
        return ModelRequest(convert_to_model_messages(sent), "SYS", [t.spec for t in tools.values()])

    events: list[e.AgentEvent] = []

    def emit(event: e.AgentEvent) -> None:
        nonlocal finished
        finished += isinstance(event, e.ToolExecutionEnd)
        events.append(event)

    setup = LoopSetup(
        model=model,
        tools=tools,
        build=build,
        policy=Policy(scenario),
        make_context=lambda call_id: ToolContext(call_id, Path(), "agent:main:main"),
        steering=lambda: take(steering),
        follow_ups=lambda: take(follow_ups),
        parallel=scenario.get("mode") != "sequential",
        aborted=aborted,
    )
    prompts = [] if scenario.get("continue") else [UserMessage((TextBlock("go"),), 1)]
    history = [parse_message(m) for m in scenario.get("history") or []]
    await run_loop(prompts, history, setup, emit)

    expected = [wanted(ev) for ev in recorded["events"] if (ev.get("message") or {}).get("role") != "system"]
    assert [got(ev) for ev in events] == expected
    calls = [[m for m in c["messages"] if m["role"] != "system"] for c in recorded["llmCalls"]]
    assert [[own(shown(m)) for m in r.messages] for r in model.requests] == [[own(m["text"]) for m in c] for c in calls]


def to_step(step: dict[str, Any]) -> dict[str, Any]:
    names = {"stop": "stopReason", "error": "error", "throwBeforeStart": "throwBeforeStart"}
    out = {names[k]: v for k, v in step.items() if k in names}
    if "abortAfterBlock" in step:
        out["abortInBlock"] = step["abortAfterBlock"]
    if "content" in step:
        out["content"] = step["content"]
    assert parse_content(step.get("content", [])) is not None
    return out


async def test_an_abort_during_tools_stops_the_run_and_leaves_a_result_for_each_call() -> None:
    aborted = asyncio.Event()

    async def slow(arguments: Any, context: ToolContext) -> str:
        aborted.set()
        await asyncio.sleep(60)
        return "never"

    tool = Tool("slow", "", {"type": "object"}, slow, sequential=True)
    step = {"content": [{"type": "toolCall", "id": f"c{i}", "name": "slow", "arguments": {}} for i in (1, 2)]}
    model = ScriptedModel([step, "never reached"])

    async def build(messages: Sequence[Message], _call: int) -> ModelRequest:
        return ModelRequest(convert_to_model_messages(messages))

    setup = LoopSetup(model, {"slow": tool}, build, Policy({}), lambda c: ToolContext(c, Path(), "k"), aborted=aborted)
    setup = attrs.evolve(setup, aborted=aborted)
    result = await run_loop([UserMessage("go")], [], setup, lambda _event: None)
    results = [m for m in result.messages if isinstance(m, ToolResultMessage)]
    assert [(m.tool_call_id, m.is_error) for m in results] == [("c1", True), ("c2", True)]
    assert len(model.requests) == 1
