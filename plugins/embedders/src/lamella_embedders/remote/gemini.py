"""Google's Gemini API: one request object for each text, the key in a header of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from attrs import frozen

from lamella_embedders.remote.wire import Limits, ModelFacts, Provider, Purpose, list_in

_TASKS = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}


@frozen(slots=True)
class GeminiWire:
    model: str
    dimensions: int = 0

    @property
    def path(self) -> str:
        return f"/models/{quote(self.model, safe='')}:batchEmbedContents"

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        common: dict[str, Any] = {"model": f"models/{self.model}", "taskType": _TASKS[purpose]}
        if self.dimensions:
            common["outputDimensionality"] = self.dimensions
        return {"requests": [{**common, "content": {"parts": [{"text": text}]}} for text in texts]}

    def vectors(self, answer: Any) -> list[Any]:
        items = list_in(answer, "embeddings", "gemini")
        return [item.get("values") if isinstance(item, dict) else item for item in items]


def _key_header(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key}


PROVIDER = Provider(
    name="gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    model="gemini-embedding-001",
    wire=GeminiWire,
    models={
        "gemini-embedding-001": ModelFacts(3072, 2048, shortens=True),
        "gemini-embedding-2": ModelFacts(3072, 8192, shortens=True),
    },
    limits=Limits(input_bytes=2_000),
    key_header=_key_header,
)
