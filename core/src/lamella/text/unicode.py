"""Text that every encoder accepts, and where its characters begin."""

from __future__ import annotations

import re
import unicodedata

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_JOINER = "\u200d"
_EXTENDING = frozenset((_JOINER, "\ufe0e", "\ufe0f"))  # variation selectors: as text, as emoji
_MOST_MARKS = 32  # a run of combining marks that is longer than any real character's


def well_formed(text: str) -> str:
    """The text with surrogate pairs joined to their character and lone halves replaced by U+FFFD."""
    if text.isascii() or _is_whole(text):
        return text
    return _SURROGATE.sub("\ufffd", _PAIR.sub(_join, text))


def one_line(text: str) -> str:
    """The text without what could break out of its line or turn its reading direction: control and
    format characters, separators of lines and paragraphs, lone surrogates. For paths in a prompt."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c for c in text if unicodedata.category(c) not in _STEERING)


def _is_whole(text: str) -> bool:
    """Whether a text holds no halves; encoding is the quickest way to look."""
    try:
        text.encode("utf-16-le")
    except UnicodeEncodeError:
        return False
    return True


def _join(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def character_start(text: str, at: int) -> int:
    """The nearest place at or before `at` where what a reader sees as one character begins.

    Keeps together: combining marks with their letter, joined emoji, flags, surrogate pairs, CR LF.
    """
    if at <= 0 or at >= len(text) or (text[at - 1].isascii() and text[at].isascii() and text[at] != "\n"):
        return max(min(at, len(text)), 0)
    start = at
    while start > max(at - _MOST_MARKS, 0) and _belongs_to_previous(text, start):
        start -= 1
    return start


def _belongs_to_previous(text: str, at: int) -> bool:
    before, here = text[at - 1], text[at]
    if here == "\n":
        return before == "\r"
    if here in _EXTENDING or unicodedata.category(here) in ("Mn", "Me", "Mc") or _is_skin_tone(here):
        return True
    if before == _JOINER:
        return True
    if "\udc00" <= here <= "\udfff":
        return "\ud800" <= before <= "\udbff"
    return _is_flag_half(here) and _flag_halves_before(text, at) % 2 == 1


def _is_skin_tone(char: str) -> bool:
    return "\U0001f3fb" <= char <= "\U0001f3ff"


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_halves_before(text: str, at: int) -> int:
    count = 0
    while count < at and _is_flag_half(text[at - 1 - count]):
        count += 1
    return count
