"""The tools memory_search, memory_get and memory_append."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lamella.errors import LamellaError, ToolError
from lamella.types.memory import MemoryService, SearchQuery
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext
from lamella_memory_core import answers
from lamella_memory_core.config import Config
from lamella_memory_core.privacy import check_readable, visible_to

MOST_RESULTS = 50

_SEARCH = (
    "Mandatory recall step: search long-term memory (MEMORY.md, memory/*.md{more}) before answering about earlier "
    "work, decisions, dates, people, preferences or to-dos. Returns the best passages with path and lines. When the "
    "answer has disabled=true, tell the user that memory could not be searched; when it has a warning, that it may "
    "be incomplete."
)
_MORE = {"extra_paths": "more files that are configured", "session_memory": "what was said in sessions"}
_GET = (
    "Read lines of a memory file, usually around a place that memory_search found. Long files come in parts; "
    "nextFrom tells where to go on. Passages of sessions/ cannot be read."
)
_APPEND = (
    "Write something into long-term memory, so that it is known in later conversations. It is appended to today's "
    "note, or to the file that `path` names. Write it so that it can be understood without this conversation."
)


def memory_tools(memory: MemoryService, config: Config) -> tuple[Tool, ...]:
    """The three tools, working on an open memory."""
    more = "".join(f", {what}" for key, what in _MORE.items() if getattr(config, key))
    return (
        _tool("memory_search", _SEARCH.format(more=more), _SEARCH_SCHEMA, lambda a, c: _search(memory, config, a, c)),
        _tool("memory_get", _GET, _GET_SCHEMA, lambda a, c: _get(memory, config, a, c)),
        _tool("memory_append", _APPEND, _APPEND_SCHEMA, lambda a, c: _append(memory, a, c), writes=True),
    )


def _schema(required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [required], "additionalProperties": False}


_PATH = "MEMORY.md or a .md file in memory/, such as memory/2026-05-10.md."
_SEARCH_SCHEMA = _schema(
    "query",
    query={"type": "string", "minLength": 1, "description": "What to look for: words, names, dates, or a question."},
    maxResults={"type": "integer", "minimum": 1, "description": f"Most results, up to {MOST_RESULTS}."},
    minScore={"type": "number", "minimum": 0, "maximum": 1, "description": "Leave out results below this score."},
)
_GET_SCHEMA = _schema(
    "path",
    path={"type": "string", "minLength": 1, "description": f"{_PATH} Or a path that memory_search gave."},
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
    return Tool(name, description, parameters, run, writes=writes, sequential=writes, owner="plugin")


def _search(memory: MemoryService, config: Config, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    """A search that cannot be made is an answer too: the model has to tell the user."""
    query = SearchQuery(
        _text(arguments, "query").strip(),
        max_results=min(int(arguments.get("maxResults", config.max_results)), MOST_RESULTS),
        min_score=float(arguments.get("minScore", config.min_score)),
    )
    try:
        results = memory.search(visible_to(query, context.chat_type, config, context.workspace))
    except LamellaError as error:
        return answers.answer(answers.unavailable(error))
    cited = answers.are_cited(config.citations, context.chat_type)
    return answers.answer(answers.found(results, config.citations, cited=cited))


def _get(memory: MemoryService, config: Config, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    path = _text(arguments, "path")
    first = max(int(arguments.get("from", 1)), 1)
    lines = max(int(arguments.get("lines", config.read_lines)), 1)
    try:
        found = memory.read(path, start_line=first, lines=lines)
        check_readable(found.path, context.chat_type, config, context.workspace)
    except LamellaError as error:
        return answers.answer(answers.refused(path, error))
    return answers.answer(answers.read(found, first, config.read_chars))


def _append(memory: MemoryService, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    provenance = context.provenance("memory_append")
    path = _text(arguments, "path") if arguments.get("path") else None
    try:
        written = memory.append(_text(arguments, "text"), path=path, provenance=provenance)
    except LamellaError as error:
        raise ToolError(f"{error}. {error.hint}" if error.hint else str(error)) from error
    last = "" if written.end_line == written.start_line else f"-L{written.end_line}"
    return ToolResult(f"Saved to {written.path}#L{written.start_line}{last}.", written.to_json())


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"{key} required: a text that is not empty")
    return value
