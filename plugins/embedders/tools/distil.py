"""From the teachers' word vectors to the tables of the static model. Pure functions, no I/O.

Figures that were tried against these choices are in docs/decisions/0004-static-embedder.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, np.dtype[Any]]

# Four-bit levels run from -7 to 7; the outermost stand for this many root-mean-squares of the row.
_LEVELS = 7
_CLIP = 3.0


@frozen(slots=True)
class Projection:
    """An affine map from a teacher's space to a smaller one: `(x - mean) @ axes`."""

    mean: Array
    axes: Array

    def __call__(self, vectors: Array) -> Array:
        projected: Array = (vectors.astype(np.float64) - self.mean) @ self.axes
        return projected

    def centred(self, vectors: Array) -> Array:
        """As a call, with the mean of these vectors in place of the stored one."""
        return Projection(vectors.mean(axis=0, dtype=np.float64), self.axes)(vectors)


def projection(vectors: Array, *, width: int, drop: int, whitening: float) -> Projection:
    """Principal components `drop` to `drop + width`.

    The strongest ones tell kinds of tokens apart (case, length, fragment or word), not meanings.
    `whitening` raises the weaker of the kept ones: 0 not at all, 1 until all are equally strong.
    """
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors.astype(np.float64) - mean
    values, axes = np.linalg.eigh(centred.T @ centred)
    chosen = np.argsort(values)[::-1][drop : drop + width]
    strengths, axes = np.sqrt(values[chosen]), axes[:, chosen]
    # An eigenvector's sign is arbitrary; make its largest number positive.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(width)])
    return Projection(mean, axes * (strengths[0] / strengths) ** whitening)


def rarity(probabilities: Array, *, strength: float) -> Array:
    """Weights in 0..1 that are small for frequent tokens (smooth inverse frequency)."""
    share = probabilities / probabilities.sum()
    weights: Array = strength / (strength + share)
    return weights


def rank_probabilities(ranks: Sequence[int], *, shift: float) -> Array:
    """Probabilities by Zipf's law, for a vocabulary of which only the order is known."""
    return 1.0 / (np.asarray(ranks, dtype=np.float64) + shift)


def bridge(source: Array, target: Array, *, ridge: float) -> Array:
    """The matrix that best carries rows of `source` to those of `target` (ridge regression).

    `ridge` is in units of the mean variance of `source`.
    """
    gram = source.T @ source
    penalty = ridge * np.trace(gram) / len(gram) * np.eye(len(gram))
    matrix: Array = np.linalg.solve(gram + penalty, source.T @ target)
    return matrix


def quantise(vectors: Array) -> tuple[Array, Array]:
    """Rows of four-bit numbers, packed as the data file wants them, and their float16 scales."""
    rms = np.sqrt((vectors**2).mean(axis=1))
    scales = np.maximum(_CLIP * rms / _LEVELS, np.finfo(np.float16).tiny).astype(np.float16)
    levels = np.rint(vectors / scales[:, None].astype(np.float64))
    stored = (np.clip(levels, -_LEVELS, _LEVELS) + _LEVELS + 1).astype(np.uint8)
    half = stored.shape[1] // 2
    return stored[:, :half] | (stored[:, half:] << 4), scales
