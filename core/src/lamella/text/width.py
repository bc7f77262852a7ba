"""Text on a terminal: how many columns it takes (wide characters two), and nothing that steers it."""

from __future__ import annotations

import re
import unicodedata

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


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


def printable(text: str) -> str:
    """The text without control characters (but line feeds and tabs): what models and notes say must
    not steer a terminal."""
    return _CONTROLS.sub("", text)
