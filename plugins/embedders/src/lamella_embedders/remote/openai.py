"""OpenAI, and the many servers that speak its `/embeddings`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from lamella_embedders.remote.wire import Limits, ModelFacts, Provider, Purpose, openai_vectors


@frozen(slots=True)
class OpenAIWire:
    model: str
    dimensions: int = 0
    path: str = "/embeddings"

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        return {**body, "dimensions": self.dimensions} if self.dimensions else body

    def vectors(self, answer: Any) -> list[Any]:
        return openai_vectors(answer, "openai")


PROVIDER = Provider(
    name="openai",
    base_url="https://api.openai.com/v1",
    key_env=("OPENAI_API_KEY",),
    model="text-embedding-3-small",
    wire=OpenAIWire,
    models={
        "text-embedding-3-small": ModelFacts(1536, 8192, shortens=True),
        "text-embedding-3-large": ModelFacts(3072, 8192, shortens=True),
        "text-embedding-ada-002": ModelFacts(1536, 8191),
    },
    limits=Limits(bytes=200_000),
)
