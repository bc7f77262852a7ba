"""Voyage AI: OpenAI's shape with other names for its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from lamella_embedders.remote.wire import ModelFacts, Provider, Purpose, openai_vectors


@frozen(slots=True)
class VoyageWire:
    model: str
    dimensions: int = 0
    path: str = "/embeddings"

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": list(texts), "input_type": purpose}
        return {**body, "output_dimension": self.dimensions} if self.dimensions else body

    def vectors(self, answer: Any) -> list[Any]:
        return openai_vectors(answer, "voyage")


# Vectors of 2048 numbers can be asked for too; 1024 is what comes without asking.
_WIDE = ("voyage-4-large", "voyage-4", "voyage-4-lite", "voyage-3.5", "voyage-3.5-lite", "voyage-3-large")

PROVIDER = Provider(
    name="voyage",
    base_url="https://api.voyageai.com/v1",
    key_env=("VOYAGE_API_KEY",),
    model="voyage-4-large",
    wire=VoyageWire,
    models={
        **{name: ModelFacts(1024, 32_000, shortens=True, longest=2048) for name in (*_WIDE, "voyage-code-3")},
        "voyage-3": ModelFacts(1024, 32_000),
        "voyage-3-lite": ModelFacts(512, 32_000),
    },
)
