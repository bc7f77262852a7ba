"""Identifiers in a conversation: what a summary must repeat letter by letter.

Hexadecimal runs of 8 or more, web addresses, absolute paths, Windows paths, host:port, runs of 6
digits or more (these are OpenClaw's); and UUIDs and codes such as ORD-48213 or build_20260510.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from attrs import frozen

from lamella.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage, text_of

MAX_CHECKED = 12
MAX_KEPT = 60
CHECKED_MESSAGES = 10
_MIN_CHARS, _MAX_CHARS = 4, 200

_ASCII_WORD = "A-Za-z0-9_"
_FOUND = re.compile(
    rf"""
    https?://[!-~]+
    | (?<![{_ASCII_WORD}])[A-Za-z]:\\[\w.\\-]+
    | (?<![{_ASCII_WORD}/.~:-])/[\w.-]{{2,}}(?:/[\w.-]+)+
    | (?<![{_ASCII_WORD}-])[0-9A-Fa-f]{{8}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}}(?![{_ASCII_WORD}])
    | (?<![{_ASCII_WORD}.-])[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+:\d{{1,5}}(?!\d)
    | (?<![{_ASCII_WORD}])[0-9A-Fa-f]{{8,}}(?![{_ASCII_WORD}-])
    | (?<![{_ASCII_WORD}.-])(?=[{_ASCII_WORD}-]*[A-Za-z])(?=(?:[A-Za-z_-]*\d){{3}})[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)+
    | (?<!\d)\d{{6,}}(?!\d)
    """,
    re.VERBOSE,
)
_HEX = re.compile(r"[0-9A-Fa-f]{8,}")
_RUN_ON = re.compile(r"(\.[A-Za-z0-9]{1,8})[^\x00-\x7f]+$")  # Chinese goes on behind a file's name without a blank
_AROUND = "\"'`<>()[]{},.;:!?，。；：！？、（）「」『』【】《》“”‘’"


@frozen(slots=True)
class Identifier:
    """An identifier as it was written. Two with the same `key` are the same one."""

    text: str

    @property
    def key(self) -> str:
        """Hexadecimal ones are compared without regard to case."""
        return self.text.upper() if _HEX.fullmatch(self.text) else self.text

    def is_in(self, text: str) -> bool:
        """Whether a text has it, and not only as a part of something longer."""
        case = re.IGNORECASE if _HEX.fullmatch(self.text) else 0
        return re.search(rf"(?<![A-Za-z0-9]){re.escape(self.text)}(?![A-Za-z0-9])", text, case) is not None


def find_identifiers(text: str) -> tuple[Identifier, ...]:
    """All identifiers of a text, each once, in order."""
    trimmed = (_RUN_ON.sub(r"\1", found[0]).strip(_AROUND) for found in _FOUND.finditer(text))
    return distinct(Identifier(word) for word in trimmed if _MIN_CHARS <= len(word) <= _MAX_CHARS)


def distinct(identifiers: Iterable[Identifier]) -> tuple[Identifier, ...]:
    """Each once, where it came first."""
    unique: dict[str, Identifier] = {}
    for identifier in identifiers:
        unique.setdefault(identifier.key, identifier)
    return tuple(unique.values())


def checked_identifiers(messages: Iterable[Message]) -> tuple[Identifier, ...]:
    """Those that a summary of these messages is checked for: the first 12 of the last 10 messages."""
    recent = list(messages)[-CHECKED_MESSAGES:]
    return find_identifiers("\n".join(_texts(recent, results=True)))[:MAX_CHECKED]


def kept_identifiers(carried: Iterable[str], messages: Iterable[Message], max_chars: int) -> tuple[Identifier, ...]:
    """Those that every summary goes on to hold: earlier ones, and what people and model said.

    The newest 60 within `max_chars`. Tool results do not count: a single listing would push
    everything else out.
    """
    said = find_identifiers("\n".join(_texts(messages, results=False)))
    newest_first = distinct(reversed([*map(Identifier, carried), *said]))[:MAX_KEPT]
    ends = accumulate(len(identifier.text) + 3 for identifier in newest_first)
    return tuple(reversed([i for i, end in zip(newest_first, ends, strict=True) if end <= max_chars]))


def _texts(messages: Iterable[Message], *, results: bool) -> Iterator[str]:
    kinds = (UserMessage, AssistantMessage, ToolResultMessage) if results else (UserMessage, AssistantMessage)
    return (text_of(m.content, "\n") for m in messages if isinstance(m, kinds))
