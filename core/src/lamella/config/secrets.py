"""Which settings are secrets, and how settings are shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
_SECRET = re.compile(
    r"(?:^|_)(?:api_?key|access_?key|account_?key|sas_?key|token|secret|password|passphrase|credentials?)(?:_(?!env$)|$)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"\$\{\w+\}")


def shown(key: str, value: Any) -> Any:
    """The value of a setting as it may be printed: secrets hidden, also within tables. The name of a variable,
    such as `${KEY}`, is none."""
    if isinstance(value, Mapping):
        return {name: shown(str(name), inner) for name, inner in value.items()}
    if isinstance(value, str) and value and not _REFERENCE.fullmatch(value) and _SECRET.search(key.rpartition(".")[2]):
        return HIDDEN
    return value
