"""Memories in a scratch folder, with embedders whose likeness is known beforehand."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lamella.text.segment import fold
from lamella.types.hooks import MemoryContext
from lamella.types.memory import EmbedderRegistration
from lamella_memory_lancedb import Config
from lamella_memory_lancedb.service import Memories


class GivenVectors:
    """Gives the vectors it was told; any other text gets one by chance, the same for texts that differ in case,
    width and spaces only. `fails` makes it raise; `calls` counts texts."""

    def __init__(
        self, given: Mapping[str, Sequence[float]] | None = None, dimensions: int = 64, model: str = "a"
    ) -> None:
        self.given = dict(given or {})
        self.dimensions = dimensions
        self.identity = f"given/{model}/{dimensions}"
        self.fails = False
        self.calls: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Any:
        if self.fails:
            raise RuntimeError("no such service")
        self.calls += texts
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]

    def _vector(self, text: str) -> Any:
        if text in self.given:
            vector = np.asarray(self.given[text], dtype=np.float32)
        else:
            seed = zlib.crc32(" ".join(fold(text).split()).encode())
            vector = np.random.default_rng(seed).normal(size=self.dimensions).astype(np.float32)
        length = float(np.linalg.norm(vector))
        return vector / length if length else vector

    def registered(self) -> dict[str, EmbedderRegistration]:
        return {"static": EmbedderRegistration("static", lambda: self)}


def memories_in(
    folder: Path, made: GivenVectors | None = None, *, agent: str = "main", embedders: Any = None, **settings: Any
) -> Memories:
    """Long-term memory with its state below a folder."""
    on_offer = embedders if embedders is not None else (made or GivenVectors()).registered()
    state = folder / "agents" / agent
    return Memories(MemoryContext(agent, folder, state, "", "", {}, on_offer), Config(**settings))


def texts_on_disk(folder: Path, text: str) -> list[Path]:
    """Files below a folder that hold a text."""
    wanted = text.encode()
    return [path for path in folder.rglob("*") if path.is_file() and wanted in path.read_bytes()]
