"""Entries: the lines of a transcript, as a tree of parent links.

An entry keeps the JSON object that it was read from, whole, so that unknown types and fields
survive. The classes below are typed views on that object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from lamella.types.message_json import parse_content, parse_message
from lamella.types.messages import Block, JsonObject, Message

# Entries of these types hold what was said; all others are bookkeeping and never decide which
# branch a session continues on.
CONVERSATION_TYPES = frozenset({"message", "custom_message", "compaction", "branch_summary"})

# Written by lamella when a session moves to another entry: a `custom` entry whose parent is the
# place that was moved to, so that every reader of the format resumes there.
POSITION_TYPE = "lamella.position"


@frozen(slots=True)
class Entry:
    """One line of a transcript: id, parent link, ISO time, and the JSON object itself (`fields`)."""

    type: str
    id: str
    parent_id: str | None
    timestamp: str
    fields: JsonObject = field(repr=False)

    def text(self, name: str, default: str = "") -> str:
        """A string field, or `default` when it is missing or not a string."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else default

    def number(self, name: str, default: float = 0) -> float:
        """A number field, or `default`."""
        value = self.fields.get(name)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else default

    @cached_property
    def message(self) -> Message | None:
        """The message of a `message` entry, else None. Decoded once: every turn looks at all of them."""
        raw = self.fields.get("message")
        return parse_message(raw) if self.type == "message" and isinstance(raw, Mapping) else None

    @property
    def role(self) -> str:
        """The role of a `message` entry's message, else an empty string; cheaper than `message`."""
        raw = self.fields.get("message")
        role = raw.get("role") if self.type == "message" and isinstance(raw, Mapping) else None
        return role if isinstance(role, str) else ""


@frozen(slots=True)
class Compaction:
    """A compaction entry: older history replaced by `summary`, kept from `first_kept_entry_id` on."""

    id: str
    summary: str
    first_kept_entry_id: str | None
    tokens_before: float
    details: Any
    from_hook: bool
    timestamp: str

    @classmethod
    def of(cls, entry: Entry) -> Compaction:
        first_kept = entry.fields.get("firstKeptEntryId")
        return cls(
            entry.id,
            entry.text("summary"),
            first_kept if isinstance(first_kept, str) else None,
            entry.number("tokensBefore"),
            entry.fields.get("details"),
            bool(entry.fields.get("fromHook")),
            entry.timestamp,
        )


@frozen(slots=True)
class Header:
    """The first line of a transcript.

    `version` is the file's own (1 when missing); `fields` is the whole object.
    """

    id: str
    timestamp: str
    cwd: str
    version: int
    parent_session: str | None
    fields: JsonObject = field(repr=False)


@frozen(slots=True)
class Damage:
    """Something in a file that could not be read as it should be.

    `line` counts from 1 and is None where the line number is unknown (files read from the end);
    `offset` is the byte where the damage starts.
    """

    code: str
    message: str
    line: int | None = None
    offset: int | None = None

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.line is not None:
            out["line"] = self.line
        if self.offset is not None:
            out["offset"] = self.offset
        return out


def custom_content(entry: Entry) -> str | tuple[Block, ...]:
    """The content of a `custom_message` entry."""
    return parse_content(entry.fields.get("content"))
