"""Embedders for lamella: what turns texts into vectors, offered under names.

Each provider is a module of its own, imported when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable

from lamella.plugins.hookspecs import hookimpl
from lamella.types.memory import EmbedderRegistration
from lamella_embedders.choice import Chosen, registrations
from lamella_embedders.config import Config as _Config

__version__ = "0.1.0"
__all__ = ["Chosen", "Embedders"]


class Embedders:
    """The plugin: it only registers."""

    name = "embedders"
    version = __version__
    Config = _Config

    def __init__(self, config: _Config | None = None) -> None:
        self.config = config or _Config()

    @hookimpl
    def register_embedders(self) -> Iterable[EmbedderRegistration]:
        return list(registrations(self.config))
