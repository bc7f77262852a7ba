"""Settings of the plugin: `[plugins.config.session-memory]`."""

from __future__ import annotations

from attrs import frozen

from lamella.config.schema import between, each_of, one_of, setting


@frozen(slots=True)
class Config:
    """Settings of session-memory, with their defaults."""

    apply_on: tuple[str, ...] = setting(
        ("reset",),
        "Ends of sessions that get a note: reset (asked for), idle, daily.",
        check=each_of("reset", "idle", "daily"),
    )
    messages: int = setting(15, "Newest messages that a note quotes.", check=between(1, 1000))
    message_max_chars: int = setting(800, "Most characters of one message.", check=between(40))
    slug: str = setting(
        "model",
        "Where a note's name is from: model (the text, where there is none), text, or time.",
        check=one_of("model", "text", "time"),
    )
    slug_timeout_seconds: float = setting(15.0, "How long the model may take for a name.", check=between(0.1))
