"""An embedder for tests: a text's vector counts chosen words, so that likeness is known beforehand."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamella.types.memory import EmbedderRegistration

KIN = {"puppy": "dog", "hound": "dog", "kitten": "cat"}


class WordVectors:
    """Words of one kin share a direction; other words get one by chance. `mode` says how it misbehaves."""

    def __init__(self, model: str = "a", dimensions: int = 64, mode: str = "ok") -> None:
        self.identity = f"words/{model}/{dimensions}"
        self.dimensions = dimensions
        self.mode = mode
        self.groups: list[list[str]] = []

    @property
    def embedded(self) -> list[str]:
        return [text for group in self.groups for text in group]

    def embed_documents(self, texts: Sequence[str]) -> Any:
        if self.mode == "raise":
            raise RuntimeError("no such service")
        self.groups.append(list(texts))
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> Any:
        if self.mode == "hang":
            time.sleep(1.0)
        if self.mode in ("raise", "raise_query"):
            raise RuntimeError("no such service")
        if self.mode == "wrong_length":
            return np.ones(self.dimensions + 1, dtype=np.float32)
        if self.mode == "nan":
            return np.full(self.dimensions, np.nan, dtype=np.float32)
        if self.mode == "all_zero":
            return np.zeros(self.dimensions, dtype=np.float32)
        return self._vector(text)

    def registered(self) -> dict[str, EmbedderRegistration]:
        return {"static": EmbedderRegistration("static", lambda: self)}

    def _vector(self, text: str) -> Any:
        vector = np.zeros(self.dimensions)
        for word in text.lower().replace("?", " ").split():
            seed = zlib.crc32(KIN.get(word, word).encode())
            vector += np.random.default_rng(seed).normal(size=self.dimensions)
        length = float(np.linalg.norm(vector))
        return (vector / length if length else vector).astype(np.float32)
