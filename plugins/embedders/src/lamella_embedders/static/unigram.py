"""The most probable cut of a run of CJK letters into known pieces (a unigram language model)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

# A character that no piece has costs this much more than the rarest piece.
_UNKNOWN_PENALTY = 10.0
# Longer runs are cut here, so that the tables of one search stay small.
MAX_RUN = 256
_CACHED_RUNS = 2048


class Unigram:
    """Cuts runs by the Viterbi algorithm. `log_probs` belong to `pieces`, by position."""

    def __init__(self, pieces: Sequence[str], log_probs: Sequence[float]) -> None:
        self._known: Mapping[str, tuple[int, float]] = dict(zip(pieces, enumerate(log_probs), strict=True))
        self._longest: dict[str, int] = {}
        for piece in pieces:
            self._longest[piece[0]] = max(len(piece), self._longest.get(piece[0], 0))
        self._unknown = min(log_probs, default=0.0) - _UNKNOWN_PENALTY
        self._cut = lru_cache(_CACHED_RUNS)(self._cut_run)

    def encode(self, run: str) -> list[int]:
        """Numbers of the pieces of a run, in order; unknown characters give nothing."""
        return [number for part in _parts(run) for number in self._cut(part)]

    def _cut_run(self, run: str) -> tuple[int, ...]:
        """Of cuts that are equally probable, the one whose last piece is longest."""
        size = len(run)
        best = [0.0] + [float("-inf")] * size
        came_from = [0] * (size + 1)
        piece_at = [-1] * (size + 1)
        known, longest = self._known, self._longest
        for start, first in enumerate(run):
            so_far = best[start]
            if so_far + self._unknown > best[start + 1]:
                best[start + 1], came_from[start + 1], piece_at[start + 1] = so_far + self._unknown, start, -1
            for end in range(start + 1, min(size, start + longest.get(first, 0)) + 1):
                found = known.get(run[start:end])
                if found is not None and so_far + found[1] > best[end]:
                    best[end], came_from[end], piece_at[end] = so_far + found[1], start, found[0]
        return tuple(reversed(list(_walk_back(came_from, piece_at))))


def _walk_back(came_from: Sequence[int], piece_at: Sequence[int]) -> Iterator[int]:
    end = len(came_from) - 1
    while end > 0:
        if piece_at[end] >= 0:
            yield piece_at[end]
        end = came_from[end]


def _parts(run: str) -> Iterator[str]:
    return (run[start : start + MAX_RUN] for start in range(0, len(run), MAX_RUN))
