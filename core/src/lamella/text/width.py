"""How many columns a text takes on a terminal: wide characters take two."""

from __future__ import annotations

import unicodedata


def width(text: str) -> int:
    """Terminal columns of a text without line feeds."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pad(text: str, columns: int) -> str:
    """The text with blanks up to a width; longer texts stay as they are."""
    return text + " " * max(0, columns - width(text))


def clip(text: str, columns: int) -> str:
    """One line of at most so many columns, with an ellipsis where it was cut."""
    line = " ".join(text.split())
    if width(line) <= columns:
        return line
    kept = ""
    for character in line:
        if width(kept + character) > columns - 1:
            break
        kept += character
    return kept + "…"
