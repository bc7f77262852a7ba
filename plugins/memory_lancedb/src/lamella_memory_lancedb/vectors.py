"""An embedder's answers, fit to be stored. numpy is loaded at the first vector and not before."""

from __future__ import annotations

from typing import Any

from lamella.memory.vectors import checked
from lamella.types.memory import Embedder


def check(vectors: Any, rows: int, embedder: Embedder) -> Any:
    """As `lamella.memory.vectors.checked`, each row of unit length or all zero."""
    import numpy as np

    matrix = checked(vectors, rows, embedder)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return (matrix / np.where(lengths > 0, lengths, 1)).astype(np.float32)
