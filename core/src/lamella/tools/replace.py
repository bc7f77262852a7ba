"""Replacing pieces of a text that must each occur exactly once.

Line ends and everything outside the replaced pieces stay as they are. A piece is first looked for
as it stands, then in a forgiving way: trailing blanks, typographic quotes, dashes, special blanks
and compatibility forms of characters do not count.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence

from attrs import frozen

from lamella.errors import ToolError

_LIKE_ASCII = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
}
_TRAILING_BLANKS = re.compile(r"[^\S\n]+(?=\n|\Z)")
_COUNTED = 100  # beyond this many, occurrences are "more than"


@frozen(slots=True)
class Edit:
    """`old` occurs once and becomes `new`. Both use plain line feeds."""

    old: str
    new: str


@frozen(slots=True)
class _Span:
    start: int
    end: int
    new: str
    number: int


def apply_edits(text: str, edits: Sequence[Edit], shown: str) -> str:
    """The text with all edits made. Each is looked for in the original text; they must not overlap.

    Raises `ToolError` when a piece is missing, not unique, or overlaps another, and when nothing
    would change.
    """
    ends = _LineEnds.of(text)
    plain = ends.plain
    spans = sorted(
        (_locate(plain, edit, number, len(edits), shown) for number, edit in enumerate(edits)),
        key=lambda span: span.start,
    )
    for before, after in itertools.pairwise(spans):
        if after.start < before.end:
            raise ToolError(
                f"edits[{before.number}] and edits[{after.number}] overlap in {shown}. Merge them into one edit."
            )
    changed = text
    for span in reversed(spans):
        start, end = ends.original(span.start), ends.original(span.end)
        changed = changed[:start] + ends.restored(span.new) + changed[end:]
    if changed == text:
        raise ToolError(f"No changes made to {shown}: the new text equals the old text.")
    return changed


def plain_lines(text: str) -> str:
    """The text with `\\r\\n` turned into line feeds."""
    return text.replace("\r\n", "\n")


# --- finding -----------------------------------------------------------------------------------------


def _locate(plain: str, edit: Edit, number: int, total: int, shown: str) -> _Span:
    which = f"edits[{number}]: " if total > 1 else ""
    old = plain_lines(edit.old)
    if not old:
        raise ToolError(f"{which}oldText must not be empty.")
    found = _occurrences(plain, old) or _forgiving_occurrences(plain, old)
    if not found:
        raise ToolError(
            f"{which}Could not find the text in {shown}. "
            "oldText must match the file exactly, white space and line breaks included."
        )
    if len(found) > 1:
        count = f"more than {_COUNTED}" if len(found) > _COUNTED else str(len(found))
        raise ToolError(
            f"{which}Found {count} occurrences of the text in {shown}. It must be unique; add lines around it."
        )
    return _Span(*found[0], plain_lines(edit.new), number)


def _occurrences(text: str, piece: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    start = text.find(piece)
    while start >= 0 and len(found) <= _COUNTED:
        found.append((start, start + len(piece)))
        start = text.find(piece, start + 1)
    return found


def _forgiving_occurrences(text: str, piece: str) -> list[tuple[int, int]]:
    """Spans of `text` that read like `piece`, widened over blanks at the end of a line."""
    simple_piece, _ = _simplified(piece)
    if not simple_piece.strip():
        return []
    simple, origins = _simplified(text)
    spans = []
    for start, end in _occurrences(simple, simple_piece):
        if origins[start - 1] == origins[start] and start > 0:
            continue  # begins inside a character that simplifies to several
        if end < len(simple) and origins[end] == origins[end - 1]:
            continue  # ends inside one
        last = origins[end - 1] + 1
        blanks = _TRAILING_BLANKS.match(text, last)
        spans.append((origins[start], blanks.end() if blanks else last))
    return spans


def _simplified(text: str) -> tuple[str, list[int]]:
    """The text in its simplest spelling, and for each of its characters the index it came from."""
    out: list[str] = []
    origins: list[int] = []
    skipped_to = 0
    for blanks in [*_TRAILING_BLANKS.finditer(text), None]:
        stop = blanks.start() if blanks else len(text)
        for index in range(skipped_to, stop):
            simple = _simple_spelling(text[index])
            out.append(simple)
            origins += [index] * len(simple)
        skipped_to = blanks.end() if blanks else stop
    return "".join(out), origins


def _simple_spelling(char: str) -> str:
    if char.isascii():
        return char
    return _LIKE_ASCII.get(char) or "".join(_LIKE_ASCII.get(c, c) for c in unicodedata.normalize("NFKD", char))


# --- line ends ---------------------------------------------------------------------------------------


@frozen(slots=True)
class _LineEnds:
    """A text with `\\r\\n` as `\\n`, and the way back to the original's positions."""

    plain: str
    widened: tuple[int, ...]  # positions in `plain` of line feeds that were \r\n
    new_line: str

    @classmethod
    def of(cls, text: str) -> _LineEnds:
        widened: list[int] = []
        position = text.find("\r\n")
        while position >= 0:
            widened.append(position - len(widened))
            position = text.find("\r\n", position + 2)
        first = text.find("\n")
        new_line = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
        return cls(plain_lines(text), tuple(widened), new_line)

    def original(self, position: int) -> int:
        return position + bisect_left(self.widened, position)

    def restored(self, text: str) -> str:
        return text.replace("\n", self.new_line)
