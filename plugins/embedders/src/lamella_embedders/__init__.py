"""Embedders for lamella: what turns texts into vectors, offered under names.

Each provider is a module of its own with a function `registrations()`; none is imported further
than its names before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable

from lamella.plugins.hookspecs import hookimpl
from lamella.types.memory import EmbedderRegistration
from lamella_embedders.static import provider as static

__version__ = "0.1.0"
__all__ = ["Embedders"]


class Embedders:
    """The plugin: it only registers."""

    name = "embedders"
    version = __version__

    @hookimpl
    def register_embedders(self) -> Iterable[EmbedderRegistration]:
        return static.registrations()
