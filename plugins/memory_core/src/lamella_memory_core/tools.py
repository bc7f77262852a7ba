"""The tools memory_search, memory_get and memory_append."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lamella.errors import LamellaError, ToolError
from lamella.types.memory import MemoryResults, MemoryService, MemoryText, SearchQuery
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext
from lamella_memory_core.config import Config

_SEARCH = (
    "Search long-term memory (MEMORY.md and memory/*.md). Use it before answering about earlier work, decisions, "
    "dates, people, preferences or to-dos. Returns passages, best first, each with its place as path#Lx-Ly."
)
_GET = (
    "Read lines of a memory file, usually around a place that memory_search found. Long files come in parts; "
    "the answer says how to go on."
)
_APPEND = (
    "Write something into long-term memory, so that it is known in later conversations. It is appended to today's "
    "note, or to the file that `path` names. Write it so that it can be understood without this conversation."
)


def memory_tools(memory: MemoryService, config: Config) -> tuple[Tool, ...]:
    """The three tools, working on an open memory."""
    return (
        _tool("memory_search", _SEARCH, _SEARCH_SCHEMA, lambda a, _: _search(memory, config, a)),
        _tool("memory_get", _GET, _GET_SCHEMA, lambda a, _: _get(memory, config, a)),
        _tool("memory_append", _APPEND, _APPEND_SCHEMA, lambda a, c: _append(memory, a, c), writes=True),
    )


def _schema(required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [required], "additionalProperties": False}


_PATH = "MEMORY.md or a .md file in memory/, such as memory/2026-05-10.md."
_SEARCH_SCHEMA = _schema(
    "query",
    query={"type": "string", "minLength": 1, "description": "What to look for: words, names, dates, or a question."},
    max_results={"type": "integer", "minimum": 1, "maximum": 50, "description": "Most results."},
)
_GET_SCHEMA = _schema(
    "path",
    path={"type": "string", "minLength": 1, "description": _PATH},
    **{"from": {"type": "integer", "minimum": 1, "description": "First line, counting from 1."}},
    lines={"type": "integer", "minimum": 1, "description": "Number of lines."},
)
_APPEND_SCHEMA = _schema(
    "text",
    text={"type": "string", "minLength": 1, "description": "What to remember, as Markdown."},
    path={"type": "string", "minLength": 1, "description": f"Where: {_PATH} Default: today's note."},
)

_Run = Callable[[Mapping[str, Any], ToolContext], ToolResult]


def _tool(name: str, description: str, parameters: dict[str, Any], run: _Run, *, writes: bool = False) -> Tool:
    def guarded(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        try:
            return run(arguments, context)
        except LamellaError as error:
            raise ToolError(f"{error}. {error.hint}" if error.hint else str(error)) from error

    return Tool(name, description, parameters, guarded, writes=writes, sequential=writes, owner="plugin")


def _search(memory: MemoryService, config: Config, arguments: Mapping[str, Any]) -> ToolResult:
    text = _text(arguments, "query")
    count = int(arguments.get("max_results") or config.max_results)
    results = memory.search(SearchQuery(text, max_results=count, min_score=config.min_score))
    return ToolResult(_render_results(text, results), results.to_json())


def _render_results(query: str, results: MemoryResults) -> str:
    parts = [f"{hit.citation} (score {hit.score:.2f})\n{hit.snippet}" for hit in results.hits]
    if not parts:
        parts = [f"Nothing in memory matches {query!r}."]
    if results.degraded:
        parts.append(f"Note: {results.degraded.reason}. Answered by {results.degraded.answered_by}.")
    return "\n\n".join(parts)


def _get(memory: MemoryService, config: Config, arguments: Mapping[str, Any]) -> ToolResult:
    path = _text(arguments, "path")
    start, count = int(arguments.get("from", 1)), int(arguments.get("lines", config.read_lines))
    found = memory.read(path, start_line=max(start, 1), lines=min(max(count, 1), config.read_lines))
    if found.status == "missing":
        return ToolResult(f"{found.path} does not exist.", found.to_json())
    if found.status == "empty":
        what = "is empty" if not found.total_lines else f"has only {found.total_lines} lines"
        return ToolResult(f"{found.path} {what}.", found.to_json())
    shown, cut_line = bounded(found, config.read_chars)
    return ToolResult(_render_text(shown, cut_line=cut_line), shown.to_json())


def bounded(found: MemoryText, limit: int) -> tuple[MemoryText, bool]:
    """As many whole lines as fit into `limit` characters; and whether a first line was cut to fit."""
    if len(found.text) <= limit:
        return found, False
    lines = found.text.split("\n")
    kept, size = 0, -1
    while kept < len(lines) and size + 1 + len(lines[kept]) <= limit:
        size += 1 + len(lines[kept])
        kept += 1
    text = "\n".join(lines[:kept]) if kept else lines[0][:limit]
    end = found.start_line + max(kept, 1) - 1
    more = end < found.total_lines or not kept
    return MemoryText(found.status, found.path, text, found.start_line, end, found.total_lines, more), not kept


def _render_text(shown: MemoryText, *, cut_line: bool) -> str:
    last = "" if shown.end_line == shown.start_line else f"-L{shown.end_line}"
    parts = [f"{shown.path}#L{shown.start_line}{last} of {shown.total_lines} lines\n{shown.text}"]
    if cut_line:
        parts.append(f"[Line {shown.start_line} is longer than what can be shown; this is its beginning.]")
    if shown.end_line < shown.total_lines:
        parts.append(f"[More follows: call memory_get with from={shown.end_line + 1}.]")
    return "\n\n".join(parts)


def _append(memory: MemoryService, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    provenance = context.provenance("memory_append")
    path = _text(arguments, "path") if arguments.get("path") else None
    written = memory.append(_text(arguments, "text"), path=path, provenance=provenance)
    last = "" if written.end_line == written.start_line else f"-L{written.end_line}"
    return ToolResult(f"Saved to {written.path}#L{written.start_line}{last}.", written.to_json())


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"{key} must be a text that is not empty")
    return value
