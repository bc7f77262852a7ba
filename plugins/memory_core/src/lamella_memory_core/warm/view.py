"""What a process keeps in memory of one state of the index: the catalog, the words and the vectors."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from attrs import field, frozen

from lamella.types.memory import Embedder
from lamella_memory_core.lexical.stems import Stems
from lamella_memory_core.lexical.words import ArrayWords, IndexedWords, Words
from lamella_memory_core.meaning.matrix import Block, Matrix, load_block
from lamella_memory_core.warm.catalog import Catalog, load_catalog, read_stamp
from lamella_memory_core.warm.part import Part, load_part
from lamella_memory_core.warm.shelf import Base, Shelf

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Numbers

# FTS5 answers in a millisecond or so below this many passages, and arrays would save nothing.
LEAST_PASSAGES = 2000
# A base is made anew when more than this part of it, or this many passages, have changed.
_LARGEST_CHANGE, _SMALL_CHANGE = 1 / 16, 256


@frozen(slots=True, eq=False)
class Shelved:
    """A catalog's passages found in a base, and in a part that holds what has changed since.

    `slots` (N,): each passage's row in both, counted through; `changed`: ids of files in `delta`.
    """

    base: Base
    delta: Part
    changed: list[int]
    slots: Numbers = field(repr=False)


class View:
    """Reads what is asked for, and again after the index has changed. One thread at a time, but for `forget`.

    A base from the shelf is used when there is one; small changes are read beside it.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._stems = Stems()
        self._catalog: Catalog | None = None
        self._shelved: Shelved | None = None
        self._words: Words | None = None
        self._matrix: Matrix | None = None
        self._base_block: tuple[str, str, Block] | None = None

    def forget(self) -> None:
        """Look at the shelf again at the next use."""
        self._catalog = None

    def catalog(self, connection: sqlite3.Connection) -> Catalog:
        catalog = self._catalog
        if catalog is None or catalog.stamp != read_stamp(connection):
            catalog = load_catalog(connection)
            self._shelved = self._find_shelved(connection, catalog)
            self._words = self._matrix = None
            self._catalog = catalog
        return catalog

    def words(self, connection: sqlite3.Connection) -> Words:
        """What finds words in the catalog's passages."""
        catalog = self.catalog(connection)
        if self._words is None:
            found = self._shelved
            if found is None:
                self._words = IndexedWords(catalog)
            else:
                postings = (found.base.part.postings, found.delta.postings)
                self._words = ArrayWords(catalog, postings, found.slots, self._stems)
        return self._words

    def matrix(self, connection: sqlite3.Connection, embedder: Embedder) -> Matrix:
        """The vectors of the catalog's passages under this embedder."""
        catalog = self.catalog(connection)
        if self._matrix is None or self._matrix.identity != embedder.identity:
            self._matrix = self._load_matrix(connection, catalog, embedder)
        return self._matrix

    def lacks_base(self, connection: sqlite3.Connection) -> bool:
        """Whether a base, or a newer one, would make searches faster."""
        return len(self.catalog(connection)) >= LEAST_PASSAGES and self._shelved is None

    def unshelved_vectors(self, connection: sqlite3.Connection, embedder: Embedder) -> tuple[Base, Block] | None:
        """A base and its vectors, when all are there, but not on the shelf yet."""
        matrix, found = self.matrix(connection, embedder), self._shelved
        if found is None or matrix.missing or self._shelf.vectors(found.base, embedder.identity) is not None:
            return None
        return found.base, matrix.blocks[0]

    def _find_shelved(self, connection: sqlite3.Connection, catalog: Catalog) -> Shelved | None:
        import numpy as np

        birth, _, number = catalog.stamp.rpartition(":")
        base = self._shelf.base(birth)
        if base is None or base.number > int(number):
            return None
        kept = np.isin(catalog.file_ids, base.part.files) & (catalog.versions <= base.number)
        left_over = len(base.part) - int(catalog.sizes[kept].sum())
        changed = ~kept & (catalog.sizes > 0)
        size = int(catalog.sizes[changed].sum())
        if max(size, left_over) > max(_LARGEST_CHANGE * len(catalog), _SMALL_CHANGE):
            return None
        files = catalog.file_ids[changed]
        delta = load_part(connection, self._stems, files[np.argsort(catalog.first_ids[changed])].tolist())
        firsts = np.zeros(len(catalog.paths), dtype=np.int64)
        firsts[kept] = base.part.first_rows(catalog.file_ids[kept])
        firsts[changed] = len(base.part) + delta.first_rows(files)
        return Shelved(base, delta, files.tolist(), catalog.numbered(firsts))

    def _load_matrix(self, connection: sqlite3.Connection, catalog: Catalog, embedder: Embedder) -> Matrix:
        identity, dimensions = embedder.identity, embedder.dimensions
        found = self._shelved
        if found is None:
            block = load_block(connection, identity, dimensions, len(catalog), catalog.positions)
            return Matrix(catalog.stamp, identity, (block,))
        base = self._base_vectors(connection, found.base, embedder)
        delta = load_block(connection, identity, dimensions, len(found.delta), found.delta.rows, found.changed)
        return Matrix(catalog.stamp, identity, (base, delta), found.slots)

    def _base_vectors(self, connection: sqlite3.Connection, base: Base, embedder: Embedder) -> Block:
        """From the shelf, or what was read before if nothing was missing then; else read."""
        identity = embedder.identity
        shelved = self._shelf.vectors(base, identity)
        if shelved is not None:
            self._base_block = None
            return shelved
        if self._base_block is not None and self._base_block[:2] == (base.stamp, identity):
            block = self._base_block[2]
            if block.known.all():
                return block
        block = load_block(connection, identity, embedder.dimensions, len(base.part), base.part.rows)
        self._base_block = (base.stamp, identity, block)
        return block
