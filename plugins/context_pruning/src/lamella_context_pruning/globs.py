"""Patterns for names of tools, providers and models: `*` is any run of characters, case does not count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


def matches(pattern: str, name: str) -> bool:
    """Whether a whole name fits one pattern; a blank pattern fits nothing."""
    return bool(pattern.strip()) and _compiled(pattern.strip().lower()).fullmatch(name.strip().lower()) is not None


def allowed(name: str, allow: Sequence[str], deny: Sequence[str]) -> bool:
    """Whether a name is allowed: none of `deny` fits, and one of `allow` does or there is none."""
    if any(matches(p, name) for p in deny):
        return False
    given = [p for p in allow if p.strip()]
    return not given or any(matches(p, name) for p in given)


def listed(provider: str, model: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns fits the provider or `provider/model`."""
    return any(matches(p, name) for p in patterns for name in (provider, f"{provider}/{model}"))


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
