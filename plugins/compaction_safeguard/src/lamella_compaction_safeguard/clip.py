"""Cutting text to a number of characters, never inside one that is made of several code points."""

from __future__ import annotations

from lamella.text.unicode import character_start


def clipped(text: str, limit: int, mark: str = "...") -> str:
    """The text, or its first `limit` characters and a mark when it has more."""
    return text if len(text) <= limit else text[: character_start(text, limit)].rstrip() + mark


def one_line(text: str) -> str:
    """The text with all white space collapsed."""
    return " ".join(text.split())
