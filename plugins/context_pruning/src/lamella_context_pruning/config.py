"""Settings of the plugin: `[plugins.config.context-pruning]`."""

from __future__ import annotations

from typing import Any

from attrs import Attribute, frozen

from lamella.config.schema import between, one_of, setting
from lamella.config.units import parse_duration

PLACEHOLDER = "[Old tool result content cleared]"
# Providers that keep a prompt in their cache for a time and charge for writing it.
CACHING = (
    "anthropic",
    "moonshot",
    "zai",
    "openrouter/anthropic/*",
    "openrouter/moonshot/*",
    "openrouter/moonshotai/*",
    "openrouter/zai/*",
    "kilocode/anthropic/*",
)


def _duration(_instance: Any, _attribute: Attribute[Any], value: str) -> None:
    """A validator: a duration, in minutes where it has no unit."""
    parse_duration(value, unit="m")


@frozen(slots=True)
class Tools:
    """Which tools' results may be pruned: patterns with `*`, in any case."""

    allow: tuple[str, ...] = setting((), "Tools whose results may be pruned; empty: all.")
    deny: tuple[str, ...] = setting(
        (), "Tools whose results are not pruned, nor shrunk while the request fits the window."
    )


@frozen(slots=True)
class SoftTrim:
    """Sizes of a trimmed result, in characters."""

    max_chars: int = setting(4000, "Results up to this many characters are not trimmed.", check=between(0))
    head_chars: int = setting(1500, "Characters kept from the beginning.", check=between(0))
    tail_chars: int = setting(1500, "Characters kept from the end.", check=between(0))


@frozen(slots=True)
class HardClear:
    """Replacing whole results."""

    enabled: bool = setting(True, "Clear the oldest results when trimming was not enough.")
    placeholder: str = setting(PLACEHOLDER, "What stands in their place; blank: the default.")


@frozen(slots=True)
class Results:
    """Limits of results when they are stored."""

    max_chars: int = setting(
        0,
        "Most characters of a stored result; 0: three tenths of the window, at most 400,000.",
        check=between(0),
    )
    details_max_bytes: int = setting(8192, "Most bytes of a result's details, as JSON.", check=between(256))
    details_max_chars: int = setting(2000, "Most characters of one text in them.", check=between(16))


@frozen(slots=True)
class Fit:
    """Making every request fit."""

    enabled: bool = setting(True, "Shrink tool results that do not fit, before each model call.")
    single_share: float = setting(
        0.5, "Share of the window that one result may have, at two characters a token.", check=between(0.01, 1)
    )
    total_share: float = setting(
        0.75, "Share of the window that all messages may have; results count twice.", check=between(0.05, 1)
    )


@frozen(slots=True)
class Config:
    """Settings of context-pruning, with their defaults."""

    mode: str = setting(
        "cache-ttl",
        "When to prune: cache-ttl (once the provider's cache is cold), always, or off.",
        check=one_of("cache-ttl", "always", "off"),
    )
    ttl: str = setting("5m", "How long the provider keeps the cache; without a unit in minutes.", check=_duration)
    providers: tuple[str, ...] = setting(
        CACHING, "Where to prune: patterns with * for provider or provider/model; * is everywhere."
    )
    keep_last_assistants: int = setting(
        3, "The last replies, and all after the first of them, are not pruned.", check=between(0)
    )
    soft_trim_ratio: float = setting(
        0.3, "Share of the window from which old results are trimmed.", check=between(0, 1)
    )
    hard_clear_ratio: float = setting(
        0.5, "Share of the window from which old results are cleared.", check=between(0, 1)
    )
    min_prunable_tool_chars: int = setting(
        50_000, "Least characters of results that may be pruned for any to be cleared.", check=between(0)
    )
    count_before_trim: bool = setting(
        False, "Count those characters as they were before trimming, so that fewer results are enough."
    )
    images: str = setting(
        "replace",
        "Images in old results: replace (by a note), or skip (results with images stay).",
        check=one_of("replace", "skip"),
    )
    tools: Tools = setting(Tools(), "Which tools' results may be pruned.")
    soft_trim: SoftTrim = setting(SoftTrim(), "Trimming.")
    hard_clear: HardClear = setting(HardClear(), "Clearing.")
    results: Results = setting(Results(), "Limits of results when they are stored.")
    fit: Fit = setting(Fit(), "Making every request fit.")

    @property
    def ttl_ms(self) -> float:
        """`ttl` in milliseconds."""
        return parse_duration(self.ttl, unit="m") * 1000

    @property
    def placeholder(self) -> str:
        """What stands in place of a cleared result."""
        return self.hard_clear.placeholder.strip() or PLACEHOLDER
