"""The tools on offer in a session, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
from attrs import frozen

from lamella.types.model import ToolSpec
from lamella.types.tools import Tool

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what every provider accepts


@frozen(slots=True)
class RejectedTool:
    """A tool that was not taken in, whose it is, and why."""

    name: str
    owner: str
    reason: str

    def __str__(self) -> str:
        return f"tool {self.name!r} of {self.owner} was skipped: {self.reason}"


class ToolRegistry:
    """Tools in the order they were registered. The first tool of a name keeps it."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._rejected: list[RejectedTool] = []
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> RejectedTool | None:
        """Take a tool in. Returns what was wrong when it was skipped, else None."""
        reason = self._objection(tool)
        if reason is None:
            self._tools[tool.name] = tool
            return None
        rejected = RejectedTool(tool.name, tool.owner, reason)
        self._rejected.append(rejected)
        return rejected

    def _objection(self, tool: Tool) -> str | None:
        if not _NAME.fullmatch(tool.name):
            return "a name has 1 to 64 letters, digits, _ or -"
        if tool.name in self._tools:
            return f"the name is taken by {self._tools[tool.name].owner}"
        try:
            msgspec.json.encode((tool.description, dict(tool.parameters)))
        except (TypeError, ValueError, RecursionError) as error:
            return f"its description and parameters are not JSON: {error}"
        return None

    @property
    def rejected(self) -> tuple[RejectedTool, ...]:
        """Every tool that was skipped so far."""
        return tuple(self._rejected)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as a model sees them."""
        return tuple(tool.spec for tool in self)

    def subset(self, names: Iterable[str]) -> ToolRegistry:
        """Only the tools of these names, in this registry's order; unknown names are left out."""
        wanted = frozenset(names)
        return ToolRegistry(tool for tool in self if tool.name in wanted)

    def read_only(self) -> ToolRegistry:
        """Only the tools that change nothing outside the conversation."""
        return ToolRegistry(tool for tool in self if not tool.writes)
