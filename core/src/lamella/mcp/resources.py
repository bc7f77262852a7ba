"""Notes as resources: a list in pages, and each note under its own address."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from mcp.server import MCPServer, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, Annotations, ListResourcesResult, Resource

from lamella.errors import LamellaError, MemoryPathError
from lamella.mcp.memory import AgentMemory
from lamella.mcp.tools import said
from lamella.mcp.work import Work
from lamella.memory.scan import FoundFile

ADDRESS = "lamella://notes/"
TEMPLATE = ADDRESS + "{+path}"
MARKDOWN = "text/markdown"
PAGE = 100


def address_of(name: str) -> str:
    """The address of a note."""
    return ADDRESS + quote(name, safe="/")


def add_notes(server: MCPServer[Any], memory: AgentMemory, work: Work) -> None:
    """Offer the notes: `server` lists and reads them from here on."""

    @server.resource(
        TEMPLATE,
        name="note",
        title="Note",
        description="A Markdown file of long-term memory: MEMORY.md, or a file in memory/.",
        mime_type=MARKDOWN,
    )
    async def note(path: str) -> str:
        try:
            text = await work.run(lambda: memory.note(path))
        except MemoryPathError as error:
            raise ResourceNotFoundError(said(error)) from error
        except LamellaError as error:
            raise ResourceError(said(error)) from error
        if text is None:
            raise ResourceNotFoundError(f"{path} does not exist")
        return text

    server.middleware.append(_NoteList(memory, work))


class _NoteList:
    """Answers `resources/list`. The SDK's own list has no pages, and knows no files that come and go."""

    def __init__(self, memory: AgentMemory, work: Work) -> None:
        self._memory = memory
        self._work = work

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        answered = await call_next(ctx)  # which refuses a request that comes too early or is malformed
        if ctx.method != "resources/list":
            return answered
        after = _name_in((ctx.params or {}).get("cursor"))
        try:
            notes = await self._work.run(self._memory.notes)
        except LamellaError as error:
            raise MCPError(INTERNAL_ERROR, said(error)) from error
        return page_of(notes, after)


def page_of(notes: list[FoundFile], after: str) -> ListResourcesResult:
    """The notes whose names follow `after`, as many as a page holds. A note that comes or goes between two
    pages moves no other."""
    left = [note for note in notes if note.name > after]
    shown = left[:PAGE]
    more = len(left) > PAGE
    return ListResourcesResult(
        resources=[_resource(n) for n in shown], next_cursor=_cursor(shown[-1]) if more else None
    )


def _resource(note: FoundFile) -> Resource:
    changed = datetime.fromtimestamp(note.stat.st_mtime, UTC).isoformat(timespec="seconds")
    return Resource(
        uri=address_of(note.name),
        name=note.name,
        mime_type=MARKDOWN,
        size=note.stat.st_size,
        annotations=Annotations(last_modified=changed),
    )


def _cursor(note: FoundFile) -> str:
    return base64.urlsafe_b64encode(note.name.encode()).decode()


def _name_in(cursor: object) -> str:
    if cursor is None:
        return ""
    try:
        return base64.b64decode(str(cursor).encode("ascii"), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        raise MCPError(INVALID_PARAMS, f"cursor {str(cursor)[:80]!r}: expected one that a list gave") from None
