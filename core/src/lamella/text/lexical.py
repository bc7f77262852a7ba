"""How well texts answer a question by their words alone: BM25 over the tokens of `lamella.text.segment`.

For a few thousand passages that have no index. English endings are cut off, so that `deployed` is found by
`deploying`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from lamella.text.segment import Term, query_terms, search_text

_SATURATION = 1.2  # how soon more of the same word adds nothing
_BY_LENGTH = 0.75  # how much a long text has to say more
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|ed|es|s|e)\Z", re.ASCII)


def lexical_scores(question: str, texts: Sequence[str]) -> list[float]:
    """A score for each text: 0 when it shares no word with the question, else the higher the better.

    Scores of one call compare with each other only: rare words count more than common ones.
    """
    terms = query_terms(question)
    documents = [_Document.of(text) for text in texts]
    scores = [0.0] * len(documents)
    mean = sum(d.length for d in documents) / max(len(documents), 1) or 1.0
    for term in terms:
        counts = [d.count(term) for d in documents]
        having = sum(1 for count in counts if count)
        rarity = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for i, count in enumerate(counts):
            if count:
                slack = _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * documents[i].length / mean)
                scores[i] += rarity * count * (_SATURATION + 1) / (count + slack)
    return scores


@frozen(slots=True)
class _Document:
    tokens: str  # with a blank at either end
    words: Counter[str]
    length: int

    @classmethod
    def of(cls, text: str) -> _Document:
        tokens = search_text(text)
        words: Counter[str] = Counter()
        for token, count in Counter(tokens.split()).items():
            words[stem(token)] += count
        return cls(f" {tokens} ", words, words.total())

    def count(self, term: Term) -> int:
        """How often a term is in the text."""
        match term.kind:
            case "word":
                return self.words[stem(term.text)]
            case "phrase":
                return self.tokens.count(f" {term.text} ")
            case "prefix":
                return self.tokens.count(f" {term.text}")


def stem(token: str) -> str:
    """A word without its English ending; words of other alphabets stay."""
    return _ENDING.sub("", token) if token.isascii() else token
