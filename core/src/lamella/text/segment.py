"""Words for keyword search, in every language, for text and for questions alike.

Scripts that put no spaces between words (Han, kana, Hangul, Thai and their like) give overlapping
pairs of characters, since a word may begin anywhere in a run; everything else gives lower-cased
words. Stemming and removing accents are left to the index.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from operator import add
from typing import Literal

from attrs import frozen

from lamella.text.stopwords import FUNCTION_CHARACTERS, STOP_WORDS
from lamella.text.unicode import well_formed

# Scripts written without spaces: Thai, Lao, Myanmar, Khmer; kana, Han with iteration mark and zero,
# Hangul. Hangul has spaces, but its particles stick to the words.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ecd\u1000-\u1049\u1780-\u17d3"
    "\u1100-\u11ff\u3005\u3007\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
# Vowel signs and accents that stand as characters of their own belong to the word before them.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f"
    "\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a4d\u0a81-\u0acd\u0b01-\u0b4d\u0b82-\u0bcd"
    "\u0c00-\u0c4d\u0c81-\u0ccd\u0d00-\u0d4d\u200c\u200d"
)

# Up to here no script is unspaced; most words begin so, and are told without a pattern.
_LAST_SPACED = "\u0dff"
_ASCII_TOKEN = re.compile(r"\w+", re.ASCII)
# Byte by byte: letters in lower case, blanks for what is in no word. Several times faster than a pattern.
_ASCII_WORDS = bytes(code if chr(code).isalnum() or code == ord("_") else ord(" ") for code in range(128)).lower()
_ASCII_WORDS += b" " * 128
# Chinese and Japanese punctuation and its compatible form. With these replaced, most text is normalised
# already, and finding that out is far quicker than normalising.
_WIDE = tuple(zip("，：；！？（）", ",:;!?()", strict=True))
# Only at the beginning of a word: a long one without punctuation would be tried from every letter else.
_ASCII_IDENTIFIER = re.compile(r"(?<!\w)\w+(?:[-./:@#+']\w+)+", re.ASCII)

TermKind = Literal["word", "prefix", "phrase"]

MAX_TERMS = 64

# Changes whenever the same text would give other tokens: an index made before is out of date then.
IDENTITY = "words-1"


@frozen(slots=True)
class Term:
    """Something to look for: a token, the beginning of one, or tokens in a row (joined by blanks)."""

    text: str
    kind: TermKind = "word"


# Patterns of many characters take milliseconds to compile, which ASCII texts need not pay.


@cache
def _token() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]+|[^\\W{_UNSPACED}](?:[^\\W{_UNSPACED}]|[{_MARKS}])*")


@cache
def _one_unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


@cache
def _identifier() -> re.Pattern[str]:
    """Words joined by punctuation, such as AB-1234, src/main.py, 20.04, user@example.org."""
    return re.compile(f"(?<![^\\W{_UNSPACED}])[^\\W{_UNSPACED}]+(?:[-./:@#+'’][^\\W{_UNSPACED}]+)+")


def is_unspaced(text: str) -> bool:
    """Whether the text begins with a character of a script without spaces."""
    return text[:1] > _LAST_SPACED and _one_unspaced().match(text) is not None


def fold(text: str) -> str:
    """The form in which text is compared: well-formed, compatibility forms unified, case folded."""
    if text.isascii():
        return text.lower()
    for wide, narrow in _WIDE:
        text = text.replace(wide, narrow)
    return unicodedata.normalize("NFKC", well_formed(text)).casefold()


def tokens(text: str) -> list[str]:
    """All tokens, in order.

    A run of n unspaced characters gives n-1 pairs and its last character, so that every character
    of it begins a token and a single one can be found as a prefix.
    """
    return search_text(text).split()


def search_text(text: str) -> str:
    """What an index stores for `text`: its tokens, joined by blanks."""
    if text.isascii():
        return b" ".join(text.encode().translate(_ASCII_WORDS).split()).decode()
    found: list[str] = []
    for run in _token().findall(fold(text)):
        if is_unspaced(run):
            found += map(add, run, run[1:])
            found.append(run[-1])
        else:
            found.append(run)
    return " ".join(found)


def query_terms(text: str) -> tuple[Term, ...]:
    """What to look for to answer a question: distinct terms, at most `MAX_TERMS`, none for no words.

    Stop words are left out unless the question has nothing else. An identifier such as `AB-1234`
    counts twice: by its parts, and as a phrase, which is rarer and so weighs more.
    """
    folded = fold(text)
    terms = [term for run in _runs(folded) for term in _run_terms(run)]
    chosen = [term for term in terms if not _says_nothing(term.text)] or terms
    phrases = [Term(phrase, "phrase") for phrase in _phrases(folded)]
    return tuple(dict.fromkeys(phrases + chosen))[:MAX_TERMS]


def _runs(folded: str) -> Iterator[str]:
    pattern = _ASCII_TOKEN if folded.isascii() else _token()
    return (found[0] for found in pattern.finditer(folded))


def _run_terms(run: str) -> Iterator[Term]:
    if not is_unspaced(run):
        yield Term(run)
    elif len(run) == 1:
        yield Term(run, "prefix")
    else:
        yield from map(Term, map(add, run, run[1:]))


def _phrases(folded: str) -> Iterator[str]:
    pattern = _ASCII_IDENTIFIER if folded.isascii() else _identifier()
    for found in pattern.finditer(folded):
        parts = list(_runs(found[0]))
        if not all(map(_says_nothing, parts)):
            yield " ".join(parts)


def _says_nothing(token: str) -> bool:
    return token in STOP_WORDS or all(character in FUNCTION_CHARACTERS for character in token)
