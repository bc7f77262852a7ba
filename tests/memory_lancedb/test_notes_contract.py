"""The backend `lancedb` keeps the contract of memory backends, with words alone and with vectors too."""

from __future__ import annotations

from collections.abc import Mapping

from lamella.testing import MemoryBackendContract, registered_backend
from lamella.types.memory import BackendRegistration, EmbedderRegistration
from lamella_embedders import Embedders
from lamella_memory_lancedb.notes import LanceDBBackend


class TestWords(MemoryBackendContract):
    def registration(self) -> BackendRegistration:
        return registered_backend(LanceDBBackend, embedder="none")


class TestMeaning(MemoryBackendContract):
    def registration(self) -> BackendRegistration:
        return registered_backend(LanceDBBackend)

    def embedders(self) -> Mapping[str, EmbedderRegistration]:
        return {r.name: r for r in Embedders().register_embedders() if r.name == "static"}
