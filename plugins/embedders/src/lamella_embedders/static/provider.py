"""What this provider offers to lamella."""

from __future__ import annotations

from lamella.types.memory import Embedder, EmbedderRegistration

_SUMMARY = "English and Chinese word vectors in the package: fast, offline, no key"
NAMES = ("static", "local")


def registrations() -> tuple[EmbedderRegistration, ...]:
    """`static`, and `local` for the same; neither reads the data before it is asked for."""
    return tuple(EmbedderRegistration(name, open_static, summary=_SUMMARY, offline=True) for name in NAMES)


def open_static() -> Embedder:
    """The shipped embedder, one object a process. Raises `PluginError` when its data is damaged."""
    from lamella_embedders.static.embedder import default_embedder

    return default_embedder()
