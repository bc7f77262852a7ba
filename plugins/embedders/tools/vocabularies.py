"""Which tokens the model gets: read from the vocabularies of the two teachers."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from attrs import frozen

from lamella_embedders.static.scripts import CJK_LETTERS

# Unused and special ids of BERT's vocabulary come first; whole English words are in order of frequency.
FIRST_PRINTABLE = 999
FIRST_WORD = 1996
ALIGNED_WORDS = 9000

_CJK_PIECE = re.compile(f"[{CJK_LETTERS}]+")
# Han, kana and jamo of BERT's vocabulary are never asked for: the other tokeniser has those letters.
_CJK = re.compile(f"[{CJK_LETTERS}\u1100-\u11ff]")
_ENGLISH_WORD = re.compile(r"[a-z]{3,}")


@frozen(slots=True)
class WordPiece:
    """A row of the Latin table: its id at the teacher and its text, `##` in front inside a word."""

    id: int
    text: str


@frozen(slots=True)
class CjkPiece:
    """A row of the CJK table: text and natural logarithm of its probability."""

    text: str
    log_prob: float


def word_pieces(vocab: Path) -> list[WordPiece]:
    """WordPieces without CJK letters, in the vocabulary's order (about that of frequency)."""
    lines = vocab.read_text(encoding="utf-8").splitlines()
    return [WordPiece(i, t) for i, t in enumerate(lines) if i >= FIRST_PRINTABLE and not _CJK.search(t)]


def cjk_pieces(tokenizer: Path) -> list[CjkPiece]:
    """Han, kana and Hangul pieces, most probable first.

    A piece that exists with and without a blank before it becomes one, with the two probabilities
    added, since runs are cut without regard to blanks.
    """
    total: dict[str, float] = {}
    for text, log_prob in json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]:
        bare = text.replace("\u2581", "")
        if _CJK_PIECE.fullmatch(bare):
            total[bare] = total.get(bare, 0.0) + math.exp(log_prob)
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return [CjkPiece(text, math.log(p)) for text, p in ordered]


def aligned_words(pieces: list[WordPiece]) -> list[int]:
    """Positions in `pieces` of frequent English words, on which the two teachers are compared."""
    words = [k for k, p in enumerate(pieces) if p.id >= FIRST_WORD and _ENGLISH_WORD.fullmatch(p.text)]
    return words[:ALIGNED_WORDS]
