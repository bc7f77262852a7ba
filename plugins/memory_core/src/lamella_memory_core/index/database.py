"""Opening the index's database: several processes at once, and files that are not (any more) an index.

The index can always be made anew from the notes. So a database that is broken or somebody else's is
moved aside, and one of another format is emptied.

Reading uses `sqlite3` itself: loading SQLAlchemy takes longer than a search, and a search that finds
all files unchanged has nothing to write.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamella.errors import LamellaError, MemoryUnavailable
from lamella.text.days import file_stamp

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

APPLICATION_ID = 0x6C616D65  # "lame": tells our database from a foreign one
SCHEMA_VERSION = 6

NAME = "memory.sqlite"
_BUSY_SECONDS = 10.0
_MOST_IDLE = 4
# What a writer keeps of the index in memory, and when it moves its log into the database: pages that
# change with every file are written once for many files so.
_WRITING_KIB = 32 * 1024
_WAL_PAGES = 8000
_KEPT_ASIDE = 3  # databases that were moved aside
_SIDE_FILES = ("", "-wal", "-shm", "-journal")
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
# Names of all tables but SQLite's own. One that is gone would make every use fail, and nothing make it again.
_TABLES = """
SELECT coalesce(group_concat(name), '') FROM (
    SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' ORDER BY name
)
"""


# Tells all processes, within a transaction, that what they have in memory is out of date; the new number is
# the `version` of the files that have changed. By its rowid, since a statement that may change several rows
# would make FTS5 write out all that it has gathered.
MARK_CHANGED = "UPDATE generation SET number = number + 1 WHERE rowid = 1"


class NotAnIndex(LamellaError):
    """The file at the index's place is broken, or not an index."""


class Database:
    """The index's database file. A use has a connection to itself. Connections are used again, but never
    after the file was replaced.

    `identity` names whose texts these are and how they are cut; an index of another identity is emptied.
    """

    def __init__(self, state_dir: Path, identity: str) -> None:
        self.path = state_dir / NAME
        self.rebuilt = ""
        self._identity = identity
        self._lock = state_dir / "locks" / "memory-index.lock"
        self._inode = 0
        self._idle: deque[tuple[int, sqlite3.Connection]] = deque()

    def take_rebuilt(self) -> str:
        """Why the database was made anew since the last call, or nothing."""
        reason, self.rebuilt = self.rebuilt, ""
        return reason

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent view. Raises `NotAnIndex` when the file turns out to be broken,
        `MemoryUnavailable` when it cannot be used now."""
        self._inode = inode = _inode(self.path)
        try:
            connection = self._connection(inode)
            try:
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
            self._keep(inode, connection)
        except sqlite3.DatabaseError as error:
            raise self._said(error) from error

    def _connection(self, inode: int) -> sqlite3.Connection:
        """One that is not in use, if it is of the file that is there now."""
        for kept, connection in self._take_idle():
            if kept == inode:
                return connection
            connection.close()
        return sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)

    def _keep(self, inode: int, connection: sqlite3.Connection) -> None:
        if len(self._idle) < _MOST_IDLE:
            self._idle.append((inode, connection))
        else:
            connection.close()

    def _take_idle(self) -> Iterator[tuple[int, sqlite3.Connection]]:
        """Connections that nobody uses; other threads may take some too."""
        while True:
            try:
                taken = self._idle.pop()
            except IndexError:
                return
            yield taken

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection for several transactions: `with connection.begin(): ...`, each writing. Raises as `read`."""
        from sqlalchemy.exc import DatabaseError

        self._inode = _inode(self.path)
        try:
            with self._engine.connect() as connection:
                yield connection
        except sqlite3.DatabaseError as error:  # of the driver's own statements
            raise self._said(error) from error
        except DatabaseError as error:
            if not isinstance(error.orig, sqlite3.DatabaseError):
                raise
            raise self._said(error.orig) from error

    def prepare(self) -> bool:
        """Make sure that the file is an index of this identity; whether it had to be made one, and is empty."""
        if self.path.exists() and self._fits():
            return False
        with self._exclusive():
            try:
                return self._create_unless_fit()
            except NotAnIndex as error:
                self._move_aside(str(error))
                return self._create_unless_fit()

    def discard(self, reason: str) -> None:
        """Move a broken file aside, unless another process has done so; the next use makes a new one."""
        with self._exclusive():
            if _inode(self.path) == self._inode:
                self._move_aside(reason)

    def recreate(self, connection: Connection) -> None:
        """Empty the index, within the caller's transaction. Vectors stay: texts that come back need them."""
        _recreate(connection, self._identity)

    def close(self) -> None:
        for _, connection in self._take_idle():
            connection.close()
        if "_engine" in self.__dict__:
            self._engine.dispose()

    @cached_property
    def _engine(self) -> Engine:
        return _engine(self.path)

    def _said(self, error: sqlite3.DatabaseError) -> LamellaError:
        if is_broken(error):
            return NotAnIndex(f"the index is broken ({error})")
        return MemoryUnavailable(f"the memory index {self.path} cannot be used: {error}")

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        import filelock  # only what writes needs it

        with filelock.FileLock(self._lock, timeout=_BUSY_SECONDS * 3):
            yield

    def _fits(self) -> bool:
        try:
            with self.read() as connection:
                ours = _application(connection) == APPLICATION_ID
                return ours and _stored_facts(connection) == _facts(self._identity, _tables(connection))
        except (NotAnIndex, MemoryUnavailable):
            return False

    def _create_unless_fit(self) -> bool:
        with self.read() as connection:
            application = _application(connection)
            tables = _tables(connection)
            facts = _stored_facts(connection) if application == APPLICATION_ID and tables else {}
        if application != APPLICATION_ID and (tables or application):
            raise NotAnIndex("the file was a database of another program")
        if facts == _facts(self._identity, tables):
            return False  # another process was quicker
        self._let_readers_read_while_one_writes()
        with self.session() as writing, writing.begin():
            if tables:
                self.rebuilt = "it was of other settings, another workspace or format, or tables were missing"
            _recreate(writing, self._identity, vectors_too=facts.get("schema") != str(SCHEMA_VERSION))
        return True

    def _let_readers_read_while_one_writes(self) -> None:
        """Switch the file to a write-ahead log; the file keeps that mode."""
        with self.session() as connection:
            raw = connection.connection
            raw.cursor().execute("PRAGMA journal_mode = WAL")  # which is none of a transaction

    def _move_aside(self, reason: str) -> None:
        aside = self.path.with_name(f"{NAME}.broken-{file_stamp()}")
        for suffix in _SIDE_FILES:
            source = Path(f"{self.path}{suffix}")
            if source.exists():
                os.replace(source, f"{aside}{suffix}")  # noqa: PTH105
        self.rebuilt = f"{reason}; it was moved to {aside.name}"
        self._prune_aside()

    def _prune_aside(self) -> None:
        """Keep the newest of the databases that were moved aside, each with its side files."""
        moved: dict[str, list[Path]] = {}
        for path in self.path.parent.glob(f"{NAME}.broken-*"):
            moved.setdefault(path.name.partition("Z")[0], []).append(path)
        for moment in sorted(moved)[:-_KEPT_ASIDE]:
            for path in moved[moment]:
                path.unlink(missing_ok=True)


def is_broken(error: sqlite3.DatabaseError) -> bool:
    """Whether an error says that the file itself is damaged, and not merely busy, full or read-only."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in _BROKEN


def is_busy(error: BaseException) -> bool:
    """Whether a `MemoryUnavailable` says that others keep the index busy, and not that it cannot be used."""
    import filelock

    cause = getattr(error.__cause__, "orig", error.__cause__)
    code = getattr(cause, "sqlite_errorcode", None)
    return isinstance(cause, filelock.Timeout) or (code is not None and (code & 0xFF) in _BUSY)


def driver(connection: Connection) -> sqlite3.Connection:
    """SQLite's own connection of a session, in the same transaction."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _facts(identity: str, tables: str) -> dict[str, str]:
    return {"schema": str(SCHEMA_VERSION), "identity": identity, "tables": tables}


def _tables(connection: sqlite3.Connection) -> str:
    return str(connection.execute(_TABLES).fetchone()[0])


def _application(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def _stored_facts(connection: sqlite3.Connection) -> dict[str, str]:
    try:
        return dict(connection.execute("SELECT key, value FROM meta").fetchall())
    except sqlite3.OperationalError:
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()[0]:
            raise
        return {}


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _recreate(connection: Connection, identity: str, *, vectors_too: bool = False) -> None:
    from sqlalchemy import insert

    from lamella_memory_core.index.schema import CREATE_FTS, MERGE_LATER, generation, meta, metadata, vector_metadata

    connection.exec_driver_sql("DROP TABLE IF EXISTS chunks_fts")
    metadata.drop_all(connection)
    metadata.create_all(connection)
    if vectors_too:
        vector_metadata.drop_all(connection)
    vector_metadata.create_all(connection)
    connection.exec_driver_sql("UPDATE embedders SET filled = -1")
    connection.exec_driver_sql("INSERT INTO dropped SELECT DISTINCT hash FROM vectors")
    connection.exec_driver_sql(CREATE_FTS)
    connection.exec_driver_sql(MERGE_LATER)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    tables = connection.exec_driver_sql(_TABLES).scalar_one()
    connection.execute(insert(meta), [{"key": k, "value": v} for k, v in _facts(identity, tables).items()])
    connection.execute(insert(generation), [{"birth": uuid.uuid4().hex, "number": 0}])


def _engine(path: Path) -> Engine:
    import sqlalchemy
    from sqlalchemy import event
    from sqlalchemy.engine import URL
    from sqlalchemy.pool import NullPool

    url = URL.create("sqlite", database=str(path))
    engine = sqlalchemy.create_engine(url, poolclass=NullPool, connect_args={"timeout": _BUSY_SECONDS})

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say so, below
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{_WRITING_KIB}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
