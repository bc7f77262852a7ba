"""What of a developer's environment must not reach a test."""

from __future__ import annotations

import os
from collections.abc import Mapping


def private_names(environ: Mapping[str, str] | None = None) -> list[str]:
    """Variables of lamella and keys of model providers that are set."""
    from lamella.models.registry import builtin_providers

    keys = {name for provider in builtin_providers().values() for name in provider.key_env}
    return [
        name
        for name in (os.environ if environ is None else environ)
        if name in keys or name.startswith("LAMELLA_") or name.endswith("_API_KEY")
    ]
