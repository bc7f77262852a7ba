"""Ollama: models on this machine or another one, no key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from lamella_embedders.remote.wire import Limits, Provider, Purpose, list_in

# What these models were trained to see before a text; Ollama does not add it by itself.
_PREFIXES: dict[str, dict[Purpose, str]] = {
    "nomic-embed-text": {"document": "search_document: ", "query": "search_query: "},
    "mxbai-embed-large": {"document": "", "query": "Represent this sentence for searching relevant passages: "},
    "embeddinggemma": {"document": "title: none | text: ", "query": "task: search result | query: "},
    "qwen3-embedding": {
        "document": "",
        "query": "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
    },
}
_NONE: dict[Purpose, str] = {"document": "", "query": ""}


@frozen(slots=True)
class OllamaWire:
    model: str
    dimensions: int = 0
    path: str = "/api/embed"

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        family = self.model.rpartition("/")[2].partition(":")[0]
        prefix = _PREFIXES.get(family, _NONE)[purpose]
        body: dict[str, Any] = {"model": self.model, "input": [prefix + text for text in texts], "truncate": True}
        return {**body, "dimensions": self.dimensions} if self.dimensions else body

    def vectors(self, answer: Any) -> list[Any]:
        return list_in(answer, "embeddings", "ollama")


PROVIDER = Provider(
    name="ollama",
    base_url="http://localhost:11434",
    key_env=("OLLAMA_API_KEY",),
    model="nomic-embed-text",
    wire=OllamaWire,
    # Sizes differ from tag to tag, so the server is asked; it computes one request after the other.
    limits=Limits(items=32, bytes=32_000, input_bytes=2_000, concurrency=1),
    key_required=False,
)
