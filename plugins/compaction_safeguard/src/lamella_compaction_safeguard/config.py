"""Settings of the plugin: `[plugins.config.compaction-safeguard]`."""

from __future__ import annotations

from attrs import frozen

from lamella.config.schema import between, one_of, setting

DEFAULT_SECTIONS = ("Session Startup", "Red Lines")


@frozen(slots=True)
class Config:
    """Settings of compaction-safeguard, with their defaults."""

    history_share: float = setting(
        0.5,
        "Part of the window up to which folded history is one summary; what is older gets one of its own first.",
        check=between(0.1, 0.9),
    )
    recent_turns: int = setting(3, "Newest folded turns that a summary quotes.", check=between(0, 12))
    identifier_policy: str = setting(
        "strict",
        "Identifiers in summaries: strict (word for word, checked), off, or custom.",
        check=one_of("strict", "off", "custom"),
    )
    identifier_instructions: str = setting("", "What custom tells the model about identifiers; empty: as strict.")
    quality_guard: bool = setting(True, "Check a model's summary, and mend what it lacks.")
    quality_retries: int = setting(1, "How often the model is asked again after a failed check.", check=between(0, 3))
    max_calls: int = setting(4, "Most model calls of one compaction; beyond them, rules quote.", check=between(1, 40))
    timeout_seconds: float = setting(240.0, "Time limit of all model calls of one compaction.", check=between(1))
    retry_delay_ms: int = setting(500, "Wait before a call is repeated after a passing fault.", check=between(0, 5000))
    summary_max_chars: int = setting(
        16_000, "Most characters of a summary; in small windows, a quarter of the window.", check=between(2000, 200_000)
    )
    refresh_sections: tuple[str, ...] = setting(
        DEFAULT_SECTIONS, "Sections of AGENTS.md that come back after a compaction; empty: none."
    )
    refresh_max_chars: int = setting(3000, "Most characters of these sections.", check=between(100, 50_000))
