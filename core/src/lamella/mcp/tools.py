"""The tools: what a program's model is told of them, and what they do."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from keyword import iskeyword
from typing import Annotated, Any, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import Field

from lamella.errors import LamellaError
from lamella.mcp import answers
from lamella.mcp.memory import MOST_QUERY_CHARS, AgentMemory
from lamella.mcp.recall import asked, read_in, recall_in
from lamella.mcp.work import Work
from lamella.plugins.threads import describe
from lamella.sessions.recall import MOST_RESULTS as MOST_QUOTES
from lamella.tools.validation import validate_arguments
from lamella.types.model import ToolSpec

T = TypeVar("T")

log = logging.getLogger(__name__)

MOST_RESULTS = 50
MOST_LINES = 2_000
MOST_APPEND_CHARS = 100_000

_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)

_SEARCH = (
    "Search long-term memory (notes in Markdown: MEMORY.md and memory/*.md) before answering about earlier work, "
    "decisions, dates, people, preferences or to-dos. Returns the best passages with path and lines. When the answer "
    "has a warning, tell the user that it may be incomplete."
)
_GET = (
    "Read lines of a memory file, usually around a place that memory_search found. Long files come in parts; "
    "nextFrom tells where to go on."
)
_APPEND = (
    "Write something into long-term memory, so that it is known in later conversations. It is appended to today's "
    "note, or to the file that path names. Write it so that it can be understood without this conversation."
)
_RECALL = (
    "Quote what was said in earlier conversations with the lamella agent. Give query to find passages, or entry to "
    "read one of them whole."
)

Query = Annotated[
    str,
    Field(
        min_length=1,
        description=f"What to look for: words, names, dates, or a question. The first {MOST_QUERY_CHARS} characters "
        "count.",
    ),
]
NotePath = Annotated[str, Field(min_length=1, description="MEMORY.md, a .md file in memory/, or a path of a result.")]
SavePath = Annotated[
    str | None, Field(min_length=1, description="MEMORY.md or a .md file in memory/. Default: today's note.")
]
Text = Annotated[str, Field(min_length=1, max_length=MOST_APPEND_CHARS, description="What to remember, as Markdown.")]
MaxResults = Annotated[int, Field(ge=1, le=MOST_RESULTS, description="Most results.")]
MinScore = Annotated[float, Field(ge=0, le=1, description="Leave out results below this score.")]
From = Annotated[int, Field(ge=1, alias="from", description="First line, counting from 1.")]
Lines = Annotated[int, Field(ge=1, le=MOST_LINES, description="Number of lines.")]
Words = Annotated[str, Field(description="Words, names or identifiers to look for.")]
EntryId = Annotated[str, Field(description="Id of an entry, as a result shows it.")]
SessionName = Annotated[str, Field(description="Key of a session, agent:<agent>:<name>. Default: all that are in use.")]
Limit = Annotated[int, Field(ge=1, le=MOST_QUOTES, description="Most quotes.")]
Offset = Annotated[int, Field(ge=0, description="With entry: character to start at.")]


def tools_of(memory: AgentMemory, work: Work, *, read_only: bool = False) -> Sequence[Tool]:
    """The tools of one agent's memory. `read_only` leaves out the one that writes; a shared memory tells
    nothing of transcripts."""
    tools = [_search_tool(memory, work), _get_tool(memory, work)]
    if not read_only:
        tools.append(_append_tool(memory, work))
    if not memory.shared:
        tools.append(_recall_tool(memory, work))
    return tools


def _search_tool(memory: AgentMemory, work: Work) -> Tool:
    async def memory_search(query: Query, maxResults: MaxResults = 6, minScore: MinScore = 0.2) -> answers.SearchAnswer:
        found = await _run(work, lambda: memory.search(query, maxResults, minScore))
        return answers.search_answer(found)

    return _tool(memory_search, "Search memory", _SEARCH, _READS)


def _get_tool(memory: AgentMemory, work: Work) -> Tool:
    async def memory_get(path: NotePath, from_: From = 1, lines: Lines = 200) -> answers.GetAnswer:
        return answers.get_answer(await _run(work, lambda: memory.get(path, from_, lines)))

    return _tool(memory_get, "Read memory", _GET, _READS)


def _append_tool(memory: AgentMemory, work: Work) -> Tool:
    async def memory_append(text: Text, path: SavePath = None) -> answers.AppendAnswer:
        return answers.append_answer(await _run(work, lambda: memory.append(text, path)))

    return _tool(memory_append, "Add to memory", _APPEND, _WRITES)


def _recall_tool(memory: AgentMemory, work: Work) -> Tool:
    def recalled(query: str, entry: str, session: str, limit: int, offset: int) -> answers.RecallAnswer:
        asked(query, entry)
        runtime = memory.runtime
        key = runtime.key(session) if session.strip() else None
        if entry.strip():
            return answers.entry_answer(read_in(runtime.store, key, entry.strip(), offset))
        return answers.recall_answer(recall_in(runtime.store, key, query[:MOST_QUERY_CHARS], limit))

    async def session_recall(
        query: Words = "", entry: EntryId = "", session: SessionName = "", limit: Limit = 5, offset: Offset = 0
    ) -> answers.RecallAnswer:
        return await _run(work, lambda: recalled(query, entry, session, limit, offset))

    return _tool(session_recall, "Recall conversations", _RECALL, _READS)


def said(error: LamellaError) -> str:
    """An error with what to do about it."""
    return f"{error}. {error.hint}" if error.hint else str(error)


def _tool(function: Callable[..., Awaitable[Any]], title: str, description: str, annotations: ToolAnnotations) -> Tool:
    tool = CheckedTool.from_function(
        function, title=title, description=description, annotations=annotations, structured_output=True
    )
    tool.fn = _with_keywords(function)
    tool.parameters = {**_untitled(tool.parameters), "additionalProperties": False}
    tool.fn_metadata.output_schema = _untitled(tool.fn_metadata.output_schema)
    return tool


class CheckedTool(Tool):
    """A tool whose arguments are checked as those of all of lamella's tools are: every problem is named, and an
    argument that it does not know is one."""

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        try:
            checked = validate_arguments(ToolSpec(self.name, self.description, self.parameters), arguments)
        except LamellaError as error:
            raise ToolError(str(error)) from error
        return await super().run(checked, context, convert_result)


def _with_keywords(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The function, called also with arguments whose names are words of Python, such as `from`."""

    async def call(**arguments: Any) -> Any:
        return await function(**{f"{n}_" if iskeyword(n) else n: value for n, value in arguments.items()})

    return call


def _untitled(schema: Any) -> Any:
    """A schema without titles that only repeat names."""
    if isinstance(schema, dict):
        return {k: _untitled(v) for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
    return [_untitled(v) for v in schema] if isinstance(schema, list) else schema


async def _run(work: Work, function: Callable[[], T]) -> T:
    try:
        return await work.run(function)
    except LamellaError as error:
        raise ToolError(said(error)) from error
    except Exception as error:  # most likely of the plugin in the slot; the SDK would keep it to itself
        log.exception("memory failed")
        raise ToolError(f"memory failed: {describe(error)}. The log of the server has the details") from error
