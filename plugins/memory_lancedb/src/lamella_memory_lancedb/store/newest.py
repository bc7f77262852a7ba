"""The newest version of the table in memory, read again only when the table has changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamella_memory_lancedb.store.snapshot import Snapshot

Version = tuple[Any, int]
# Does something with the table; gives the second argument when there is none.
Read = Callable[[Callable[[Any], Any], Any], Any]


class Newest:
    """Up to `most` rows are held. May be used by several threads at once."""

    def __init__(self, read: Read, most: int) -> None:
        self._read = read
        self._most = most
        self._snapshot: Snapshot | None = None
        self._looked_at: Version = (None, 0)  # what the snapshot is of
        self._one_loads = threading.Lock()

    def version(self) -> Version:
        """The table's handle and version; another handle may be that of a table that was made anew."""
        version: Version = self._read(lambda table: (table, int(table.version)), (None, 0))
        return version

    def current(self) -> Snapshot | None:
        """None when there is no table, or when it is so large that an index has to answer."""
        version = self.version()
        with self._one_loads:
            if version != self._looked_at:
                self._snapshot = None  # the older one need not be in memory beside the new one
                if version[0] is not None and self._read(lambda table: int(table.count_rows()), 0) < self._most:
                    self._snapshot = self._read(_snapshot, None)
                self._looked_at = version
            return self._snapshot

    def added(self, rows: Any, before: Version) -> None:
        """Rows were added to the version `before`. They are added here too, if nothing else has changed: reading
        100,000 vectors again takes half a second."""
        after = self.version()
        with self._one_loads:
            snapshot = self._snapshot
            if snapshot is None or self._looked_at != before or after != (before[0], before[1] + 1):
                return
            if len(snapshot) + rows.num_rows < self._most:
                self._snapshot, self._looked_at = snapshot.extended(rows), after

    def drop(self) -> None:
        with self._one_loads:
            self._snapshot, self._looked_at = None, (None, 0)


def _snapshot(table: Any) -> Snapshot:
    from lamella_memory_lancedb.store.snapshot import Snapshot

    return Snapshot.of(table.to_arrow())
