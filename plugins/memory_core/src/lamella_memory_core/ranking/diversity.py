"""Maximal marginal relevance: of hits that say the same, one comes first and the others later. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lamella.text.segment import tokens


def diversified(texts: Sequence[str], values: Sequence[float], relevance_share: float) -> dict[int, float]:
    """The indexes of hits in a new order, each with its likeness to what is before it. `values`: what
    they are ordered by now.

    Greedily the hit with the most `relevance_share` x relevance - (1 - `relevance_share`) x likeness to
    one that is before it. Relevance is the value on a scale from 0 to 1 over all hits; likeness is the
    part of the words of two texts that both have. Equal ones go by value. With a share of 1 the order is
    that of the values.
    """
    relevance = _scaled(values)
    words = [frozenset(tokens(text)) for text in texts]
    nearest = [0.0] * len(texts)  # to any hit that has been chosen
    waiting = sorted(range(len(texts)), key=lambda i: -values[i])
    chosen: dict[int, float] = {}
    while waiting:
        best = max(waiting, key=lambda i: relevance_share * relevance[i] - (1.0 - relevance_share) * nearest[i])
        waiting.remove(best)
        chosen[best] = nearest[best]
        for i in waiting:
            nearest[i] = max(nearest[i], likeness(words[best], words[i], same=texts[best] == texts[i]))
    return chosen


def likeness(one: frozenset[str], other: frozenset[str], *, same: bool = False) -> float:
    """Jaccard's index of two sets of words, 0 to 1; without any words, whether the texts are the `same`."""
    if not one and not other:
        return float(same)
    return len(one & other) / len(one | other)


def _scaled(values: Sequence[float]) -> list[float]:
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [(value - low) / (high - low) if high > low else 1.0 for value in values]
