"""Opening the index's database: several processes at once, and files that are not (any more) an index.

The index can always be made anew from the notes. So a database that is broken or somebody else's is
moved aside, and one of another format is emptied.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import filelock
import sqlalchemy
from sqlalchemy import Connection, Engine, event, insert, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import NullPool

from lamella.errors import LamellaError
from lamella.text.days import file_stamp
from lamella_memory_core.schema import APPLICATION_ID, CREATE_FTS, SCHEMA_VERSION, meta, metadata

NAME = "memory.sqlite"
_BUSY_SECONDS = 10.0
_SIDE_FILES = ("", "-wal", "-shm", "-journal")
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class NotAnIndex(LamellaError):
    """The file at the index's place is broken, or not an index."""


class Database:
    """The index's database file. Every use has its own connection, so that a file which another
    process replaced is never held on to.

    `identity` names how texts are cut and segmented; an index of another identity is emptied.
    """

    def __init__(self, state_dir: Path, identity: str) -> None:
        self.path = state_dir / NAME
        self.rebuilt = ""
        self._identity = identity
        self._lock = state_dir / "locks" / "memory-index.lock"
        self._engine = _engine(self.path)
        self._inode = 0

    def take_rebuilt(self) -> str:
        """Why the database was made anew since the last call, or nothing."""
        reason, self.rebuilt = self.rebuilt, ""
        return reason

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One consistent view. Raises `NotAnIndex` when the file turns out to be broken."""
        with self._connection(writes=False) as connection:
            yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection for several transactions: `with connection.begin(): ...`, each writing."""
        with self._connection(writes=True) as connection:
            yield connection

    def prepare(self) -> None:
        """Make sure that the file is an index of this identity; make it one when it is not."""
        if self.path.exists() and self._fits():
            return
        with self._exclusive():
            try:
                self._create_or_check()
            except NotAnIndex as error:
                self._move_aside(str(error))
                self._create_or_check()

    def discard(self, reason: str) -> None:
        """Move a broken file aside, unless another process has done so; the next use makes a new one."""
        with self._exclusive():
            if _inode(self.path) == self._inode:
                self._move_aside(reason)

    def recreate(self, connection: Connection) -> None:
        """Empty the index, within the caller's transaction."""
        _recreate(connection, self._identity)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _connection(self, *, writes: bool) -> Iterator[Connection]:
        self._inode = _inode(self.path)
        try:
            with self._engine.connect() as connection:
                if writes:
                    yield connection.execution_options(lamella_writes=True)
                else:
                    with connection.begin():
                        yield connection
        except DatabaseError as error:
            if is_broken(error):
                raise NotAnIndex(f"the index is broken ({error.orig})") from error
            raise

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(self._lock, timeout=_BUSY_SECONDS * 3):
            yield

    def _fits(self) -> bool:
        try:
            with self.read() as connection:
                application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
                return bool(application == APPLICATION_ID) and _stored_facts(connection) == _facts(self._identity)
        except (NotAnIndex, OperationalError):
            return False

    def _create_or_check(self) -> None:
        with self.read() as connection:
            application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
            tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one()
        if application != APPLICATION_ID and (tables or application):
            raise NotAnIndex("the file was a database of another program")
        self._let_readers_read_while_one_writes()
        with self.session() as connection, connection.begin():
            if not tables:
                _recreate(connection, self._identity)
            elif _stored_facts(connection) != _facts(self._identity):
                self.rebuilt = "its format or settings changed"
                _recreate(connection, self._identity)

    def _let_readers_read_while_one_writes(self) -> None:
        """Switch the file to a write-ahead log; the file keeps that mode."""
        raw = self._engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode = WAL")
        finally:
            raw.close()

    def _move_aside(self, reason: str) -> None:
        aside = self.path.with_name(f"{NAME}.broken-{file_stamp()}")
        for suffix in _SIDE_FILES:
            source = Path(f"{self.path}{suffix}")
            if source.exists():
                os.replace(source, f"{aside}{suffix}")  # noqa: PTH105
        self.rebuilt = f"{reason}; it was moved to {aside.name}"


def is_broken(error: DatabaseError) -> bool:
    """Whether an error says that the file itself is damaged, and not merely busy, full or read-only."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in _BROKEN


def _facts(identity: str) -> dict[str, str]:
    return {"schema": str(SCHEMA_VERSION), "identity": identity}


def _stored_facts(connection: Connection) -> dict[str, str]:
    return {row.key: row.value for row in connection.execute(select(meta.c.key, meta.c.value))}


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _recreate(connection: Connection, identity: str) -> None:
    connection.exec_driver_sql("DROP TABLE IF EXISTS chunks_fts")
    metadata.drop_all(connection)
    metadata.create_all(connection)
    connection.exec_driver_sql(CREATE_FTS)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(insert(meta), [{"key": k, "value": v} for k, v in _facts(identity).items()])


def _engine(path: Path) -> Engine:
    url = URL.create("sqlite", database=str(path))
    engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args={"timeout": _BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say so, below
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("lamella_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
