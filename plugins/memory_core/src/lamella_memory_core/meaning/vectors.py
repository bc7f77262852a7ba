"""Vectors of passages: kept by text and embedder, and brought up to date. `matrix` reads them.

A vector belongs to the identity of an embedder and the hash of a text. So a text that moves, comes
back, or is in two places is embedded once, and vectors of two embedders never meet.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from lamella.types.memory import ProgressListener, SyncProgress
from lamella_memory_core.index.database import MARK_CHANGED, Database

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Singles

GROUP = 128  # texts that are embedded and stored at once
_STATE = """
SELECT birth, number, coalesce((SELECT filled FROM embedders WHERE identity = ?), -1) FROM generation
"""
# Texts of files that are older than the last complete filling have their vectors.
_PENDING = """
SELECT hash FROM chunks WHERE file_id IN (SELECT id FROM files WHERE version > ?) AND NOT EXISTS (
    SELECT 1 FROM vectors WHERE vectors.hash = chunks.hash
    AND embedder_id = (SELECT id FROM embedders WHERE identity = ?)
) GROUP BY hash ORDER BY min(id)
"""
_TEXTS = "SELECT hash, min(text) FROM chunks WHERE hash IN ({marks}) GROUP BY hash ORDER BY min(id)"
_DROP = """
DELETE FROM vectors WHERE embedder_id IN (SELECT id FROM embedders) AND hash IN (
    SELECT hash FROM dropped WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.hash = dropped.hash)
)
"""
_FILLED = """
UPDATE embedders SET filled = ? WHERE identity = ? AND filled < ? AND (SELECT birth FROM generation) = ?
"""


@frozen(slots=True)
class _Work:
    """What a state of the index lacks: hashes of texts without a vector, once each. `filled`: whether the
    state is known to lack nothing; `dropped`: whether some vectors may have lost their texts."""

    birth: str
    number: int
    hashes: tuple[str, ...]
    filled: bool
    dropped: bool


def _work(connection: sqlite3.Connection, identity: str) -> _Work:
    birth, number, filled = connection.execute(_STATE, (identity,)).fetchone()
    waiting = connection.execute(_PENDING, (filled, identity)) if filled < number else ()
    dropped = connection.execute("SELECT 1 FROM dropped LIMIT 1").fetchone() is not None
    return _Work(birth, number, tuple(row[0] for row in waiting), filled >= number, dropped)


def embed_pending(
    database: Database,
    identity: str,
    embed: Callable[[Sequence[str]], Singles],
    stopped: Callable[[], bool],
    progress: ProgressListener = lambda _progress: None,
) -> int:
    """Embed what is missing, in groups; each group is stored when it is done, so what was done is kept
    whatever happens then. Returns the number of texts.

    `embed` gives the vectors of texts by the embedder of that identity. No transaction is open while it
    works. Once `stopped` no further group is begun. Raises what it raises. `progress` is told before each
    group.
    """
    with database.read() as connection:
        work = _work(connection, identity)
    if work.dropped:
        _drop_left_over(database)
    done = 0
    for group in _groups(work.hashes):
        if stopped():
            return done
        progress(SyncProgress("vectors", done, len(work.hashes)))
        texts = _texts(database, group)
        blobs = [row.astype("<f4").tobytes() for row in embed(list(texts.values()))] if texts else []
        _store(database, identity, list(texts), blobs)
        done += len(texts)
    if not work.filled:
        _note_filled(database, identity, work)
    return done


def _groups(waiting: Sequence[str]) -> Iterator[Sequence[str]]:
    return (waiting[start : start + GROUP] for start in range(0, len(waiting), GROUP))


def _texts(database: Database, hashes: Sequence[str]) -> dict[str, str]:
    """The texts by their hashes, but for those that have gone meanwhile."""
    with database.read() as connection:
        return dict(connection.execute(_TEXTS.format(marks=", ".join("?" * len(hashes))), hashes).fetchall())


def _store(database: Database, identity: str, hashes: Sequence[str], blobs: Sequence[bytes]) -> None:
    """Store what is still wanted: a text may have gone, or come from another process, meanwhile."""
    from sqlalchemy import select
    from sqlalchemy.dialects.sqlite import insert

    from lamella_memory_core.index.schema import chunks, embedders, vectors

    with database.session() as connection, connection.begin():
        connection.execute(insert(embedders).values(identity=identity).on_conflict_do_nothing())
        number = connection.execute(select(embedders.c.id).where(embedders.c.identity == identity)).scalar_one()
        present = set(connection.execute(select(chunks.c.hash).where(chunks.c.hash.in_(hashes))).scalars())
        rows = [
            {"embedder_id": number, "hash": digest, "vector": blob}
            for digest, blob in zip(hashes, blobs, strict=True)
            if digest in present
        ]
        if rows:
            connection.execute(insert(vectors).on_conflict_do_nothing(), rows)
            connection.exec_driver_sql(MARK_CHANGED)


def _drop_left_over(database: Database) -> None:
    with database.session() as connection, connection.begin():
        connection.exec_driver_sql(_DROP)
        connection.exec_driver_sql("DELETE FROM dropped")


def _note_filled(database: Database, identity: str, work: _Work) -> None:
    """Remember that nothing was missing in the state that the work was for."""
    with database.session() as connection, connection.begin():
        connection.exec_driver_sql(_FILLED, (work.number, identity, work.number, work.birth))
