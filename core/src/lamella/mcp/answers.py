"""What the tools answer, as typed dictionaries from which the SDK makes output schemas. Pure."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from lamella.mcp.recall import Recalled, SessionQuote
from lamella.types.memory import MemoryHit, MemoryResults, MemoryText, MemoryWrite

Path = Annotated[str, Field(description="The file, relative to the workspace.")]
FirstLine = Annotated[int, Field(description="First line, counting from 1; 0 without text.")]
LastLine = Annotated[int, Field(description="Last line, included.")]


class Hit(TypedDict):
    """A passage that was found."""

    path: Path
    startLine: FirstLine
    endLine: LastLine
    score: Annotated[float, Field(description="How well it answers, 0 to 1.")]
    snippet: Annotated[str, Field(description="The passage.")]
    source: Annotated[str, Field(description="What kind of memory it is from, such as memory or sessions.")]
    citation: Annotated[str, Field(description="How to cite it: path#Lx-Ly.")]


class SearchAnswer(TypedDict):
    """Passages, best first."""

    results: list[Hit]
    backend: Annotated[str, Field(description="Who answered.")]
    mode: Annotated[str, Field(description="hybrid, or keyword when meaning took no part; may be empty.")]
    warning: Annotated[str, Field(description="Why there may be more than this; empty when there is no reason.")]


class GetAnswer(TypedDict):
    """Lines of a memory file."""

    status: Annotated[str, Field(description="ok, missing (no such file), or empty (nothing in these lines).")]
    path: Path
    text: str
    startLine: FirstLine
    endLine: LastLine
    totalLines: Annotated[int, Field(description="How many lines the file has.")]
    truncated: Annotated[bool, Field(description="Whether the file goes on after the text.")]
    nextFrom: Annotated[int | None, Field(description="Where to go on; null when there is no more.")]


class AppendAnswer(TypedDict):
    """Where the text was written."""

    path: Path
    startLine: FirstLine
    endLine: LastLine
    bytesWritten: int
    citation: Annotated[str, Field(description="How to cite it: path#Lx-Ly.")]


class RecallQuote(TypedDict):
    """What was said, or a part of it."""

    session: Annotated[str, Field(description="Key of the session.")]
    entryId: Annotated[str, Field(description="Id of the entry, to read all of it.")]
    time: Annotated[str, Field(description="When it was said, ISO 8601 in UTC.")]
    role: Annotated[str, Field(description="Who said it: user, assistant or toolResult, or another type of entry.")]
    text: str
    start: Annotated[int, Field(description="Character of the entry at which the text begins.")]
    left: Annotated[int, Field(description="Characters of the entry after the text.")]


class RecallAnswer(TypedDict):
    """Quotes, best first."""

    quotes: list[RecallQuote]
    searched: Annotated[int, Field(description="How many sessions were read.")]
    sessions: Annotated[int, Field(description="How many there are.")]
    warning: Annotated[str, Field(description="What could not be read; empty when all could.")]


def search_answer(found: MemoryResults) -> SearchAnswer:
    degraded = found.degraded
    return {
        "results": [_hit(hit) for hit in found.hits],
        "backend": degraded.answered_by if degraded else found.backend,
        "mode": found.mode,
        "warning": f"This may not be all that there is: {degraded.reason}." if degraded else "",
    }


def get_answer(found: MemoryText) -> GetAnswer:
    goes_on = found.status == "ok" and found.end_line < found.total_lines
    return {
        "status": found.status,
        "path": found.path,
        "text": found.text,
        "startLine": found.start_line,
        "endLine": found.end_line,
        "totalLines": found.total_lines,
        "truncated": found.truncated,
        "nextFrom": found.end_line + 1 if goes_on else None,
    }


def append_answer(written: MemoryWrite) -> AppendAnswer:
    return {
        "path": written.path,
        "startLine": written.start_line,
        "endLine": written.end_line,
        "bytesWritten": written.bytes_written,
        "citation": MemoryHit(written.path, written.start_line, written.end_line, 0.0, "").citation,
    }


def recall_answer(found: Recalled) -> RecallAnswer:
    problems = list(found.skipped)
    unread = found.sessions - found.searched - len(problems)
    if unread:
        problems.append(f"{unread} older sessions were not read; name one with session")
    return {
        "quotes": [_quote(quote) for quote in found.quotes],
        "searched": found.searched,
        "sessions": found.sessions,
        "warning": "; ".join(problems),
    }


def entry_answer(quote: SessionQuote) -> RecallAnswer:
    return {"quotes": [_quote(quote)], "searched": 1, "sessions": 1, "warning": ""}


def _hit(hit: MemoryHit) -> Hit:
    return {
        "path": hit.path,
        "startLine": hit.start_line,
        "endLine": hit.end_line,
        "score": round(hit.score, 6),
        "snippet": hit.snippet,
        "source": hit.source,
        "citation": hit.citation,
    }


def _quote(found: SessionQuote) -> RecallQuote:
    quote = found.quote
    return {
        "session": found.session,
        "entryId": quote.entry_id,
        "time": quote.time,
        "role": quote.role,
        "text": quote.text,
        "start": quote.start,
        "left": quote.left,
    }
