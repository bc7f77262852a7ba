"""Which embedder a name opens: providers, `auto`, and the one fallback.

A choice is made once, when an embedder is opened. What is open never changes to another provider:
its vectors would not fit those in an index. So `identity` is always that of the embedder in use.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from lamella.errors import MissingExtra, ModelError
from lamella.types.memory import Embedder, EmbedderRegistration, EmbedderTraits, traits_of
from lamella_embedders.config import LOCAL, PROVIDERS, REMOTE, Config
from lamella_embedders.remote.keys import NoKey
from lamella_embedders.static import provider as static

log = logging.getLogger(__name__)

_SUMMARIES = {
    "openai": "OpenAI, or any server with its /embeddings",
    "gemini": "Google's Gemini API",
    "voyage": "Voyage AI",
    "mistral": "Mistral",
    "ollama": "models of an Ollama server",
    "sentence-transformers": "any model of that library, in this process",
    "onnx": "all-MiniLM-L6-v2 in this process: English",
    "e5": "multilingual-e5-small in this process: many languages, slow",
}
Opener = Callable[[], Embedder]


class Chosen:
    """The embedder that a choice came to.

    `name` is the provider in use; `passed_over` tells, by name, why others were not taken.
    """

    def __init__(self, name: str, embedder: Embedder, passed_over: Mapping[str, str]) -> None:
        self.name = name
        self.passed_over = dict(passed_over)
        self._embedder = embedder

    @property
    def identity(self) -> str:
        return self._embedder.identity

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def traits(self) -> EmbedderTraits:
        return traits_of(self._embedder)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """float32 (len(texts), dimensions)."""
        return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Any:
        """float32 (dimensions,)."""
        return self._embedder.embed_query(text)


def registrations(config: Config, openers: Mapping[str, Opener] | None = None) -> Iterator[EmbedderRegistration]:
    """All providers and `auto`. Nothing is opened or imported before a factory is called."""
    by_name = openers or {name: partial(_open, name, config) for name in PROVIDERS}
    yield from static.registrations()
    yield EmbedderRegistration(
        "auto",
        partial(first_usable, (*config.order, "static"), by_name),
        summary=f"the first that can be used: {', '.join(dict.fromkeys((*config.order, 'static')))}",
    )
    for name, summary in _SUMMARIES.items():
        names = (name, config.fallback) if config.fallback not in ("", name) else (name,)
        factory = partial(first_usable, names, by_name) if len(names) > 1 else by_name[name]
        yield EmbedderRegistration(name, factory, summary=summary, offline=name in LOCAL)


def first_usable(names: Sequence[str], openers: Mapping[str, Opener]) -> Chosen:
    """Open the first that has its key, its package and its server. Raises what the last one raises.

    Any other fault, such as a wrong setting, is raised at once: passing over it would hide it.
    """
    passed_over: dict[str, str] = {}
    *others, last = dict.fromkeys(names)
    for name in others:
        try:
            return Chosen(name, openers[name](), passed_over)
        except (NoKey, MissingExtra, ModelError) as error:
            passed_over[name] = str(error)
        # A missing key is how most providers are left out of `auto`; it deserves no warning there.
        log.log(logging.INFO if len(others) > 1 else logging.WARNING, "embedder %s: %s", name, passed_over[name])
    return Chosen(last, openers[last](), passed_over)


def _open(name: str, config: Config) -> Embedder:
    own = getattr(config, name.replace("-", "_"), None)
    if name in REMOTE:
        from lamella_embedders.remote.opening import open_remote

        return open_remote(import_module(f"lamella_embedders.remote.{name}").PROVIDER, own)
    if name == "onnx":
        from lamella_embedders.local.onnx import open_onnx

        return open_onnx(own)
    if name == "e5":
        from lamella_embedders.local.e5 import open_e5

        return open_e5(own)
    if name == "sentence-transformers":
        from lamella_embedders.local.sentence_transformers import open_sentence_transformers

        return open_sentence_transformers(own)
    return static.open_static()
