"""How a search chooses and shows passages."""

from __future__ import annotations

from attrs import frozen

from lamella_memory_core.choices import STANDARDISED
from lamella_memory_core.config import Config


@frozen(slots=True)
class Style:
    """What of the settings a search needs.

    `dense_share`: the part of the order that meaning has; None: what suits. `candidates`: with `weighted`
    fusion, how many of each side are looked at for each result. `mmr_lambda`: 1 for no diversity, see
    `diversified`. `half_life_days`: after so many a dated file counts half; 0: never.
    """

    passage_chars: int = 1200
    dense_share: float | None = None
    fusion: str = STANDARDISED
    candidates: int = 4
    mmr_lambda: float = 1.0
    half_life_days: int = 0


def style_of(config: Config) -> Style:
    """The style that the settings ask for."""
    return Style(
        passage_chars=config.snippet_chars,
        dense_share=config.dense_share,
        fusion=config.fusion,
        candidates=config.candidate_multiplier,
        mmr_lambda=config.mmr_lambda,
        half_life_days=config.half_life_days,
    )
