"""What is compared: a way to rank passages for a question."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

import numpy as np
from judged import DEPTH, Workspace

from lamella.text.segment import Term, query_terms, search_text
from lamella.types.memory import Embedder


class Engine(Protocol):
    def rank(self, workspace: Workspace) -> list[list[int]]:
        """For each question of the workspace, positions of passages, best first."""


class Dense:
    """Cosine with an embedder's vectors, and nothing else."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def rank(self, workspace: Workspace) -> list[list[int]]:
        passages = self._embedder.embed_documents([p.text for p in workspace.passages])
        questions = np.stack([self._embedder.embed_query(q.text) for q in workspace.questions])
        order = np.argsort(-(questions @ passages.T), axis=1, kind="stable")
        return [[int(position) for position in row[:DEPTH]] for row in order]


class Keywords:
    """BM25 over segmented text; any word of the question may match."""

    def rank(self, workspace: Workspace) -> list[list[int]]:
        with sqlite3.connect(":memory:") as database:
            database.execute("CREATE VIRTUAL TABLE passage USING fts5(text, tokenize='porter unicode61')")
            rows = [(k, search_text(p.text)) for k, p in enumerate(workspace.passages)]
            database.executemany("INSERT INTO passage(rowid, text) VALUES (?, ?)", rows)
            ranked = [_matches(database, query_terms(q.text)) for q in workspace.questions]
        database.close()
        return ranked


def embedder_from(target: str) -> Embedder:
    """The embedder that `module:factory` makes."""
    module, _, factory = target.partition(":")
    made: Embedder = getattr(import_module(module), factory)()
    return made


def _matches(database: sqlite3.Connection, terms: Sequence[Term]) -> list[int]:
    if not terms:
        return []
    wanted = " OR ".join(f'"{t.text}"' + ("*" if t.kind == "prefix" else "") for t in terms)
    query = "SELECT rowid FROM passage WHERE passage MATCH ? ORDER BY rank LIMIT ?"
    return [rowid for (rowid,) in database.execute(query, (wanted, DEPTH))]
