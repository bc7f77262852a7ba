"""A toy plugin for lamella: a tool, a slash command, and a hook around tool calls."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from lamella import Tool, ToolContext, hookimpl
from lamella.config.schema import between, setting
from lamella.types import hooks as h

__all__ = ["Toy", "ToyConfig"]
__version__ = "0.1.0"


@frozen(slots=True)
class ToyConfig:
    """Settings of the plugin: `[plugins.config.toy]`."""

    sides: int = setting(6, "Sides of the die.", check=between(2, 100))
    forbidden: tuple[str, ...] = setting((), "Words that no shell command may hold.")


class Toy:
    """Rolls a die, and keeps some words out of shell commands."""

    name = "toy"
    Config = ToyConfig

    def __init__(self, config: ToyConfig) -> None:
        self.config = config

    @hookimpl
    def register_tools(self, context: h.RegistrationContext) -> Iterable[Tool]:
        schema = {
            "type": "object",
            "properties": {"count": {"type": "integer", "minimum": 1, "maximum": 20, "description": "How many dice."}},
        }
        return (Tool("roll_dice", f"Roll dice with {self.config.sides} sides.", schema, self._roll),)

    @hookimpl
    def register_commands(self, context: h.RegistrationContext) -> Iterable[h.Command]:
        return (h.Command("roll", "roll one die", lambda _arguments: str(self._throw())),)

    @hookimpl
    def before_tool_call(self, event: h.BeforeToolCall) -> h.ToolCallVerdict | None:
        if event.tool_name != "exec":
            return None
        command = str(event.arguments.get("command", ""))
        found = next((word for word in self.config.forbidden if word in command), None)
        return h.ToolCallVerdict(block=True, reason=f"{found!r} is not allowed here") if found else None

    def _roll(self, arguments: Mapping[str, Any], _context: ToolContext) -> str:
        return " ".join(str(self._throw()) for _ in range(arguments.get("count", 1)))

    def _throw(self) -> int:
        return random.randint(1, self.config.sides)
