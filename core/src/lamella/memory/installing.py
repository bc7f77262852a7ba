"""Which distribution brings a memory backend."""

from __future__ import annotations

# Others have the name that `lamella plugins new` gives them.
_ELSEWHERE = {"sqlite": "lamella-memory-core", "lancedb": "'lamella-memory-lancedb[notes]'"}


def distribution_of(backend: str) -> str:
    """What pip is told to install, as it stands in a shell."""
    return _ELSEWHERE.get(backend, f"lamella-{backend}-backend")
