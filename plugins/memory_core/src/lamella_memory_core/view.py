"""What a process keeps in memory of the index: the catalog and the vectors of one state of it."""

from __future__ import annotations

import sqlite3

from lamella.types.memory import Embedder
from lamella_memory_core.catalog import Catalog, load_catalog, read_stamp
from lamella_memory_core.vectors import Matrix, load_matrix


class View:
    """Reads the catalog and the matrix when they are asked for, and again after the index has changed."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._matrix: Matrix | None = None

    def catalog(self, connection: sqlite3.Connection) -> Catalog:
        if self._catalog is None or self._catalog.stamp != read_stamp(connection):
            self._catalog, self._matrix = load_catalog(connection), None
        return self._catalog

    def matrix(self, connection: sqlite3.Connection, embedder: Embedder) -> Matrix:
        """The vectors of the catalog's passages under this embedder."""
        catalog = self.catalog(connection)
        if self._matrix is None or self._matrix.identity != embedder.identity:
            self._matrix = load_matrix(connection, catalog, embedder.identity, embedder.dimensions)
        return self._matrix
