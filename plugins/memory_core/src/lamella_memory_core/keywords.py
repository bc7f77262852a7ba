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
from lamella_memory_core.catalog import Catalog

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Floats

# A word in the file's name counts half of one in the text.
_MATCH = "SELECT rowid, bm25(chunks_fts, 1.0, 0.5) FROM chunks_fts WHERE chunks_fts MATCH ?"
# What FTS5 takes for the rarity of a term that is in half of the rows or more.
_FTS5_LEAST_RARITY = 1e-6
_K1, _B = 1.2, 0.75


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


def keyword_strengths(connection: sqlite3.Connection, terms: Sequence[Term], catalog: Catalog) -> Keywords:
    """Search for each term. The catalog must be of the state that the connection sees."""
    import numpy as np

    total, file_count = len(catalog), len(catalog.paths)
    passages, files, whole = np.zeros(total), np.zeros(file_count), 0.0
    length = _K1 * (1 - _B + _B * catalog.sizes / max(catalog.sizes.mean(), 1.0)) if file_count else files
    for term in terms:
        rows = connection.execute(_MATCH, (fts_expression(term),)).fetchall()
        weight = rarity(len(rows), total)
        whole += weight
        if not rows:
            continue
        found = np.array(rows, dtype=np.float64)
        places = catalog.positions(found[:, 0].astype(np.int64))
        strength = strengths(found[:, 1], total)
        passages[places] += weight * strength
        mentions = np.bincount(catalog.file[places], weights=strength, minlength=file_count)
        files += rarity(int((mentions > 0).sum()), file_count) * mentions * (_K1 + 1) / (mentions + length)
    return Keywords(passages, files, whole)


def fts_expression(term: Term) -> str:
    """A term in the language of FTS5: quoted, so that nothing in it has a meaning."""
    quoted = '"' + term.text.replace('"', '""') + '"'
    return f"{quoted} *" if term.kind == "prefix" else quoted


def rarity(having: int, total: int) -> float:
    """The weight of a term that `having` of `total` rows have; never 0, and most for 0 or 1 rows."""
    having = max(having, 1)
    return math.log1p((max(total - having, 0) + 0.5) / (having + 0.5))


def strengths(bm25: Floats, total: int) -> Floats:
    """One term's strengths, from FTS5's bm25() of all rows that have it in a search for it alone.

    FTS5 gives minus rarity times strength, with a rarity of its own that is useless in small indexes.
    """
    having = len(bm25)
    own = math.log((total - having + 0.5) / (having + 0.5)) if total >= having else 0.0
    return -bm25 / (own if own > 0 else _FTS5_LEAST_RARITY)
