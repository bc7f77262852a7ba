"""How much of the window history may take: one set of numbers for every decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from attrs import frozen

from lamella.config.schema import CompactionSection
from lamella.errors import Problem

# Why memory should be saved now; empty: it should not.
FlushTrigger: TypeAlias = Literal["", "tokens", "transcript"]


@frozen(slots=True)
class Budget:
    """Tokens. Compaction is due above `window - reserve` and keeps about `keep_recent`.

    Memory is saved from `flush_at` tokens on, or when the transcript has grown by `flush_bytes` since
    the last compaction; 0 for either: never.
    """

    window: int
    reserve: int
    keep_recent: int
    flush_at: int = 0
    flush_bytes: int = 0

    @property
    def limit(self) -> int:
        """The most tokens that a request may have without a compaction."""
        return self.window - self.reserve


def budget(settings: CompactionSection, window: int) -> Budget:
    """The numbers that are in force for a window.

    The reserve is the configured one or the floor, whichever is larger, but never more than a
    quarter of the window; what a compaction keeps is at most half of the rest, and so is the distance
    from the flush to the compaction. So small windows work with settings that were made for large ones.
    """
    reserve = min(_wanted_reserve(settings), window // 4)
    room = window - reserve
    keep = min(settings.keep_recent_tokens, room // 2)
    flushes = settings.enabled and settings.flush
    soft = min(settings.flush_soft_tokens, room // 2)
    return Budget(
        window,
        reserve,
        max(keep, 1),
        flush_at=max(room - soft, 1) if flushes else 0,
        flush_bytes=settings.flush_transcript_bytes if flushes else 0,
    )


def flush_trigger(limits: Budget, tokens: int | None, cycle_bytes: int) -> FlushTrigger:
    """Whether memory should be saved: by the next request's `tokens` (None: unknown), or by the bytes
    that the transcript has grown since the last compaction."""
    if limits.flush_at and tokens is not None and tokens >= limits.flush_at:
        return "tokens"
    return "transcript" if limits.flush_bytes and cycle_bytes >= limits.flush_bytes else ""


def budget_problems(settings: CompactionSection, window: int, origin: Callable[[str], str]) -> list[Problem]:
    """Settings that cannot be kept to in this window, with the numbers that count instead.

    `origin` tells where a key was set; defaults adapt to the window and are no problem.
    """
    limits = budget(settings, window)
    soft = limits.limit - limits.flush_at if limits.flush_at else settings.flush_soft_tokens
    of_reserve = f"a quarter of the window of {window}"
    of_room = f"half of the {limits.limit} tokens that the reserve leaves of the window of {window}"
    capped = (
        ("reserve_tokens", settings.reserve_tokens, limits.reserve, of_reserve),
        ("reserve_tokens_floor", settings.reserve_tokens_floor, limits.reserve, of_reserve),
        ("keep_recent_tokens", settings.keep_recent_tokens, limits.keep_recent, of_room),
        ("flush_soft_tokens", settings.flush_soft_tokens, soft, of_room),
    )
    return [
        Problem(key, f"{wanted} is more than the window allows; {used} counts, {why}", origin(key), "warning")
        for key, wanted, used, why in ((f"compaction.{name}", w, u, y) for name, w, u, y in capped)
        if wanted > used and origin(key) != "default"
    ]


def _wanted_reserve(settings: CompactionSection) -> int:
    return max(settings.reserve_tokens, settings.reserve_tokens_floor)
