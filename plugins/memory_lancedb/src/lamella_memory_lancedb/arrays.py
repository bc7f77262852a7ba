"""Arrays of numbers. numpy is loaded when this module is."""

from __future__ import annotations

from typing import Any

import numpy as np

Singles = np.ndarray[Any, np.dtype[np.float32]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


def largest(values: Singles, count: int) -> list[int]:
    """The places of the `count` largest values, largest first; those of minus infinity are none."""
    count = min(count, len(values))
    if not count:
        return []
    top = np.argpartition(values, -count)[-count:]
    ordered = top[np.argsort(-values[top], kind="stable")]
    return [int(place) for place in ordered if values[place] > -np.inf]
