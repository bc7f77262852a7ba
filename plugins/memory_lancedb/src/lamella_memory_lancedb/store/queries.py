"""What is asked of a LanceDB table. Each function takes its handle; a condition is SQL, empty for none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamella_memory_lancedb.arrays import Singles

Row = dict[str, Any]

# How many parts of the approximate index are looked at, and how many candidates for each result are
# compared by their true vectors.
_PROBES, _REFINE = 40, 20
# Ids that one condition names.
_MOST_IDS = 500


def rows(table: Any, condition: str, columns: Sequence[str], most: int | None = None) -> list[Row]:
    query = table.search().select(list(columns)).limit(most)
    found: list[Row] = (query.where(condition) if condition else query).to_list()
    return found


def rows_with_words(table: Any, question: str, condition: str, columns: Sequence[str], most: int) -> list[Row]:
    """Best first. The question is matched word by word; nothing in it is an operator."""
    from lancedb.query import MatchQuery

    query = table.search(MatchQuery(question, "text"), query_type="fts")
    if condition:
        query = query.where(condition, prefilter=True)
    found: list[Row] = query.select([*columns, "_score"]).limit(most).to_list()
    return found


def rows_near(table: Any, vector: Singles, condition: str, columns: Sequence[str], most: int) -> list[Row]:
    """Best first, with `_distance`: 1 less the cosine."""
    query = table.search(vector, vector_column_name="vector").distance_type("cosine")
    if condition:
        query = query.where(condition, prefilter=True)
    query = query.nprobes(_PROBES).refine_factor(_REFINE).select([*columns, "_distance"])
    found: list[Row] = query.limit(most).to_list()
    return found


def groups(items: Sequence[str], size: int = _MOST_IDS) -> Iterator[Sequence[str]]:
    """Items in parts of this size; ids in as many conditions as they need."""
    return (items[start : start + size] for start in range(0, len(items), size))
