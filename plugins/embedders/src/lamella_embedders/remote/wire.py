"""What tells one provider from another: its request, its answer, its models and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from attrs import Factory, frozen

from lamella.errors import ModelError

Purpose: TypeAlias = Literal["document", "query"]


class Wire(Protocol):
    """A wire format, for one model."""

    @property
    def path(self) -> str:
        """What follows the base URL."""

    def body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        """The request's JSON."""

    def vectors(self, answer: Any) -> list[Any]:
        """The vectors in the order of the texts, not checked yet. Raises `ModelError`."""


@frozen(slots=True)
class ModelFacts:
    """A known model: length of its vectors, its limit in tokens, and which other lengths can be asked for.

    `longest` 0: none longer than the usual one.
    """

    dimensions: int
    input_tokens: int
    shortens: bool = False
    longest: int = 0


@frozen(slots=True)
class Limits:
    """Of requests: texts, bytes of text, bytes of one text, and requests at the same time."""

    items: int = 64
    bytes: int = 100_000
    input_bytes: int = 8_000
    concurrency: int = 4


WireFactory: TypeAlias = "Callable[[str, int], Wire]"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@frozen(slots=True)
class Provider:
    """A provider. `wire(model, dimensions)` is its format; dimensions 0 asks for none in particular."""

    name: str
    base_url: str
    key_env: tuple[str, ...]
    model: str
    wire: WireFactory
    models: Mapping[str, ModelFacts] = Factory(dict)
    limits: Limits = Limits()
    key_required: bool = True
    key_header: Callable[[str], dict[str, str]] = bearer


def list_in(answer: Any, key: str, source: str) -> list[Any]:
    """The list under `key`. Raises `ModelError` when the answer has another shape."""
    found = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise ModelError(f"{source}: expected an answer with a list of {key}")
    return found


def openai_vectors(answer: Any, source: str) -> list[Any]:
    """`data[].embedding`, sorted by `index` where the items have one."""
    items = list_in(answer, "data", source)
    if not all(isinstance(item, dict) for item in items):
        raise ModelError(f"{source}: expected objects in data")
    if items and all(isinstance(item.get("index"), int) for item in items):
        items = sorted(items, key=lambda item: item["index"])
        if [item["index"] for item in items] != list(range(len(items))):
            raise ModelError(f"{source}: the vectors that came back are not numbered 0 to {len(items) - 1}")
    return [item.get("embedding") for item in items]
