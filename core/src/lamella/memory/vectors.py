"""An embedder's answers, checked. numpy comes with the plugins that compare vectors, and is loaded at the first."""

from __future__ import annotations

from typing import Any

from lamella.errors import LamellaError
from lamella.types.memory import Embedder


class BadVectors(LamellaError):
    """An embedder gave something that is no vector of its own kind."""


def checked(vectors: Any, rows: int, embedder: Embedder) -> Any:
    """An embedder's answer as a float32 array (rows, dimensions). Raises `BadVectors` when it is anything else."""
    import numpy as np

    try:
        matrix = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise BadVectors(f"{embedder.identity} gave no vectors ({error})") from error
    if matrix.shape != (rows, embedder.dimensions):
        expected = (rows, embedder.dimensions)
        raise BadVectors(f"{embedder.identity} gave vectors of shape {matrix.shape}, expected {expected}")
    if not np.isfinite(matrix).all():
        raise BadVectors(f"{embedder.identity} gave a vector with numbers that are not finite")
    return matrix
