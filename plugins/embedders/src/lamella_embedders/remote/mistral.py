"""Mistral: OpenAI's shape, with small requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from lamella_embedders.remote.wire import Limits, ModelFacts, Provider, Purpose, openai_vectors


@frozen(slots=True)
class MistralWire:
    model: str
    dimensions: int = 0
    path: str = "/embeddings"

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts)}
        return {**body, "output_dimension": self.dimensions} if self.dimensions else body

    def vectors(self, answer: Any) -> list[Any]:
        return openai_vectors(answer, "mistral")


PROVIDER = Provider(
    name="mistral",
    base_url="https://api.mistral.ai/v1",
    key_env=("MISTRAL_API_KEY",),
    model="mistral-embed",
    wire=MistralWire,
    models={
        "mistral-embed": ModelFacts(1024, 8192),
        "codestral-embed": ModelFacts(1536, 8192, shortens=True, longest=3072),
    },
    # A request may hold 16,384 tokens in all.
    limits=Limits(bytes=16_000),
)
