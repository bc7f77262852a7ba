"""Recorded results of Pi's own functions, one case each, with the newest recorded version's value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

UNITS = Path(__file__).parents[1] / "data" / "units"


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of `tests/data/units/<name>.json`."""
    loaded: list[dict[str, Any]] = json.loads((UNITS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def newest(by_version: dict[str, Any]) -> Any:
    """The value of the newest version; a version that is not listed behaved like the one before it."""
    version = max(by_version, key=lambda v: tuple(int(part) for part in v.split(".")))
    return by_version[version]


def numbered_lines(count: int, word: str = "line") -> str:
    return "\n".join(f"{word} {n}" for n in range(1, count + 1))


REPEATED_TEXTS = {
    "L(2500)": numbered_lines(2500),
    "2500 lines: L(2500)": numbered_lines(2500),
    "80 lines of 1000 z": ("z" * 1000 + "\n") * 80,
    "60000 q": "q" * 60000,
    "one 60000-byte line": "w" * 60000 + "\nz",
    "900 lines of 100 chars": ("m" * 99 + "\n") * 900,
}


def text_of_case(value: str | dict[str, Any]) -> str:
    """A text, or one that the recording names instead of holding it."""
    if isinstance(value, str):
        return value
    return REPEATED_TEXTS[value.get("repeat") or value["note"]]
