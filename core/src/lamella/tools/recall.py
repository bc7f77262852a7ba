"""The tool `session_recall`: what a summary has replaced in this conversation, word for word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lamella.errors import LamellaError, ToolError
from lamella.sessions.keys import parse_key
from lamella.sessions.recall import MOST_RESULTS, TOOL, Quote, read_entry, recall
from lamella.sessions.store import SessionStore
from lamella.sessions.transcript import SessionFile
from lamella.tools.schemas import integer, parameters, string
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext

DEFAULT_RESULTS = 5


def recall_tool(store: SessionStore) -> Tool:
    """The tool; `store` holds the transcripts. It reads that of the session that calls it, and no other."""

    def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        query, entry = arguments.get("query", "").strip(), arguments.get("entry", "").strip()
        if bool(query) == bool(entry):
            raise ToolError("session_recall needs query, words to look for, or entry, an id to read.")
        try:
            file = _transcript(store, context)
            if entry:
                return _read(read_entry(file, entry, arguments.get("offset") or 0))
            limit = min(arguments.get("limit") or DEFAULT_RESULTS, MOST_RESULTS)
            found = recall(file, query, limit, only_folded=True)
        except LamellaError as error:
            raise ToolError(str(error)) from error
        return _found(found)

    return Tool(
        name=TOOL,
        label="Recall this conversation",
        description=(
            "Quote what was said earlier in this conversation and is now only in a summary. "
            "Give query to find passages, or entry to read one of them whole."
        ),
        parameters=parameters(
            query=string("Words, names or identifiers to look for"),
            entry=string("Id of an entry, as a result shows it"),
            limit=integer(f"Most passages, up to {MOST_RESULTS} (default: {DEFAULT_RESULTS})", minimum=1),
            offset=integer("With entry: character to start at"),
        ),
        run=run,
        owner="core",
    )


def _transcript(store: SessionStore, context: ToolContext) -> SessionFile:
    located = store.require(parse_key(context.session_key))
    if located.entry.get("sessionId") != context.session_id:
        raise ToolError("This session has been replaced by a new one; its transcript is not read")
    return SessionFile.open(located.path, whole=True)


def _found(quotes: Sequence[Quote]) -> ToolResult:
    if not quotes:
        return ToolResult("Nothing that was folded into a summary has these words.")
    texts = (f"{'…' if q.start else ''}{q.text}{'…' if q.left else ''}" for q in quotes)
    shown = "\n\n".join(f"{_place(q)}\n{text}" for q, text in zip(quotes, texts, strict=True))
    return ToolResult(shown, {"entries": [q.entry_id for q in quotes]})


def _read(quote: Quote) -> ToolResult:
    next_offset = quote.start + len(quote.text)
    more = f"\n\n[{quote.left} more characters. Use offset={next_offset} to continue.]" if quote.left else ""
    return ToolResult(f"{_place(quote)}\n{quote.text}{more}", {"entries": [quote.entry_id]})


def _place(quote: Quote) -> str:
    return f"[{quote.entry_id}] {quote.time} {quote.role}"
