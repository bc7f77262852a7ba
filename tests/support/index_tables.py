"""What an index holds, so that two of them can be compared."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def contents(workspace: Path, state: str = "state") -> list[tuple[object, ...]]:
    """Everything that the index holds, but for ids and time stamps."""
    with sqlite3.connect(workspace.parent / state / "memory.sqlite") as db:
        db.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('integrity-check')")
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert (
            db.execute("SELECT count(*) FROM chunks_fts").fetchone()
            == db.execute("SELECT count(*) FROM chunks").fetchone()
        )
        rows = db.execute(
            "SELECT path, source, size, files.hash, start_line, end_line, start_char, end_char, chunks.hash, text,"
            " body, name FROM files LEFT JOIN chunks ON file_id = files.id LEFT JOIN chunks_fts ON"
            " chunks_fts.rowid = chunks.id ORDER BY path, start_char"
        ).fetchall()
    db.close()
    return rows


def stored(workspace: Path, state: str = "state") -> list[tuple[object, ...]]:
    """Every passage with its vectors, and every vector that belongs to none."""
    with sqlite3.connect(workspace.parent / state / "memory.sqlite") as db:
        rows = db.execute(
            "SELECT path, start_char, text, identity, vector FROM vectors JOIN embedders ON embedders.id = embedder_id"
            " FULL JOIN chunks ON chunks.hash = vectors.hash LEFT JOIN files ON files.id = file_id"
            " ORDER BY path, start_char, identity"
        ).fetchall()
    db.close()
    return rows
