"""Session transcripts as a source of memory: which files they are, and what of them is worth finding.

What people and agents said to each other, one line a message, without secrets. Tool results, files
that were read and summaries are left out: they are long, seldom wanted, and the first two are not
the conversation's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from attrs import frozen

from lamella.errors import UsageError
from lamella.sessions.hidden import is_hidden
from lamella.sessions.keys import parse_key
from lamella.types.message_json import parse_content
from lamella.types.messages import JsonObject, text_of

SOURCE = "sessions"
_FILE = re.compile(r".+\.jsonl(?:\.(?:reset|deleted)\..+)?")
_SPEAKERS = {"user": "User", "assistant": "Assistant"}

# What plugins put before a prompt is memory already. Some programs store it with the prompt.
_RECALLED = re.compile(r"<(relevant-memories|recalled-memory)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
# Sessions that no person takes part in.
_UNATTENDED = frozenset({"cron", "heartbeat", "subagent"})


@frozen(slots=True)
class Talk:
    """What was said: `text` has one line a message, and `lines[i]` is where line i+1 of it stands in
    the transcript, counted from 1."""

    text: str
    lines: tuple[int, ...]


def is_transcript(file_name: str) -> bool:
    """Whether a file of a sessions folder is a transcript, or one that was put aside at a reset or deletion.

    Copies that were made before a repair (`.bak.`) say nothing new.
    """
    return _FILE.fullmatch(file_name) is not None


def without_recalled(text: str) -> str:
    """A message without the memory that a plugin put before it."""
    return _RECALLED.sub(" ", text)


def read_talk(transcript: Iterable[bytes]) -> Talk:
    """What the lines of a transcript say; lines that cannot be read say nothing."""
    from lamella.sessions.lines import decode_line  # not light, and of use only where transcripts are a source

    said: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(transcript, 1):
        try:
            value = decode_line(line)
        except ValueError:
            continue
        if not isinstance(value, dict):
            continue
        if value.get("type") == "session" and not _is_attended(value):
            return Talk("", ())
        message = _said(value)
        if message:
            said.append(message)
            lines.append(number)
    return Talk("".join(f"{message}\n" for message in said), tuple(lines))


def _is_attended(header: JsonObject) -> bool:
    key = header.get("sessionKey")
    try:
        return not isinstance(key, str) or not _UNATTENDED & set(parse_key(key).rest.split(":")[:1])
    except UsageError:  # a key of another program
        return True


def _said(entry: JsonObject) -> str:
    """A message as one line, or nothing."""
    from lamella.text.redact import redact  # a search that finds nothing new needs none of its patterns

    message = entry.get("message")
    if entry.get("type") != "message" or not isinstance(message, dict):
        return ""
    speaker = _SPEAKERS.get(str(message.get("role")))
    text = redact(without_recalled(text_of(parse_content(message.get("content")), " ")))
    words = " ".join(text.split())
    if speaker is None or is_hidden(words):
        return ""
    return f"{speaker}: {words}"
