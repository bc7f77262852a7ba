"""Durations and sizes in configuration: one parser for all keys.

Durations: `30d`, `12h`, `5m`, `90s`, `250ms`, or several joined (`1h30m`). Sizes: `10mb`, `1.5kb`,
`512b`, counted in 1024s. A bare number has the unit that the key documents.
"""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(b|kb|mb|gb|tb)?\Z")
_BYTES = {"b": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3, "tb": 1024**4}


def parse_duration(value: object, *, unit: str = "s") -> float:
    """Seconds. A bare number is in `unit`. Raises ValueError with what was expected."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return value * _SECONDS[unit]
    if isinstance(value, str):
        text = value.strip().lower()
        if _NUMBER.fullmatch(text):
            return float(text) * _SECONDS[unit]
        parts = _DURATION.findall(text)
        if parts and "".join(n + u for n, u in parts) == text:
            return sum(float(n) * _SECONDS[u] for n, u in parts)
    raise ValueError('expected a duration such as "30s", "5m", "1h30m" or "30d"')


def parse_size(value: object) -> int:
    """Bytes. A bare number is in bytes. Raises ValueError with what was expected."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        found = _SIZE.match(value.strip().lower())
        if found:
            return int(float(found[1]) * _BYTES[found[2] or "b"])
    raise ValueError('expected a size such as "512kb", "10mb" or a number of bytes')
