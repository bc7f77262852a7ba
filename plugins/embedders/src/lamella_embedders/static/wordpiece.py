"""WordPiece as uncased BERT does it, for text without CJK letters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

# BERT gives up on words longer than this.
MAX_WORD = 100
_CACHED_WORDS = 8192

# One word, or one mark of punctuation; what separates words is neither.
_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ASCII_PART = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")


class WordPiece:
    """Cuts words into the longest pieces that the vocabulary has, from the left.

    `pieces` in the order of their numbers; a piece that continues a word begins with `##`. A word
    that cannot be cut into known pieces gives nothing.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        self._ids: Mapping[str, int] = {piece: number for number, piece in enumerate(pieces)}
        self._longest = max(map(len, pieces), default=0)
        # Notes repeat their words.
        self._cut = lru_cache(_CACHED_WORDS)(self._cut_word)

    def encode(self, text: str) -> list[int]:
        """Numbers of the pieces of a lower-cased text, in order."""
        cut = self._cut
        return [number for word in words(text) for number in cut(word)]

    def _cut_word(self, word: str) -> tuple[int, ...]:
        if len(word) > MAX_WORD:
            return ()
        found: list[int] = []
        start = 0
        while start < len(word):
            end = self._piece_end(word, start)
            if end == start:
                return ()
            found.append(self._ids[_piece(word, start, end)])
            start = end
        return tuple(found)

    def _piece_end(self, word: str, start: int) -> int:
        """End of the longest piece that begins at `start`; `start` itself when there is none."""
        for end in range(min(len(word), start + self._longest), start, -1):
            if _piece(word, start, end) in self._ids:
                return end
        return start


def words(text: str) -> list[str]:
    """Words and single marks of punctuation of a lower-cased text, accents removed."""
    if text.isascii():
        return _ASCII_PART.findall(_ASCII_CONTROL.sub("", text))
    plain = unicodedata.normalize("NFD", text)
    return [part for word in plain.translate(_CLASSES).split() for part in word.split("\0") if part]


def _piece(word: str, start: int, end: int) -> str:
    return f"##{word[start:end]}" if start else word[start:end]


class _CharacterClasses(dict[int, str | None]):
    """A table for `str.translate`, filled as characters are met.

    Marks that combine, and control characters, vanish; blanks become a blank; punctuation is set
    apart by NUL, which no text has left by then.
    """

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        result = self[code] = _classify(character)
        return result


def _classify(character: str) -> str | None:
    category = unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return " "
    if category == "Mn" or category.startswith("C") or character == "\ufffd":
        return None
    if category.startswith("P") or (character.isascii() and not character.isalnum()):
        return f"\0{character}\0"
    return character


_CLASSES = _CharacterClasses()
