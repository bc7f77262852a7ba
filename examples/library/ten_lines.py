"""A whole agent with a tool and a plugin of one's own, without a key or a network.

    python examples/library/ten_lines.py

The model plays prepared replies here. For a real one, pass `model="anthropic/claude-sonnet-5-5"`
or leave `model` out.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from typing import Any

from lamella import Runtime, Tool, ToolContext, hookimpl
from lamella.models.scripted import ScriptedModel
from lamella.types import hooks as h


def tide(arguments: Mapping[str, Any], _context: ToolContext) -> str:
    return f"High water at {arguments['place']}: 14:20."


TIDE = Tool(
    "tide",
    "Time of the next high water at a place.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    tide,
)


class Polite:
    """Adds one sentence to the system prompt of every turn."""

    name = "polite"

    @hookimpl
    def before_prompt_build(self, event: h.BeforePromptBuild) -> h.PromptAddition:
        return h.PromptAddition(append_system="Say thank you at the end.")


def model() -> ScriptedModel:
    call = {"type": "toolCall", "id": "1", "name": "tide", "arguments": {"place": "Whitby"}}
    return ScriptedModel([{"content": [call]}, "High water is at 14:20. Thank you!"])


async def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        async with Runtime.open(workspace=workspace, model=model(), tools=[TIDE], plugins=[Polite()]) as runtime:
            result = await runtime.ask("When is high water at Whitby?")
            print(result.text)


if __name__ == "__main__":
    asyncio.run(main())
