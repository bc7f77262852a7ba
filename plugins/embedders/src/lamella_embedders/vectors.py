"""Checks and sums of vectors, whoever made them. Pure; numpy is loaded when a function runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lamella.errors import ModelError

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]


def checked(rows: Sequence[Any], *, count: int, dimensions: int, source: str) -> Matrix:
    """The rows as unit vectors, float32 (count, dimensions).

    `dimensions` 0 takes the length of the first row. Raises `ModelError` when the number of rows,
    their length or a number in them is wrong, or a row is all zeros.
    """
    import numpy as np

    if len(rows) != count:
        raise ModelError(f"{source}: {len(rows)} vectors came back for {count} texts")
    wrong = next((row for row in rows if not isinstance(row, list) or not row), None)
    if wrong is not None:
        raise ModelError(f"{source}: expected vectors, found {type(wrong).__name__}")
    expected = dimensions or (len(rows[0]) if rows else 0)
    lengths = {len(row) for row in rows} - {expected}
    if lengths:
        raise ModelError(
            f"{source}: expected vectors of {expected} numbers, found {min(lengths)}",
            hint="Does the model have this many dimensions?",
        )
    try:
        matrix = np.array(rows, dtype=np.float64).reshape(count, expected)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{source}: a vector holds something that is not a number ({error})") from None
    if not np.isfinite(matrix).all():
        raise ModelError(f"{source}: a vector holds numbers that are not finite")
    if count and not np.abs(matrix).max(axis=1).all():
        raise ModelError(f"{source}: a vector is all zeros")
    return unit_rows(matrix)


def unit_rows(matrix: Any) -> Matrix:
    """Every row divided by its length, float32; a row of zeros stays one."""
    import numpy as np

    wide = np.asarray(matrix, dtype=np.float64)
    # The largest number first: squares of very large or small ones would leave the range.
    largest = np.abs(wide).max(axis=1, keepdims=True, initial=0.0)
    scaled = wide / np.where(largest == 0.0, 1.0, largest)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths == 0.0, 1.0, lengths)).astype(np.float32)


def joined(pieces: Matrix, owners: Sequence[int], weights: Sequence[float], count: int) -> Matrix:
    """Vectors of `count` texts from those of their pieces: weighted means of unit length.

    `owners[i]` is the text that piece i belongs to. A text without pieces has the zero vector.
    """
    import numpy as np

    total = np.zeros((count, pieces.shape[1]), dtype=np.float64)
    np.add.at(total, np.asarray(owners, dtype=np.intp), pieces * np.asarray(weights, dtype=np.float64)[:, None])
    return unit_rows(total)
