"""Why a line stands in a memory file: the write that it comes from, and what was said before that write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from lamella.errors import LamellaError, SessionError, UsageError
from lamella.memory.hunks import raw_lines, shown_lines
from lamella.memory.journal import Journal, JournalEntry
from lamella.memory.origin import Origin, origin_of
from lamella.memory.paths import MemoryFile, real_workspace
from lamella.memory.reading import load
from lamella.sessions.keys import is_session_id
from lamella.sessions.recall import Quote, best_quotes, part_of, spoken_on
from lamella.sessions.store import SessionStore
from lamella.sessions.transcript import SessionFile

_MOST_CHARS = 1500  # of each quote
_MOST_TURNS = 3  # that a silent turn is led back to


# What is told of the write that a line comes from.
_SHOWN = ("id", "time", "mode", "actor", "sessionKey", "sessionId", "entryId", "trigger")


@frozen(slots=True)
class Why:
    """A line, without secrets, and where it comes from.

    `origin` is None for a line that no write in the journal has: somebody edited the file, or it is older
    than the journal. `note` says why there are no quotes.
    """

    path: str
    line: int
    text: str
    origin: Origin | None = None
    quotes: tuple[Quote, ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        origin = None
        if self.origin is not None:
            written = self.origin.entry.to_json()
            origin = {name: written[name] for name in _SHOWN} | {"line": self.origin.line}
        return {
            "path": self.path,
            "line": self.line,
            "text": self.text,
            "origin": origin,
            "quotes": [q.to_json() for q in self.quotes],
            "note": self.note,
        }


def why(journal: Journal, sessions: SessionStore, workspace: Path, file: MemoryFile, number: int) -> Why | None:
    """Why line `number` (from 1) of a memory file stands there; None when the file does not exist.

    Raises `UsageError` for a line that the file has not, `LamellaError` when it cannot be read.
    """
    try:
        content = load(file)
    except OSError as error:
        raise LamellaError(f"cannot read {file.name}: {error.strerror}") from error
    if content is None:
        return None
    lines = shown_lines(raw_lines(content.data))
    if not 1 <= number <= len(lines):
        raise UsageError(f"{file.name} has no line {number}; it has {len(lines)}")
    text = lines[number - 1]
    origin = origin_of(journal.entries, str(real_workspace(workspace)), file.name, lines, number)
    if origin is None:
        return Why(file.name, number, text)
    quotes, note = _conversation(sessions, origin.entry, text)
    return Why(file.name, number, text, origin, tuple(quotes), note)


def _conversation(sessions: SessionStore, entry: JournalEntry, text: str) -> tuple[Sequence[Quote], str]:
    """What was said before a write, or why that cannot be told."""
    if not entry.session_id:
        return (), "it was not written in a session"
    transcript = find_transcript(sessions, entry.session_id)
    if transcript is None:
        return (), f"the transcript of session {entry.session_id} is not there any more"
    try:
        file = SessionFile.open(transcript, whole=True)
        said = spoken_on(file.lines(), file.path_of(entry.entry_id or None))
    except SessionError as error:
        return (), str(error)
    quotes = _about(said, text) if entry.trigger == "memory" else _last_turn(said, entry.entry_id)
    return [part_of(q, limit=_MOST_CHARS) for q in quotes], "" if quotes else "the conversation holds nothing to quote"


def _about(said: Sequence[Quote], text: str) -> list[Quote]:
    """What a silent turn was told to keep is anywhere before it: the entries that say most of the line."""
    best = {q.entry_id for q in best_quotes(said, text, _MOST_TURNS)}
    return [q for q in said if q.entry_id in best]


def _last_turn(said: Sequence[Quote], entry_id: str) -> list[Quote]:
    """The user's last words, and the entry that wrote."""
    asked = [q for q in said if q.role == "user"][-1:]
    return [*asked, *(q for q in said if q.entry_id == entry_id and q not in asked)]


def find_transcript(sessions: SessionStore, session_id: str) -> Path | None:
    """A session's transcript, or the newest copy of it that was put aside at a reset or deletion."""
    for located in sessions.rows():
        if located.exists and located.entry.get("sessionId") == session_id:
            return located.path
    if not is_session_id(session_id):
        return None
    name = f"{session_id}.jsonl"
    aside = [p for kind in ("reset", "deleted") for p in sessions.folder.glob(f"{name}.{kind}.*")]
    found = [p for p in (sessions.folder / name, *sorted(aside, reverse=True)) if p.is_file()]
    return found[0] if found else None
