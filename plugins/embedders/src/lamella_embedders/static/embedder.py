"""Sentence vectors without a neural network: weighted means of stored word vectors.

A text is cut by script. Its Latin part is looked up in a table learned from an English model, its
CJK part in one learned from a multilingual model, and a matrix carries the CJK part into the space
of the Latin one. A vector has two halves: the common space, in which texts of all languages are
compared, and the CJK space, in which CJK texts are told apart more finely:

    [ sqrt(1 - own) * common ; sqrt(own) * cjk ]     own = own_share * the CJK share of the letters

A word that occurs n times counts sqrt(n) times: notes repeat names, and repetition says little.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamella.text.scripts import EAST_ASIAN, LATIN
from lamella.types.memory import EmbedderTraits
from lamella_embedders.static.datafile import StaticModel, Table, load_model
from lamella_embedders.static.scripts import split_scripts
from lamella_embedders.static.unigram import Unigram
from lamella_embedders.static.wordpiece import WordPiece

if TYPE_CHECKING:
    import numpy as np

    Vector = np.ndarray[Any, np.dtype[np.float32]]

DATA_FILE = Path(__file__).with_name("data") / "lamella-static-1.bin"
DENSE_SHARE = 0.5  # measured: docs/decisions/0014
_DIGEST_DIGITS = 12


class StaticEmbedder:
    """Embeds texts of any length; fast, offline, the same for documents and queries.

    A text without a single known word (empty, blank, emoji only, scripts the model does not know)
    gets the zero vector, whose cosine with everything is 0; every other vector has length 1. May be
    used from several threads.
    """

    def __init__(self, model: StaticModel) -> None:
        self._model = model
        self._wordpiece = WordPiece(model.latin.pieces)
        self._bridge = model.bridge.astype("float32")

    @cached_property
    def _unigram(self) -> Unigram:
        # Its vocabulary takes longer to lay out than all else, and only texts with CJK letters need it.
        return Unigram(self._model.cjk.pieces, self._model.log_probs.tolist())

    @property
    def identity(self) -> str:
        """`static/<model>/<dimensions>/<start of the data's SHA-256>`."""
        return f"static/{self._model.name}/{self.dimensions}/{self._model.digest[:_DIGEST_DIGITS]}"

    @property
    def dimensions(self) -> int:
        return 2 * self._model.width

    @property
    def traits(self) -> EmbedderTraits:
        return EmbedderTraits(scripts=LATIN | EAST_ASIAN, dense_share=DENSE_SHARE)

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """float32 (len(texts), dimensions). A text's vector does not depend on the others."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            self._embed_into(row, text)
        return vectors

    def embed_query(self, text: str) -> Vector:
        """float32 (dimensions,)."""
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def _embed_into(self, out: Vector, text: str) -> None:
        parts = split_scripts(text)
        share, width = parts.cjk_share, self._model.width
        common, own = out[:width], out[width:]
        words = self._wordpiece.encode(parts.rest)
        if words:
            common += (1.0 - share) * _unit(_weighted_sum(self._model.latin, words))
        pieces = [number for run in parts.cjk_runs for number in self._unigram.encode(run)]
        if pieces:
            own_weight = self._model.own_share * share
            cjk = _unit(_weighted_sum(self._model.cjk, pieces))
            common += share * _unit(cjk @ self._bridge)
            common *= math.sqrt(1.0 - own_weight) / (_length(common) or 1.0)
            own += math.sqrt(own_weight) * cjk
        out /= _length(out) or 1.0


@cache
def default_embedder() -> StaticEmbedder:
    """The embedder with the shipped data, loaded once a process. Raises `PluginError`; see `load_model`."""
    return StaticEmbedder(load_model(DATA_FILE))


def _weighted_sum(table: Table, numbers: Sequence[int]) -> Vector:
    """Sum of the rows of the distinct numbers, each times the root of its count."""
    import numpy as np

    counts = Counter(numbers)
    rows = np.fromiter(counts.keys(), dtype=np.intp, count=len(counts))
    weights = np.sqrt(np.fromiter(counts.values(), dtype=np.float32, count=len(counts))) * table.scales[rows]
    packed = table.rows[rows]
    low, high = (packed & 15).astype(np.float32), (packed >> 4).astype(np.float32)
    total: Vector = np.concatenate([weights @ low, weights @ high]) - np.float32(8.0) * weights.sum()
    return total


def _unit(vector: Vector) -> Vector:
    return vector / (_length(vector) or 1.0)


def _length(vector: Vector) -> float:
    return math.sqrt(float(vector @ vector))
