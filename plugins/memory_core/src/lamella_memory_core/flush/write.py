"""The tool with which a flush writes: it appends to the day's note, and does nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define

from lamella.errors import LamellaError, ToolError
from lamella.memory.writer import MemoryWriter
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext

_PARAMETERS = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The day's note that the prompt names."},
        "content": {"type": "string", "minLength": 1, "description": "New lines, as Markdown."},
    },
    "required": ["content"],
    "additionalProperties": False,
}


@define
class Written:
    """Where a flush may write, how often it did, and why a write was refused last. `told` is called after
    each write."""

    path: str
    told: Callable[[], None]
    count: int = 0
    refused: str = ""


def write_tool(writer: MemoryWriter, written: Written) -> Tool:
    """The tool `write` of a flush. Past midnight, the new day's note is taken too."""

    def write(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        path = str(arguments.get("path") or written.path).strip().removeprefix("./")
        if path not in (written.path, writer.today()):
            written.refused = f"Memory flush writes are restricted to {written.path}; use that path only."
            raise ToolError(written.refused)
        try:
            writer.append(path, str(arguments["content"]), context.provenance("flush"))
        except LamellaError as error:
            written.refused = f"{error}. {error.hint}" if error.hint else str(error)
            raise ToolError(written.refused) from error
        written.count += 1
        written.told()
        return ToolResult(f"Appended content to {path}.")

    about = f"Append lines to {written.path}. What the file holds stays; no other file can be written."
    return Tool("write", about, _PARAMETERS, write, writes=True, sequential=True, owner="plugin")
