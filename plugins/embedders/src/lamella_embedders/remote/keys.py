"""Which key goes to which address."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lamella.errors import ConfigError, Problem
from lamella_embedders.config import SECTION, RemoteSettings


class NoKey(ConfigError):
    """The key is nowhere to be found. No mistake where a provider is only one of several to choose from."""


def find_key(
    name: str, settings: RemoteSettings, usual: Sequence[str], environ: Mapping[str, str], *, required: bool
) -> str:
    """The key, or nothing where none is needed.

    The usual variables count for the provider's own address only: a key must not travel to a
    server that it was not made for. Raises `NoKey`, and `ConfigError` for what cannot be a key;
    neither shows it.
    """
    wanted = (settings.api_key_env,) if settings.api_key_env else () if settings.base_url else tuple(usual)
    places = [("api_key", settings.api_key), *((v, environ.get(v, "")) for v in wanted)]
    for place, value in places:
        if key := value.strip():
            if not re.fullmatch(r"[!-~]+", key):
                text = f"{place}: expected a key of ASCII letters, digits and signs; found other characters"
                raise ConfigError([Problem(f"{SECTION}.{name}", text)])
            return key
    if settings.api_key_env or (wanted and required):
        text = f"no key: {' or '.join(wanted)} is not set"
        raise NoKey([Problem(f"{SECTION}.{name}", text)], hint=f"export {wanted[0]}=... (or choose another embedder)")
    return ""
