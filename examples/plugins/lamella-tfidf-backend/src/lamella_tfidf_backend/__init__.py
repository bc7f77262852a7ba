"""The memory backend `tfidf`: passages of notes by TF-IDF and cosine, kept in one JSON file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import frozen

from lamella import hookimpl
from lamella.config.schema import between, setting
from lamella.types.memory import BackendContext, BackendRegistration, MemoryBackend

if TYPE_CHECKING:
    from lamella.types.hooks import RegistrationContext

__version__ = "0.1.0"
__all__ = ["Tfidf", "TfidfConfig"]


@frozen(slots=True)
class TfidfConfig:
    """Settings of the plugin: `[plugins.config.tfidf-backend]`."""

    passage_tokens: int = setting(128, "Size of a passage, in estimated tokens.", check=between(16, 2000))


class Tfidf:
    """Offers the backend `tfidf`."""

    name = "tfidf-backend"
    Config = TfidfConfig

    def __init__(self, config: TfidfConfig) -> None:
        self.config = config

    @hookimpl
    def register_memory_backends(self, context: RegistrationContext) -> Iterable[BackendRegistration]:
        return (BackendRegistration("tfidf", self._open, "words by TF-IDF, in a JSON file"),)

    def _open(self, context: BackendContext) -> MemoryBackend:
        from lamella_tfidf_backend.backend import TfidfBackend

        return TfidfBackend(context, self.config.passage_tokens)
