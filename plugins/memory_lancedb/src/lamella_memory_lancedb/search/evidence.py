"""How strongly a memory bears on a question: by meaning, and by the rare words that both have. Pure.

A cosine alone cannot tell "about the same kind of thing" from "about this": with a small model, questions
of one kind are all alike. Words that the question shares with one memory and not with most others can.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from lamella.text.lexical import stem
from lamella.text.segment import query_terms, search_text

# What all words of a question count beside a likeness of 1. Measured: docs/decisions/0029.
WORDS_COUNT = 0.4


@frozen(slots=True)
class Evidence:
    """`cosine`: likeness of the vectors, None where one is missing; `words`: the share (0 to 1) of the
    question's words, rare ones more, that the memory has."""

    cosine: float | None
    words: float
    background: float = 0.0

    @property
    def strength(self) -> float:
        """What thresholds are compared with: likeness above that of unrelated texts, and up to
        `WORDS_COUNT` for words. Where vectors are missing, words alone, so that all of them count 1."""
        if self.cosine is None:
            return self.words
        above = (self.cosine - self.background) / (1.0 - self.background)
        return above + WORDS_COUNT * self.words


def word_shares(question: str, texts: Sequence[str]) -> list[float]:
    """For each text, the share of the question's words that it has, each weighted by its rarity in these
    texts; 0 for a question without words."""
    terms = list(dict.fromkeys(stem(term.text) for term in query_terms(question) if term.kind != "phrase"))
    having = [frozenset(map(stem, search_text(text).split())) for text in texts]
    counts = Counter(word for words in having for word in words)
    weights = {term: _rarity(counts[term], len(texts)) for term in terms}
    whole = sum(weights.values())
    return [sum(weights[term] for term in terms if term in words) / whole if whole else 0.0 for words in having]


def _rarity(having: int, texts: int) -> float:
    return math.log(1 + (texts - having + 0.5) / (having + 0.5))
