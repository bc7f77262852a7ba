"""LanceDB: connecting, opening tables, and its faults in words that help. lancedb is loaded at the first use."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from lamella.errors import LamellaError, MemoryUnavailable, MissingExtra
from lamella_memory_lancedb.store.location import Location

if TYPE_CHECKING:
    import pyarrow as pa

# The tables: memories, tombstones, and what a table was before it was brought up to this version.
MEMORIES, FORGOTTEN = "memories", "forgotten"
OLDER = f"{MEMORIES}_v0"
# lancedb takes a missing vector for a bad one, unless it is told that it may be missing.
MISSING_IS_NULL = "null"
_MOST_ERROR_CHARS = 200
_OWN_PLACE = re.compile(r",? /\S+\.rs:\d+:\d+$")
# Of nothing at all, lancedb warns: readers of old versions fail. Here they read again.
_NO_OLD_VERSIONS = timedelta(milliseconds=1)
log = logging.getLogger(__name__)

T = TypeVar("T")


class Database:
    """The tables at a location. Nothing is connected before it is used, and a failure is not remembered: the
    next use connects again. Every fault comes as `MemoryUnavailable`.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self._connection: Any = None
        self._tables: dict[str, Any] = {}
        self._stamps: dict[str, tuple[int, int] | None] = {}
        self._one_connects = threading.Lock()

    def table(self, name: str) -> Any | None:
        """A table's handle, which sees what other processes write; None when there is no such table."""
        stamp = self.location.stamp(name)
        if stamp != self._stamps.get(name):
            self.close()  # what LanceDB remembers is of another folder
        table = self._tables.get(name)
        if table is None and stamp is not None:  # lancedb takes seconds to load: an empty memory needs none of it
            table = self.guarded(lambda: _open(self._connected(), name), name)
            if table is not None:
                self._tables[name], self._stamps[name] = table, stamp
        return table

    def read(self, name: str, action: Callable[[Any], T], otherwise: T) -> T:
        """Do something with a table; `otherwise` when there is none.

        Once more when it fails: another process may have tidied away the version that was being read.
        """
        table = self.table(name)
        if table is None:
            return otherwise
        try:
            return action(table)
        except LamellaError:
            raise
        except Exception:  # lancedb raises RuntimeError, OSError and ValueError for what its files lack
            log.info("reading %s again", name, exc_info=True)
            self._tables.pop(name, None)
            again = self.table(name)
            return otherwise if again is None else self.guarded(lambda: action(again), name)

    def write(self, name: str, data: pa.Table) -> Any:
        """Put rows in place of a table, or make one of them; a reader sees the old rows or the new ones."""
        if self.location.folder is not None:
            _make_folder(self.location)
        made = self.guarded(
            lambda: self._connected().create_table(name, data=data, mode="overwrite", on_bad_vectors=MISSING_IS_NULL)
        )
        self._tables[name], self._stamps[name] = made, self.location.stamp(name)
        return made

    def drop(self, name: str) -> None:
        """Remove a table with all its files."""
        self._tables.pop(name, None)
        self.guarded(lambda: self._connected().drop_table(name))

    def guarded(self, action: Callable[[], T], name: str = "") -> T:
        """Do something with LanceDB; what it raises becomes `MemoryUnavailable`, which names the table if it is
        told."""
        try:
            return action()
        except LamellaError:
            raise
        except Exception as error:  # see `read`
            log.warning("lancedb at %s", self.location.shown, exc_info=True)
            said = _said(error).replace(self.location.uri, self.location.shown)
            place = f"{self.location.shown}/{name}.lance" if name else self.location.shown
            raise MemoryUnavailable(
                f"the memories at {place} cannot be used: {said}", hint=_hint(self.location)
            ) from error

    def close(self) -> None:
        self._tables.clear()
        self._stamps.clear()
        self._connection = None

    def _connected(self) -> Any:
        with self._one_connects:
            if self._connection is None:
                self._connection = _connect(self.location)
            return self._connection


def tidy(table: Any, keep: timedelta, *, unverified: bool = False) -> None:
    """Merge small files, take new rows into the indexes, and remove versions older than `keep`."""
    table.optimize(cleanup_older_than=keep, delete_unverified=unverified)


def tidy_all(table: Any) -> None:
    """The same, and nothing of what was removed or replaced stays on disk."""
    tidy(table, _NO_OLD_VERSIONS, unverified=True)


def load() -> None:
    """Load lancedb, which takes seconds. Raises `MissingExtra` when it is not there.

    What it writes to standard error about its own workings is for its developers; LANCEDB_LOG shows it.
    """
    os.environ.setdefault("LANCEDB_LOG", "error")
    try:
        import lancedb  # noqa: F401
    except ImportError as error:
        raise MissingExtra("memory-lancedb", "lamella-memory-lancedb") from error


def _said(error: Exception) -> str:
    """What LanceDB says, without the places in its own sources."""
    said = _OWN_PLACE.sub("", (str(error) or type(error).__name__).split("\n")[0])
    return said if len(said) <= _MOST_ERROR_CHARS else said[:_MOST_ERROR_CHARS] + "..."


def _hint(location: Location) -> str:
    if location.is_remote:
        return "Check the address and its credentials."
    return "Check its permissions and that there is room. If it is damaged, put a copy in its place, or move it away."


def _connect(location: Location) -> Any:
    load()
    import lancedb

    return lancedb.connect(
        location.uri,
        read_consistency_interval=timedelta(0),
        storage_options=dict(location.options) or None,
    )


def _open(connection: Any, name: str) -> Any | None:
    try:
        return connection.open_table(name)
    except (ValueError, FileNotFoundError) as error:
        if "not found" in str(error).lower():
            return None
        raise


def _make_folder(location: Location) -> None:
    assert location.folder is not None
    try:
        location.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise MemoryUnavailable(
            f"{location.shown} cannot be made: {error.strerror}", hint="Set plugins.config.memory-lancedb.uri."
        ) from error
