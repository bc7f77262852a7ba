"""Whether two memories that look alike really say the same. Pure.

Vectors of small models hardly see numbers, a "not", or who prefers what to what. A memory that differs in
one of these is news, however alike the vectors are.
"""

from __future__ import annotations

import re
from collections import Counter

from lamella.text.segment import fold, is_unspaced, search_text
from lamella.text.stopwords import STOP_WORDS

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|without|cannot|nicht|nie|kein\w*|ohne|jamais|sans|pas|plus|nunca|ningun\w*|sin|"
    r"не|нет|никогда|без)\b|n['’]t\b|[不没無无未别勿莫非]|ない|ません|なく|않|없|안 |못|아니",
)


def says_the_same(one: str, other: str) -> bool:
    """Whether two like texts agree in numbers and negations, and have their common words in one order."""
    one, other = fold(one), fold(other)
    return (
        Counter(_NUMBER.findall(one)) == Counter(_NUMBER.findall(other))
        and len(_NEGATION.findall(one)) == len(_NEGATION.findall(other))
        and not _only_reordered(_words(one), _words(other))
    )


def _words(folded: str) -> list[str]:
    """The words that carry a topic; of scripts without spaces, nothing, since their pairs overlap."""
    return [word for word in search_text(folded).split() if word not in STOP_WORDS and not is_unspaced(word)]


def _only_reordered(one: list[str], other: list[str]) -> bool:
    """Whether two texts have the same words in another order, such as "tea over coffee": for a model that
    counts words they are the same."""
    return one != other and Counter(one) == Counter(other)
