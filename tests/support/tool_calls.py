"""Calling tools as the agent does: arguments validated, `def` and `async def` alike."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lamella.tools.validation import validate_arguments
from lamella.types.messages import text_of
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext


def context_in(workspace: Path, **fields: Any) -> ToolContext:
    return ToolContext(call_id="call-1", workspace=workspace, session_key="agent:main:main", **fields)


async def call(tools: Iterable[Tool], name: str, context: ToolContext, /, **arguments: Any) -> ToolResult:
    """Run the tool `name`; raises `ToolError` as the tool does."""
    tool = next(tool for tool in tools if tool.name == name)
    checked = validate_arguments(tool, arguments)
    if inspect.iscoroutinefunction(tool.run):
        result = await tool.run(checked, context)
    else:
        result = await asyncio.to_thread(tool.run, checked, context)
    return ToolResult(result) if isinstance(result, str) else result


def shown(result: ToolResult) -> str:
    return text_of(result.blocks)
