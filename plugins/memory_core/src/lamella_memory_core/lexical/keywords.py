"""How strongly words of a question are in passages and in whole files.

The strength of a term in a passage is BM25's: about 1 for one mention in a passage of usual length,
at most 2.2. A term weighs by its rarity. Files are rated from the strengths in their passages, so
that they need no index of their own.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import field, frozen

from lamella.text.segment import Term
from lamella_memory_core.lexical.words import K1, B, Words
from lamella_memory_core.warm.catalog import Catalog

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Floats


@frozen(slots=True, eq=False)
class Keywords:
    """`passages` (N,): weighted sums of strengths; `files` (F,): the same of whole files, on a scale
    of their own; `whole`: the weight of all terms together, found or not."""

    passages: Floats = field(repr=False)
    files: Floats = field(repr=False)
    whole: float = 0.0

    @property
    def found(self) -> bool:
        return bool(self.passages.any())


def keyword_strengths(
    connection: sqlite3.Connection, terms: Sequence[Term], catalog: Catalog, words: Words
) -> Keywords:
    """Search for each term. Catalog and words must be of the state that the connection sees."""
    import numpy as np

    total, file_count = len(catalog), len(catalog.paths)
    files, whole = np.zeros(file_count), 0.0
    everywhere, shares = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    length = K1 * (1 - B + B * catalog.sizes / max(catalog.sizes.mean(), 1.0)) if file_count else files
    for places, strength in words.find(connection, terms):
        weight = rarity(len(places), total)
        whole += weight
        if not len(places):
            continue
        everywhere.append(places)
        shares.append(weight * strength)
        mentions = np.bincount(catalog.file[places], weights=strength, minlength=file_count)
        files += rarity(int((mentions > 0).sum()), file_count) * mentions * (K1 + 1) / (mentions + length)
    passages = np.bincount(np.concatenate(everywhere), weights=np.concatenate(shares), minlength=total)
    return Keywords(passages.astype(np.float64, copy=False), files, whole)


def rarity(having: int, total: int) -> float:
    """The weight of a term that `having` of `total` rows have; never 0, and most for 0 or 1 rows."""
    having = max(having, 1)
    return math.log1p((max(total - having, 0) + 0.5) / (having + 0.5))
