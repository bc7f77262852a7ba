"""The embedder that all HTTP providers share: pieces, batches, halves, and their vectors put together."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from lamella.errors import ContextOverflow, ModelError, ModelRejected
from lamella_embedders.inputs import Piece, batches, pieces_of, split
from lamella_embedders.remote.client import Client
from lamella_embedders.remote.pace import Effort, Pace, Stopped
from lamella_embedders.remote.wire import Limits, Purpose, Wire
from lamella_embedders.vectors import checked, joined

if TYPE_CHECKING:
    from lamella_embedders.vectors import Matrix

log = logging.getLogger(__name__)

# A text this short is not refused for its length.
_SHORTEST = 128
_SIZE_STATUS = frozenset({400, 413, 422})
_SIZE_WORDS = re.compile(
    r"too (?:long|large|many|big)|max(?:imum)?\b|exceed|longer than|limit\b|batch size|context length", re.IGNORECASE
)


@frozen(slots=True)
class Efforts:
    """How hard the two kinds of calls try."""

    documents: Effort
    query: Effort


class RemoteEmbedder:
    """Asks a provider. Blocks; may be used from several threads.

    Blank texts have the zero vector and are not sent; every other vector has length 1. A call
    gives all vectors or raises `ModelError`.
    """

    def __init__(
        self,
        identity: str,
        dimensions: int,
        *,
        client: Client,
        wire: Wire,
        pace: Pace,
        limits: Limits,
        efforts: Efforts,
    ) -> None:
        self._identity = identity
        self._dimensions = dimensions
        self._client = client
        self._wire = wire
        self._pace = pace
        self._limits = limits
        self._efforts = efforts

    @property
    def identity(self) -> str:
        """`<provider>/<model>/<dimensions>`, and `@<address>` when it is not the provider's own."""
        return self._identity

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """float32 (len(texts), dimensions)."""
        return self._embed(texts, "document", self._efforts.documents)

    def embed_query(self, text: str) -> Matrix:
        """float32 (dimensions,)."""
        vector: Matrix = self._embed([text], "query", self._efforts.query)[0]
        return vector

    def _embed(self, texts: Sequence[str], purpose: Purpose, effort: Effort) -> Matrix:
        import numpy as np

        pieces = pieces_of(texts, self._limits.input_bytes)
        if not pieces:
            return np.zeros((len(texts), self._dimensions), dtype=np.float32)
        groups = batches(pieces, most_items=self._limits.items, most_bytes=self._limits.bytes)
        call = _Call(self, purpose, effort)
        vectors = np.concatenate(call.all(groups))
        return joined(vectors, [p.owner for p in pieces], [p.size for p in pieces], len(texts))

    def request(self, texts: Sequence[str], purpose: Purpose, effort: Effort, stop: threading.Event) -> Matrix:
        """Vectors of texts that fit into one request; retried as `effort` says."""
        body = self._wire.body(texts, purpose)
        answer = self._pace.run(lambda t: self._client.post(self._wire.path, body, timeout=t), effort, stop)
        rows = self._wire.vectors(answer)
        return checked(rows, count=len(texts), dimensions=self._dimensions, source=self._client.name)

    @property
    def concurrency(self) -> int:
        return self._limits.concurrency


class _Call:
    """The requests of one call. The first failure ends all."""

    def __init__(self, embedder: RemoteEmbedder, purpose: Purpose, effort: Effort) -> None:
        self._embedder = embedder
        self._purpose = purpose
        self._effort = effort
        self._stop = threading.Event()

    def all(self, groups: Sequence[Sequence[Piece]]) -> list[Matrix]:
        """The vectors of each group, in order."""
        from concurrent.futures import ThreadPoolExecutor

        if len(groups) == 1 or self._embedder.concurrency == 1:
            return [self._group(group) for group in groups]
        workers = min(self._embedder.concurrency, len(groups))
        with ThreadPoolExecutor(workers, thread_name_prefix="lamella-embed") as pool:
            futures = [pool.submit(self._group_or_stop, group) for group in groups]
            try:
                # A group that was stopped is not the cause; the one that failed is.
                failed = next((e for f in futures if (e := f.exception()) and not isinstance(e, Stopped)), None)
            finally:
                self._stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
        if failed is not None:
            raise failed
        return [future.result() for future in futures]

    def _group_or_stop(self, group: Sequence[Piece]) -> Matrix:
        try:
            return self._group(group)
        except BaseException:
            self._stop.set()
            raise

    def _group(self, group: Sequence[Piece]) -> Matrix:
        """Vectors of a batch; one that is refused for its size goes in halves, down to parts of a text."""
        import numpy as np

        try:
            return self._embedder.request([p.text for p in group], self._purpose, self._effort, self._stop)
        except ModelError as error:
            if not _too_large(error):
                raise
            if len(group) > 1:
                log.debug("%s; %d texts are sent in two halves", error, len(group))
                middle = len(group) // 2
                return np.concatenate([self._group(group[:middle]), self._group(group[middle:])])
            (piece,) = group
            if piece.size < _SHORTEST:
                raise
            log.debug("%s; a text of %d bytes is sent in parts", error, piece.size)
            return self._parts(piece)

    def _parts(self, piece: Piece) -> Matrix:
        import numpy as np

        parts = [Piece(0, text, len(text.encode())) for text in split(piece.text, piece.size // 2 + 4)]
        vectors = np.concatenate([self._group([part]) for part in parts])
        return joined(vectors, [0] * len(parts), [p.size for p in parts], 1)


def _too_large(error: ModelError) -> bool:
    if isinstance(error, ContextOverflow):
        return True
    return (
        isinstance(error, ModelRejected) and error.status in _SIZE_STATUS and _SIZE_WORDS.search(str(error)) is not None
    )
