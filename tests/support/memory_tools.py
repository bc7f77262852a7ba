"""Calling the memory tools as the engine does: arguments checked and converted, in a chat of some type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lamella.tools.validation import validate_arguments
from lamella.types.hooks import RegistrationContext
from lamella.types.host import ChatType
from lamella.types.memory import MemoryService
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext
from lamella_memory_core import Config, MemoryCore


def tools(memory: MemoryService, config: Config | None = None) -> dict[str, Tool]:
    context = RegistrationContext("main", Path(), Path(), memory=memory)
    return {t.name: t for t in MemoryCore(config or Config()).register_tools(context)}


def call(tool: Tool, chat_type: ChatType = "direct", **arguments: object) -> ToolResult:
    context = ToolContext("call-1", Path(), "agent:main:main", "s1", "e1", trigger="cron", chat_type=chat_type)
    result = tool.run(validate_arguments(tool, arguments), context)
    assert isinstance(result, ToolResult)
    return result


def payload(tool: Tool, chat_type: ChatType = "direct", **arguments: object) -> dict[str, Any]:
    """What a program gets, which is what the model reads."""
    result = call(tool, chat_type, **arguments)
    assert isinstance(result.content, str)
    assert json.loads(result.content) == result.details
    return dict(result.details)
