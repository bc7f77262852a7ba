"""Any model of the library sentence-transformers, by name or from a folder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lamella.errors import ConfigError, MissingExtra, PluginError, Problem
from lamella_embedders.config import SECTION, SentenceTransformersSettings
from lamella_embedders.inputs import clean
from lamella_embedders.local.files import digest
from lamella_embedders.vectors import unit_rows

if TYPE_CHECKING:
    from lamella_embedders.vectors import Matrix

EXTRA = "lamella-embedders[sentence-transformers]"
_KEY = f"{SECTION}.sentence_transformers"
_WEIGHTS = ("*.safetensors", "*.bin", "*.onnx", "*.pt")


class SentenceTransformersEmbedder:
    """Documents and questions get the prompts that the model's own configuration names.

    The library cuts a text at the model's limit. Blank texts have the zero vector. Calls from
    several threads wait for each other.
    """

    def __init__(self, model: Any, identity: str, dimensions: int, *, batch_items: int = 32) -> None:
        self._model = model
        self._identity = identity
        self._dimensions = dimensions
        self._batch_items = batch_items
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        """`sentence-transformers/<model>/<dimensions>/<start of the SHA-256 of the weights>`."""
        return self._identity

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """float32 (len(texts), dimensions)."""
        return self._embed(texts, _encoder(self._model, "encode_document"))

    def embed_query(self, text: str) -> Matrix:
        """float32 (dimensions,)."""
        vector: Matrix = self._embed([text], _encoder(self._model, "encode_query"))[0]
        return vector

    def _embed(self, texts: Sequence[str], encode: Callable[..., Any]) -> Matrix:
        import numpy as np

        cleaned = [clean(text) for text in texts]
        rows = [row for row, text in enumerate(cleaned) if text]
        vectors = np.zeros((len(texts), self._dimensions), dtype=np.float32)
        if rows:
            with self._lock:
                found = encode(
                    [cleaned[row] for row in rows],
                    batch_size=self._batch_items,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
            vectors[rows] = unit_rows(found)
        return vectors


def open_sentence_transformers(settings: SentenceTransformersSettings | None = None) -> SentenceTransformersEmbedder:
    """Load the model. Raises `MissingExtra`, and `ConfigError` when there is no such model or device."""
    own = settings or SentenceTransformersSettings()
    name = _expanded(own.model)
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtra(f"the embedder sentence-transformers ({error})", EXTRA) from error
    try:
        model = SentenceTransformer(name, device=own.device or None)
    except Exception as error:
        text = f'"{own.model}" cannot be loaded: {_first_line(error)}'
        raise ConfigError([Problem(_KEY, text)], hint="Expected a model's name, or the folder of one.") from error
    dimensions = _dimensions(model)
    identity = f"sentence-transformers/{Path(own.model).name}/{dimensions}/{weights_digest(_folder(name))}"
    return SentenceTransformersEmbedder(model, identity, dimensions, batch_items=own.batch_items)


def weights_digest(folder: Path) -> str:
    """Of all files with weights and of the JSON files that say how they are used."""
    weights = sorted({path for pattern in _WEIGHTS for path in folder.rglob(pattern)})
    if not weights:
        raise PluginError(f"{folder}: no file with weights ({', '.join(_WEIGHTS)})")
    return digest([*weights, *sorted(folder.rglob("*config*.json"))])


def _folder(name: str) -> Path:
    """Where the model that has just been loaded is kept."""
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download

    repository = name if "/" in name else f"sentence-transformers/{name}"
    return Path(snapshot_download(repository, local_files_only=True))


def _expanded(name: str) -> str:
    """`~` is replaced; something that can only be a folder must be one."""
    path = Path(name).expanduser()
    if name.startswith(("~", "/", ".")) and not path.is_dir():
        raise ConfigError([Problem(f"{_KEY}.model", f'expected a folder, found "{name}"')])
    return str(path) if path.is_dir() else name


def _dimensions(model: Any) -> int:
    """Newer versions of the library have another name for it."""
    ask = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(ask())


def _encoder(model: Any, name: str) -> Callable[..., Any]:
    """Versions before 5 have one function for documents and questions."""
    found: Callable[..., Any] = getattr(model, name, None) or model.encode
    return found


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
