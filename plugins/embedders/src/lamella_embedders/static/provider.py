"""What this provider offers to lamella."""

from __future__ import annotations

from lamella.types.memory import Embedder, EmbedderRegistration

_SUMMARY = "English and Chinese word vectors in the package: fast, offline, no key"
NAMES = ("static", "local")


def registrations() -> tuple[EmbedderRegistration, ...]:
    """`static`, and `local` for the same; neither reads the data before it is asked for."""
    return tuple(EmbedderRegistration(name, _open, summary=_SUMMARY, offline=True) for name in NAMES)


def _open() -> Embedder:
    from lamella_embedders.static.embedder import default_embedder

    return default_embedder()
