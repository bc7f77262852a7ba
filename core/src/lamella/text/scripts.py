"""Which writing systems a text is in.

A script is named by the first word of its letters' Unicode names, in lower case: `latin`, `cyrillic`,
`cjk` (Han), `hiragana`, `katakana`, `hangul`, `arabic`, and so on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set
from functools import lru_cache

from lamella.text.segment import fold

LATIN = frozenset({"latin"})
EAST_ASIAN = frozenset({"cjk", "hiragana", "katakana", "hangul"})

_FIRST_WORD = re.compile("[A-Z]+")


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The script of one letter; empty for anything else, such as digits and marks."""
    if not character.isalpha():
        return ""
    found = _FIRST_WORD.match(unicodedata.name(character, ""))
    return found[0].lower() if found else ""


def share_in(text: str, scripts: Set[str]) -> float:
    """The part of a text's letters that is in these scripts, 0 to 1; 1 for a text without letters."""
    named = [script for script in map(script_of, fold(text)) if script]
    return sum(script in scripts for script in named) / len(named) if named else 1.0
