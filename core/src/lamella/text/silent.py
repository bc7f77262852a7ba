"""The silent token: how a model says that it has nothing to say.

A reply that is the token alone, also with a full stop, is no reply. At the end of a text, or on a line of its
own, it is left out; inside a sentence, in backticks or in a code block it is talk about the token, and stays.
Case does not count. The rules follow OpenClaw 2026.3 and its later versions; see docs/decisions/0024.
"""

from __future__ import annotations

import re

from attrs import frozen

SILENT = "NO_REPLY"

# A word of its own, not the end of a longer one and not quoted as code; asterisks may stand around it.
_BEGIN = r"(?<![A-Za-z0-9_`])"
_TOKEN = rf"(?:{_BEGIN}{SILENT}\**\s+\**)"
_TOKENS = rf"{_TOKEN}*"
_PART = "".join(f"(?:{c}" for c in SILENT) + r"\**\s*" + ")?" * len(SILENT)
_WHOLE = re.compile(rf"(?P<before>\s*\**){_TOKENS}{_BEGIN}{SILENT}\**[.。!！]?\**\s*\Z", re.IGNORECASE)
_CUT_OFF = re.compile(rf"(?P<before>\s*\**){_TOKENS}{_BEGIN}{SILENT[:3]}\w*\Z", re.IGNORECASE)
# What may yet become the token, or stand before it: the longest such end of a text.
_HELD = re.compile(rf"(?<!\s)\s*(?<!\*)\**{_TOKENS}(?:{_BEGIN}{_PART})\Z", re.IGNORECASE)
# Tokens in a row. What is no end of a text at the first of them is none at the others, so they are passed over.
_ROW = re.compile(rf"(?<!\s)\s*+(?<!\*)\**+{_TOKEN}++", re.IGNORECASE)
# The spaces before it are taken at once, all or none: tried in parts, a thousand empty lines would take seconds.
_BREAK = r"(?<!\s)(?=[^\S\n]*+\n)\s++"
_ON_ITS_LINE = re.compile(rf"(?P<before>\A\s*+|{_BREAK})\**{_TOKENS}{SILENT}\**[^\S\n]*\n\s*", re.IGNORECASE)
_FENCE = ("```", "~~~")
_HEAD = 40  # characters of a line that tell whether it is a fence


class Unspoken:
    """Takes the silent token out of a text that comes in pieces.

    What may become the token is held back until that is known. The pieces that come out are the same
    text however the pieces that go in are cut.
    """

    def __init__(self) -> None:
        self.removed = False
        self._pending = ""
        self._last = ""  # the character before what is pending
        self._line = _Line()

    @property
    def held(self) -> bool:
        """Whether something is held back."""
        return bool(self._pending)

    def feed(self, piece: str) -> str:
        """What can be said after this piece."""
        self._pending += piece
        text = self._last + self._pending
        if not self._last and _WHOLE.match(text):
            return ""  # a full stop after a token is held back only when nothing was said before
        return self._release(_held_from(text, len(self._last)) - len(self._last))

    def finish(self, *, cut_off: bool = False) -> str:
        """The rest, at the end of the text; of one that was cut off, without half a token."""
        text, start = self._last + self._pending, len(self._last)
        gone = _WHOLE.match(text, start) or (_CUT_OFF.match(text, start) if cut_off else None)
        if gone and not self._line.after(gone["before"]).in_code:
            self._pending, self.removed = "", True
            return ""
        return self._release(len(self._pending))

    def _release(self, count: int) -> str:
        """The first `count` pending characters, without tokens on lines of their own."""
        text, done = self._last + self._pending[:count], len(self._last)
        self._pending = self._pending[count:]
        said = []
        for found in _ON_ITS_LINE.finditer(text, done):
            said.append(text[done : found.end("before")])
            self._line = self._line.after(said[-1])
            if self._line.in_code:
                said.append(text[found.end("before") : found.end()])
            else:
                self.removed = True
                if not found.start():  # nothing was said before
                    said.pop()
            self._line = self._line.after(text[found.end("before") : found.end()])
            done = found.end()
        said.append(text[done:])
        self._line = self._line.after(said[-1])
        self._last = text[-1:]
        return "".join(said)


def _held_from(text: str, start: int) -> int:
    """Where, from `start` on, begins what may yet become the token; the text's end when nothing does."""
    if _HELD.match(text, start):  # often what was held back already
        return start
    for row in _ROW.finditer(text, start):
        if _HELD.match(text, row.start()):
            return row.start()
        start = row.end()
    found = _HELD.search(text, start)
    return found.start() if found else len(text)


@frozen(slots=True)
class _Line:
    """Where a text has got to: the beginning of its last line, and whether that lies in a code block."""

    head: str = ""
    in_code: bool = False

    def after(self, text: str) -> _Line:
        first, *lines = text.split("\n")
        head, in_code = (self.head + first)[:_HEAD], self.in_code
        for line in lines:
            in_code ^= head.lstrip().startswith(_FENCE)
            head = line[:_HEAD]
        return _Line(head, in_code)


def spoken(text: str) -> str:
    """A text without the silent token; empty when there was nothing else."""
    filtered = Unspoken()
    said = filtered.feed(text) + filtered.finish()
    return said if said.strip() else ""


def is_silent(text: str) -> bool:
    """Whether a reply says only that there is nothing to say."""
    return bool(text.strip()) and not spoken(text).strip()
