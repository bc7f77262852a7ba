"""Arrays of numbers, and vectors that are fit to be stored. numpy is loaded when this module is."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamella.errors import LamellaError
from lamella.types.memory import Embedder

Singles = np.ndarray[Any, np.dtype[np.float32]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class BadVectors(LamellaError):
    """An embedder gave something that is no vector of its own kind."""


def checked(vectors: Any, rows: int, embedder: Embedder) -> Singles:
    """An embedder's answer as float32 (rows, dimensions), each row of unit length or all zero.

    Raises `BadVectors` for another shape, and for numbers that are not finite.
    """
    try:
        matrix = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise BadVectors(f"{embedder.identity} gave no vectors ({error})") from error
    if matrix.shape != (rows, embedder.dimensions):
        expected = (rows, embedder.dimensions)
        raise BadVectors(f"{embedder.identity} gave vectors of shape {matrix.shape}, expected {expected}")
    if not np.isfinite(matrix).all():
        raise BadVectors(f"{embedder.identity} gave a vector with numbers that are not finite")
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Singles = (matrix / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return unit


def largest(values: Singles, count: int) -> list[int]:
    """The places of the `count` largest values, largest first; those of minus infinity are none."""
    count = min(count, len(values))
    if not count:
        return []
    top = np.argpartition(values, -count)[-count:]
    ordered = top[np.argsort(-values[top], kind="stable")]
    return [int(place) for place in ordered if values[place] > -np.inf]
