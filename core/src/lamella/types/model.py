"""What a model is to lamella: one protocol, its request, and the events that it streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from attrs import field, frozen

from lamella.errors import ModelError
from lamella.types.messages import AssistantMessage, JsonObject, ModelMessage

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh"]
THINKING_LEVELS: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high", "xhigh")


@frozen(slots=True)
class ToolSpec:
    """A tool as a model sees it. `parameters` is a JSON schema of type object."""

    name: str
    description: str
    parameters: JsonObject


@frozen(slots=True)
class ModelRequest:
    """One call: system prompt, legal history (results behind their calls), and the tools on offer."""

    messages: Sequence[ModelMessage]
    system_prompt: str = ""
    tools: Sequence[ToolSpec] = ()
    max_tokens: int | None = None
    thinking: ThinkingLevel = "off"
    temperature: float | None = None


DeltaType: TypeAlias = Literal[
    "start",
    "text_start",
    "text_delta",
    "text_end",
    "thinking_start",
    "thinking_delta",
    "thinking_end",
    "toolcall_start",
    "toolcall_delta",
    "toolcall_end",
]


@frozen(slots=True)
class Delta:
    """A step of a streaming reply. `partial` is the reply so far; `index` the block it concerns."""

    type: DeltaType
    partial: AssistantMessage
    index: int = 0
    delta: str = ""


@frozen(slots=True)
class Done:
    """The last event of every stream.

    `error` is None for a reply that ended by itself. Otherwise the reply holds what had arrived,
    with stop reason `error` or `aborted` and the error's text.
    """

    message: AssistantMessage
    error: ModelError | None = None


StreamEvent: TypeAlias = Delta | Done


@runtime_checkable
class Model(Protocol):
    """A language model. Implementations hold no conversation; they may be shared by sessions."""

    @property
    def provider(self) -> str:
        """Provider name as stored in transcripts, such as `anthropic`."""

    @property
    def id(self) -> str:
        """Model name within the provider."""

    @property
    def api(self) -> str:
        """Wire format, such as `anthropic-messages`; decides whether thinking can be replayed."""

    @property
    def context_window(self) -> int:
        """Tokens that prompt and reply may take together."""

    @property
    def max_output(self) -> int:
        """Most tokens of one reply."""

    @property
    def supports_images(self) -> bool:
        """Whether image blocks may be sent."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Stream one reply: `Delta` events, then exactly one `Done`.

        Provider failures arrive as `Done.error`, never as exceptions. Cancelling the task closes
        the connection and raises `asyncio.CancelledError` as usual. Never retries by itself.
        """
        ...


@frozen(slots=True)
class ModelChoice:
    """Which model runs and why: `source` names the flag, variable, key or fallback that chose it."""

    provider: str
    model: str
    source: str
    note: str = ""


@frozen(slots=True)
class ModelInfo:
    """What is known about a model before it is used. Costs are US dollars for a million tokens."""

    context_window: int = 128_000
    max_output: int = 8_192
    supports_images: bool = False
    reasoning: bool = False
    cost_input: float = 0.0
    cost_output: float = 0.0
    cost_cache_read: float = 0.0
    cost_cache_write: float = 0.0


class ModelFactory(Protocol):
    """Makes models of one provider. Imports its client library only when called."""

    def __call__(self, model: str, settings: Mapping[str, Any]) -> Model:
        """Make the model. Raises `MissingExtra` or `ConfigError`."""
        ...


@frozen(slots=True)
class ModelProvider:
    """A provider that can be named in `provider/model`.

    `extra` is the distribution to install when its client is missing; `key_env` the environment
    variables that hold a key (any of them makes the provider a candidate); `default_model` is
    used when only the provider is known; `has_key` tells that the configuration holds a key.
    """

    name: str
    factory: ModelFactory = field(repr=False)
    default_model: str = ""
    key_env: tuple[str, ...] = ()
    extra: str = ""
    available: bool = True
    has_key: bool = False
