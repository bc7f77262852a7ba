"""Settings of model providers: one `[models.providers.<name>]` table each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import Attribute, Factory, evolve, field, frozen

from lamella.types.model import ModelInfo

# The wire formats that lamella speaks. An empty `api` means the provider's own.
APIS = ("openai-chat", "anthropic", "gemini")


def _positive(_instance: Any, _attribute: Attribute[Any], value: float | None) -> None:
    if value is not None and value <= 0:
        raise ValueError("expected more than 0")


def _not_negative(_instance: Any, _attribute: Attribute[Any], value: float | None) -> None:
    if value is not None and value < 0:
        raise ValueError("expected 0 or more")


def _known_api(_instance: Any, _attribute: Attribute[Any], value: str) -> None:
    if value and value not in APIS:
        raise ValueError(f"expected one of {', '.join(APIS)}")


def _http_url(_instance: Any, _attribute: Attribute[Any], value: str) -> None:
    if value:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("expected a URL such as http://localhost:11434/v1")


@frozen(slots=True)
class ModelOverrides:
    """What a user states about one model; None keeps what lamella knows.

    Sizes are in tokens, costs in US dollars for a million tokens.
    """

    context_window: int | None = field(
        default=None, validator=_positive, metadata={"help": "Tokens that prompt and reply may take together."}
    )
    max_output: int | None = field(default=None, validator=_positive, metadata={"help": "Most tokens of one reply."})
    supports_images: bool | None = field(default=None, metadata={"help": "Whether image blocks may be sent."})
    reasoning: bool | None = field(default=None, metadata={"help": "Whether the model takes a thinking level."})
    cost_input: float | None = field(
        default=None, validator=_not_negative, metadata={"help": "Dollars for a million fresh input tokens."}
    )
    cost_output: float | None = field(
        default=None, validator=_not_negative, metadata={"help": "Dollars for a million output tokens."}
    )
    cost_cache_read: float | None = field(
        default=None, validator=_not_negative, metadata={"help": "Dollars for a million tokens read from a cache."}
    )
    cost_cache_write: float | None = field(
        default=None, validator=_not_negative, metadata={"help": "Dollars for a million tokens written to a cache."}
    )

    def apply(self, info: ModelInfo) -> ModelInfo:
        """`info` with every value that is set here put in its place."""
        given = {name: getattr(self, name) for name in OVERRIDE_NAMES}
        return evolve(info, **{name: value for name, value in given.items() if value is not None})


OVERRIDE_NAMES = (
    "context_window",
    "max_output",
    "supports_images",
    "reasoning",
    "cost_input",
    "cost_output",
    "cost_cache_read",
    "cost_cache_write",
)


@frozen(slots=True)
class ProviderSettings:
    """How one provider is reached. Empty values keep the provider's own defaults.

    The key is `api_key`, else the environment variable that `api_key_env` names, else the
    provider's usual variables.
    """

    api: str = field(
        default="",
        validator=_known_api,
        metadata={"help": f"Wire format: {', '.join(APIS)}; empty: the provider's own."},
    )
    base_url: str = field(
        default="", validator=_http_url, metadata={"help": "Where the API is; empty: the provider's own address."}
    )
    api_key: str = field(default="", repr=False, metadata={"help": "Key. Better kept in an environment variable."})
    api_key_env: str = field(default="", metadata={"help": "Environment variable that holds the key."})
    timeout: float = field(
        default=600.0, validator=_positive, metadata={"help": "Longest silence of the server, in seconds."}
    )
    headers: Mapping[str, str] = field(
        default=Factory(dict), repr=False, metadata={"help": "More HTTP headers, sent with every request."}
    )
    models: Mapping[str, ModelOverrides] = field(
        default=Factory(dict), metadata={"help": "Windows, limits and costs by model name."}
    )
    options: Mapping[str, Any] = field(
        default=Factory(dict), metadata={"help": "Free settings for providers that plugins bring."}
    )
