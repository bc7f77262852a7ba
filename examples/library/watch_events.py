"""Watching a turn: text as it arrives, tool calls, and what happened to the window.

python examples/library/watch_events.py
"""

from __future__ import annotations

import asyncio
import tempfile

from lamella import Runtime
from lamella.models.scripted import ScriptedModel
from lamella.types import events as e


def show(event: e.AgentEvent) -> None:
    match event:
        case e.MessageUpdate(delta=delta) if delta.type == "text_delta":
            print(delta.delta, end="", flush=True)
        case e.ToolExecutionStart():
            print(f"[{event.tool_name} {dict(event.arguments)}]")
        case e.AutoCompactionEnd() if event.summary is not None:
            print(f"[compacted: {event.tokens_before} tokens became {event.tokens_after}]")
        case e.AgentEnd():
            print()


async def main() -> None:
    call = {"type": "toolCall", "id": "1", "name": "ls", "arguments": {}}
    model = ScriptedModel([{"content": [call]}, "The folder is empty."])
    with tempfile.TemporaryDirectory() as workspace:
        async with Runtime.open(workspace=workspace, model=model) as runtime:
            runtime.listeners.append(show)
            await runtime.ask("What is in the workspace?")


if __name__ == "__main__":
    asyncio.run(main())
