"""The check of an embedder's answers, which loads numpy at the first vector and not before."""

from __future__ import annotations

from typing import Any

from lamella.types.memory import Embedder


def check(vectors: Any, rows: int, embedder: Embedder) -> Any:
    """See `lamella_memory_lancedb.arrays.checked`."""
    from lamella_memory_lancedb.arrays import checked

    return checked(vectors, rows, embedder)
