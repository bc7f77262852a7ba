"""How much meaning counts beside words, for one question. Pure; figures: docs/decisions/0014."""

from __future__ import annotations

from lamella.text.scripts import share_in
from lamella.types.memory import EmbedderTraits

USUAL_SHARE = 0.6  # of an embedder that tells nothing of itself
UNREAD_SHARE = 0.2
OPENCLAW_SHARE = 0.7


def dense_share(configured: float | None, traits: EmbedderTraits, question: str) -> float:
    """The part of the order that meaning has, 0 to 1: what is configured, else what suits the embedder.

    It falls to `UNREAD_SHARE` with the letters of the question that the embedder cannot read: there its
    vectors are little more than a count of signs.
    """
    share = _first(configured, traits.dense_share, USUAL_SHARE)
    if traits.scripts is None:
        return share
    readable = share_in(question, traits.scripts)
    return readable * share + (1.0 - readable) * min(share, UNREAD_SHARE)


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)
