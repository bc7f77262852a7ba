"""Where a term of a question is, and how strongly: asked of FTS5, or added up from arrays.

Both give the same: FTS5 answers at once in a process that has just begun, arrays are several times
faster once they are there. Phrases are always FTS5's, since arrays do not know the places of words.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

from lamella.text.segment import Term
from lamella_memory_core.lexical.postings import Postings
from lamella_memory_core.lexical.stems import Stems
from lamella_memory_core.warm.catalog import Catalog

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Floats, Numbers

K1, B = 1.2, 0.75
# A word in the file's name counts half of one in the text.
_MATCH = "SELECT rowid, bm25(chunks_fts, 1.0, 0.5) FROM chunks_fts WHERE chunks_fts MATCH ?"
# What FTS5 takes for the rarity of a term that is in half of the rows or more.
_FTS5_LEAST_RARITY = 1e-6


class Words(Protocol):
    """Finds terms in the state of the index that it was made for, and that the connection must see."""

    def find(self, connection: sqlite3.Connection, terms: Sequence[Term]) -> Iterator[tuple[Numbers, Floats]]:
        """For each term the positions that have it, once each, and BM25's strength of it there: rarity aside."""


@frozen(slots=True)
class IndexedWords:
    """FTS5's answers."""

    catalog: Catalog

    def find(self, connection: sqlite3.Connection, terms: Sequence[Term]) -> Iterator[tuple[Numbers, Floats]]:
        return (self._find(connection, term) for term in terms)

    def _find(self, connection: sqlite3.Connection, term: Term) -> tuple[Numbers, Floats]:
        import numpy as np

        rows = connection.execute(_MATCH, (fts_expression(term),)).fetchall()
        found = np.array(rows, dtype=np.float64).reshape(-1, 2)
        places = self.catalog.positions(found[:, 0].astype(np.int64)) if rows else np.zeros(0, dtype=np.int64)
        return places, strengths(found[:, 1], len(self.catalog))


@frozen(eq=False)
class ArrayWords:
    """Answers from postings. `slots` (N,): each passage's row in the postings, which are counted through."""

    catalog: Catalog
    postings: Sequence[Postings] = field(repr=False)
    slots: Numbers = field(repr=False)
    stems: Stems = field(repr=False)

    def find(self, connection: sqlite3.Connection, terms: Sequence[Term]) -> Iterator[tuple[Numbers, Floats]]:
        for term, tokens in zip(terms, self.stems.of(term.text for term in terms), strict=True):
            if len(tokens) == 1:
                yield self._find(tokens[0], prefix=term.kind == "prefix")
            else:
                yield from IndexedWords(self.catalog).find(connection, [term])

    def _find(self, token: str, *, prefix: bool) -> tuple[Numbers, Floats]:
        import numpy as np

        places, often = [], []
        offset = 0
        for postings in self.postings:
            rows, mentions = postings.mentions(token, prefix=prefix)
            places.append(self._position[offset : offset + len(postings.lengths)][rows])
            often.append(mentions)
            offset += len(postings.lengths)
        where, count = np.concatenate(places), np.concatenate(often)
        if len(self.slots) < offset:  # some rows belong to passages that are no more
            where, count = where[where >= 0], count[where >= 0]
        strength = count * (K1 + 1)
        count += self._norms[where]
        strength /= count
        return where, strength

    @cached_property
    def _position(self) -> Numbers:
        """(all rows,): the position of a row's passage; -1 for one that is no more."""
        import numpy as np

        position = np.full(sum(len(p.lengths) for p in self.postings), -1)
        position[self.slots] = np.arange(len(self.slots))
        return position

    @cached_property
    def _norms(self) -> Floats:
        """(N,): how many mentions make half of the greatest strength, by the length of a passage."""
        import numpy as np

        lengths = np.concatenate([p.lengths for p in self.postings])[self.slots]
        norms: Floats = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
        return norms


def fts_expression(term: Term) -> str:
    """A term in the language of FTS5: quoted, so that nothing in it has a meaning."""
    quoted = '"' + term.text.replace('"', '""') + '"'
    return f"{quoted} *" if term.kind == "prefix" else quoted


def strengths(bm25: Floats, total: int) -> Floats:
    """One term's strengths, from FTS5's bm25() of all rows that have it in a search for it alone.

    FTS5 gives minus rarity times strength, with a rarity of its own that is useless in small indexes.
    """
    having = len(bm25)
    own = math.log((total - having + 0.5) / (having + 0.5)) if total >= having else 0.0
    return -bm25 / (own if own > 0 else _FTS5_LEAST_RARITY)
