"""What is unusual about a session's compactions, from its entry in sessions.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import asdict, field, frozen
from attrs.validators import instance_of

from lamella.text.silent import SILENT
from lamella.types.messages import Message, UserMessage, text_of

# Compactions of a session that are kept in its entry; the newest.
KEPT_COMPACTIONS = 10
# Compactions that come closer than this, in turns, or free less than this part, are told.
CLOSE_TURNS = 3
LITTLE_FREED = 0.20
_BIG_PART = 0.4
_FLUSH = re.compile(r"memory flush|will soon be compacted", re.IGNORECASE)


@frozen(slots=True)
class CompactionNote:
    """A compaction as sessions.json remembers it. `turn` counts the session's turns; sizes in tokens.

    After it the next request has `fixed` tokens of system prompt and tools, `summary`, and the rest of
    `after`, which was kept word for word. `limit`: where compaction is due.
    """

    at: int = field(validator=instance_of(int))
    turn: int = field(validator=instance_of(int))
    cause: str = field(validator=instance_of(str))
    before: int = field(validator=instance_of(int))
    after: int = field(validator=instance_of(int))
    fixed: int = field(validator=instance_of(int))
    summary: int = field(validator=instance_of(int))
    limit: int = field(validator=instance_of(int))
    flush: str = field(validator=instance_of(str))
    by: str = field(validator=instance_of(str))

    @property
    def freed(self) -> float:
        """The part of the context that went, 0 to 1."""
        return max(self.before - self.after, 0) / self.before if self.before > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@frozen(slots=True)
class Finding:
    """Something unusual: a stable code, and what to tell people."""

    code: str
    message: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def notes_of(entry: Mapping[str, Any]) -> list[CompactionNote]:
    """The compactions that an entry remembers, oldest first; what is no such note is passed over."""
    stored = entry.get("compactions")
    notes = []
    for raw in stored if isinstance(stored, list) else ():
        try:
            notes.append(CompactionNote(**raw))
        except TypeError:  # of another version or program
            continue
    return notes


def with_note(entry: Mapping[str, Any], note: CompactionNote) -> list[dict[str, Any]]:
    """The entry's list with one more compaction."""
    return [n.to_json() for n in [*notes_of(entry), note][-KEPT_COMPACTIONS:]]


def findings(notes: Sequence[CompactionNote], leaks: int = 0) -> list[Finding]:
    """What is unusual: of the last two compactions, of all that had no flush, and stored `leaks`."""
    found = []
    if notes:
        found += _frees_little(notes[-1])
    if len(notes) > 1:
        found += _comes_soon(notes[-2], notes[-1])
    found += _without_flush(notes)
    if leaks:
        found.append(Finding("silent_leaks", f"{leaks} stored messages hold parts of turns that nobody should see"))
    return found


def silent_leaks(messages: Iterable[Message]) -> int:
    """Prompts of flushes that stand in a history as if a user had written them. lamella stores none;
    other programs do."""
    return sum(
        SILENT in text and _FLUSH.search(text) is not None
        for text in (text_of(message.content) for message in messages if isinstance(message, UserMessage))
    )


def _frees_little(note: CompactionNote) -> list[Finding]:
    if note.freed >= LITTLE_FREED:
        return []
    text = f"the last compaction freed {note.freed:.0%} ({note.before} tokens became {note.after}): {_biggest(note)}"
    return [Finding("compaction_freed_little", text)]


def _comes_soon(previous: CompactionNote, last: CompactionNote) -> list[Finding]:
    turns = last.turn - previous.turn
    if turns >= CLOSE_TURNS:
        return []
    grown = (last.before - previous.after) // max(turns, 1)
    cause = f"a turn adds about {grown} tokens" if grown > last.limit * _BIG_PART / 2 else _biggest(previous)
    return [Finding("compactions_close", f"the last two compactions lie {turns} turns apart: {cause}")]


def _biggest(note: CompactionNote) -> str:
    """What takes the room after a compaction."""
    kept = max(note.after - note.fixed - note.summary, 0)
    parts = {
        "the system prompt and the tools take": note.fixed,
        "what is kept word for word (compaction.keep_recent_tokens) takes": kept,
        "the summary takes": note.summary,
    }
    what = max(parts, key=lambda part: parts[part])
    return f"{what} {parts[what]} of the {note.limit} tokens below the threshold"


def _without_flush(notes: Sequence[CompactionNote]) -> list[Finding]:
    missed = [note for note in notes if note.flush.startswith(("none", "failed"))]
    if not missed:
        return []
    text = f"{len(missed)} of the last {len(notes)} compactions had no flush; the last one: {missed[-1].flush}"
    return [Finding("compactions_without_flush", text)]
