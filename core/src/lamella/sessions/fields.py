"""Values of an entry of sessions.json, by name.

Other programs and people write that file too. A value of another kind than expected counts as missing: no
session may be lost for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def number_of(entry: Mapping[str, Any], name: str) -> float | None:
    """A finite number; None without one."""
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def integer_of(entry: Mapping[str, Any], name: str) -> int | None:
    """A number without its fraction; None without one."""
    value = number_of(entry, name)
    return None if value is None else int(value)


def count_of(entry: Mapping[str, Any], name: str) -> int:
    """A number that counts something; 0 without one."""
    return integer_of(entry, name) or 0


def string_of(entry: Mapping[str, Any], name: str) -> str | None:
    """A text; None without one."""
    value = entry.get(name)
    return value if isinstance(value, str) else None


def strings_of(entry: Mapping[str, Any], name: str) -> list[str]:
    """The texts of a list, in order; empty without a list."""
    values = entry.get(name)
    return [v for v in values if isinstance(v, str)] if isinstance(values, list) else []


def mapping_of(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What stands under a name, by name; empty when it is nothing of the kind."""
    value = entry.get(name)
    return value if isinstance(value, Mapping) else {}
