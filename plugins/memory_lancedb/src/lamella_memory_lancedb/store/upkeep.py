"""Keeping a table fast: its indexes, and when it is tidied."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from lamella_memory_lancedb.store.database import tidy

# Readers of other processes finish with an old version well within this time.
_KEPT = timedelta(minutes=10)
_LOOK_EVERY = 10  # writes
_LEAST_TRAINING = 256  # vectors that the approximate index needs to be made
log = logging.getLogger(__name__)


class Upkeep:
    """`writes` and `hours` say when tidying is due, `rows` from what size vectors get an index."""

    def __init__(self, writes: int, hours: float, rows: int) -> None:
        self._writes = writes
        self._age = timedelta(hours=hours)
        self._rows = rows
        self._since = 0
        self._looked = False
        self._last: datetime | None = None

    def wrote(self) -> None:
        self._since += 1

    def facts(self) -> dict[str, Any]:
        return {"lastTidied": self._last.isoformat() if self._last else None}

    def is_due(self, table: Any) -> bool:
        """After enough writes of this process; else, looked at now and then, when the oldest version is old."""
        if self._since >= self._writes:
            return True
        if self._looked and self._since % _LOOK_EVERY:
            return False
        self._looked = True
        versions = table.list_versions()
        oldest = min((_moment(v["timestamp"]) for v in versions), default=None)
        return len(versions) > self._writes or (
            len(versions) > 1 and oldest is not None and datetime.now(UTC) - oldest > self._age
        )

    def tidy(self, table: Any) -> None:
        self._since = 0
        self._last = datetime.now(UTC)
        if not _has_index(table, "text"):
            self.index_words(table)
        if table.count_rows("vector IS NOT NULL") >= max(self._rows, _LEAST_TRAINING) and not _has_index(
            table, "vector"
        ):
            _index_vectors(table)
        tidy(table, _KEPT)

    def merge(self, table: Any) -> None:
        """Merge the small files of a table without indexes."""
        tidy(table, _KEPT)

    def index_words(self, table: Any) -> None:
        """Make the index of words. Its segmenter needs no dictionary files and knows words of Chinese."""
        from lancedb.index import FTS

        table.create_index("text", config=FTS(base_tokenizer="icu", with_position=False), replace=True)


def _index_vectors(table: Any) -> None:
    from lancedb.index import IvfPq

    log.info("making an index of vectors; this takes a while")
    table.create_index("vector", config=IvfPq(distance_type="cosine"), replace=True)


def _has_index(table: Any, column: str) -> bool:
    return any(column in index.columns for index in table.list_indices())


def _moment(value: Any) -> datetime:
    moment: datetime = value if isinstance(value, datetime) else datetime.fromtimestamp(float(value), UTC)
    return moment if moment.tzinfo else moment.astimezone(UTC)
