"""How much of the window history may take: one set of numbers for every decision."""

from __future__ import annotations

from attrs import frozen

from lamella.config.schema import CompactionSection


@frozen(slots=True)
class Budget:
    """Tokens. Compaction is due above `window - reserve` and keeps about `keep_recent`."""

    window: int
    reserve: int
    keep_recent: int


def budget(settings: CompactionSection, window: int) -> Budget:
    """The numbers that are in force for a window.

    The reserve is the configured one or the floor, whichever is larger, but never more than a
    quarter of the window; what a compaction keeps is at most half of the rest. So small windows
    work with settings that were made for large ones.
    """
    reserve = max(settings.reserve_tokens, settings.reserve_tokens_floor)
    reserve = min(reserve, window // 4)
    keep = min(settings.keep_recent_tokens, (window - reserve) // 2)
    return Budget(window, reserve, max(keep, 1))
