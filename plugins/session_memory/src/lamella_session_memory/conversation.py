"""What people and the agent said in a session, fit to be quoted in a note."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from lamella.memory.transcripts import without_recalled
from lamella.sessions.archive import parse_archive_name
from lamella.sessions.context import entry_messages
from lamella.sessions.hidden import without_hidden
from lamella.sessions.transcript import SessionFile
from lamella.text.redact import redact
from lamella.text.silent import spoken
from lamella.text.unicode import character_start, one_line, well_formed
from lamella.types.messages import AssistantMessage, Message, UserMessage, text_of

# `/new`, `/compact what`; not `/etc/hosts`.
_COMMAND = re.compile(r"/[a-z][\w-]*(?:[:@\s]|\Z)", re.IGNORECASE)
# Messages that programs wrote in the user's place.
_OF_PROGRAMS = frozenset({"inter_session", "internal_system"})
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_MARK = " [...]"


@frozen(slots=True)
class Said:
    """One message: who said it (`user` or `assistant`), and the words on one line."""

    speaker: str
    words: str


def find_transcript(path: Path) -> Path | None:
    """A transcript, or the newest archive that a reset made of it; None when there is neither."""
    if path.is_file():
        return path
    found = []
    for file in path.parent.glob(f"{path.name}.reset.*"):
        name = parse_archive_name(file.name)
        if name is not None and name.transcript == path.name:
            found.append((name.at, file))
    return max(found)[1] if found else None


def read_messages(path: Path) -> list[Message]:
    """All messages of the branch that a transcript is on, folded ones too. Raises `LamellaError` and `OSError`."""
    file = SessionFile.open(path, whole=True)
    try:
        lines = file.lines()
        return [message for entry in lines.entries(file.path_of()) for message in entry_messages(entry)]
    finally:
        file.close()


def said_in(messages: Iterable[Message], max_chars: int) -> list[Said]:
    """What was said to each other, in order, each at most `max_chars` characters.

    Left out: tools and their results, commands, silent turns, what other sessions and programs wrote, and recalled
    memory, which would be remembered again. Secrets are masked.
    """
    return [Said(speaker, _clipped(words, max_chars)) for speaker, words in _spoken(messages)]


def _spoken(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    for message in without_hidden(messages):
        match message:
            case UserMessage():
                words = _plain(without_recalled(text_of(message.content)))
                if words and not _COMMAND.match(words) and not _is_of_program(message):
                    yield "user", words
            case AssistantMessage():
                words = _plain(spoken(text_of(message.content)))
                if words:
                    yield "assistant", words
            case _:
                pass


def _is_of_program(message: UserMessage) -> bool:
    provenance = message.extra.get("provenance")
    return isinstance(provenance, Mapping) and provenance.get("kind") in _OF_PROGRAMS


def _plain(text: str) -> str:
    """A text on one line, so that nothing in it can pass for a heading or another speaker, and without tags, which
    could close a frame around it when it is recalled."""
    words = one_line(" ".join(redact(well_formed(text)).split()))
    return _TAG.sub("&lt;", words)


def _clipped(words: str, limit: int) -> str:
    if len(words) <= limit:
        return words
    return words[: character_start(words, limit - len(_MARK))].rstrip() + _MARK
