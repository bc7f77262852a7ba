"""What a memory backend answered, checked: backends are written by others."""

from __future__ import annotations

import math

from attrs import evolve

from lamella.errors import MemoryUnavailable
from lamella.text.unicode import well_formed
from lamella.types.memory import MemoryHit, MemoryResults


def checked_results(found: object) -> MemoryResults:
    """The results, whose texts can be shown and sent. Raises `MemoryUnavailable` for anything else."""
    if not isinstance(found, MemoryResults):
        raise MemoryUnavailable(f"it answered with {type(found).__name__}, expected MemoryResults")
    hits: object = found.hits
    if not isinstance(hits, tuple | list):
        raise MemoryUnavailable(f"its hits are {type(hits).__name__}, expected a tuple of MemoryHit")
    checked = tuple(_checked_hit(hit) for hit in hits)
    return found if checked == found.hits else evolve(found, hits=checked)


def _checked_hit(hit: object) -> MemoryHit:
    if not isinstance(hit, MemoryHit):
        raise MemoryUnavailable(f"a hit is {type(hit).__name__}, expected MemoryHit")
    if not all(isinstance(text, str) for text in (hit.path, hit.snippet, hit.source)):
        raise MemoryUnavailable("a hit has a path, snippet or source that is no text")
    if not (_is_number(hit.score) and math.isfinite(hit.score)):
        raise MemoryUnavailable(f"a hit of {hit.path} has the score {hit.score!r}, expected a number from 0 to 1")
    if not (isinstance(hit.start_line, int) and isinstance(hit.end_line, int)):
        raise MemoryUnavailable(f"a hit of {hit.path} has the lines {hit.start_line!r} to {hit.end_line!r}")
    path, snippet = well_formed(hit.path), well_formed(hit.snippet)
    return hit if (path, snippet) == (hit.path, hit.snippet) else evolve(hit, path=path, snippet=snippet)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
