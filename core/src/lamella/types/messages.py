"""Messages and content blocks: the JSON inside a transcript's `message` entries, as frozen values.

The shapes follow Pi's session format (version 3). Reading is lenient, since files come from other
programs and older versions; fields we do not know are kept in `extra` and written back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

JsonObject: TypeAlias = Mapping[str, Any]
StopReason: TypeAlias = Literal["stop", "length", "toolUse", "error", "aborted"]

NO_FIELDS: JsonObject = MappingProxyType({})


@frozen(slots=True)
class TextBlock:
    """Text. `signature` is a provider's opaque message id (`textSignature` on disk)."""

    text: str
    signature: str | None = None
    extra: JsonObject = field(default=NO_FIELDS, eq=False, repr=False)


@frozen(slots=True)
class ThinkingBlock:
    """A model's reasoning. `signature` is opaque; for a redacted block it holds the encrypted payload."""

    thinking: str
    signature: str | None = None
    redacted: bool = False
    extra: JsonObject = field(default=NO_FIELDS, eq=False, repr=False)


@frozen(slots=True)
class ImageBlock:
    """An image as base64 text and its MIME type."""

    data: str
    mime_type: str
    extra: JsonObject = field(default=NO_FIELDS, eq=False, repr=False)


@frozen(slots=True)
class ToolCall:
    """A model's request to run a tool. `thought_signature` must go back to the same model unchanged."""

    id: str
    name: str
    arguments: JsonObject
    thought_signature: str | None = None
    extra: JsonObject = field(default=NO_FIELDS, eq=False, repr=False)


@frozen(slots=True)
class OtherBlock:
    """A block of a type this version does not know; kept as it came."""

    raw: Any


Block: TypeAlias = TextBlock | ThinkingBlock | ImageBlock | ToolCall | OtherBlock


@frozen(slots=True)
class Cost:
    """Price of one reply in US dollars."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


@frozen(slots=True)
class Usage:
    """Token counts of one model call. `input` excludes tokens read from or written to a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0
    cost: Cost = Cost()

    @property
    def context_tokens(self) -> int:
        """Tokens the window held after the call: the reported total, else the sum of the parts."""
        return self.total_tokens or self.input + self.output + self.cache_read + self.cache_write

    @property
    def prompt_tokens(self) -> int:
        """Tokens sent: fresh input plus cache reads and writes."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        a, b = self.cost, other.cost
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.context_tokens + other.context_tokens,
            Cost(
                a.input + b.input,
                a.output + b.output,
                a.cache_read + b.cache_read,
                a.cache_write + b.cache_write,
                a.total + b.total,
            ),
        )


@frozen(slots=True)
class UserMessage:
    """What a person (or a program in their place) said. `timestamp` is Unix milliseconds."""

    content: str | tuple[Block, ...]
    timestamp: float | None = None
    extra: JsonObject = field(default=NO_FIELDS, eq=False, repr=False)
    role: Literal["user"] = field(default="user", init=False)


@frozen(slots=True)
class AssistantMessage:
    """One reply of a model. Failed and aborted replies are stored too, with `error_message`."""

    content: tuple[Block, ...]
    provider: str = ""
    model: str = ""
    api: str = ""
    usage: Usage | None = None
    stop_reason: StopReason | str = "stop"
    error_message: str | None = None
    timestamp: float | None = None
    extra: JsonObject = field(default=NO_FIELDS, eq=False, repr=False)
    role: Literal["assistant"] = field(default="assistant", init=False)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(b for b in self.content if isinstance(b, ToolCall))

    @property
    def failed(self) -> bool:
        """True for replies that ended by an error or an abort."""
        return self.stop_reason in ("error", "aborted")


@frozen(slots=True)
class ToolResultMessage:
    """The answer to one tool call. `details` is for programs and never reaches a model."""

    tool_call_id: str
    tool_name: str
    content: str | tuple[Block, ...]
    is_error: bool = False
    details: Any = None
    timestamp: float | None = None
    extra: JsonObject = field(default=NO_FIELDS, eq=False, repr=False)
    role: Literal["toolResult"] = field(default="toolResult", init=False)


@frozen(slots=True)
class BashExecutionMessage:
    """A shell command that the user ran beside the conversation."""

    command: str
    output: str
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    exclude_from_context: bool = False
    timestamp: float | None = None
    extra: JsonObject = field(default=NO_FIELDS, eq=False, repr=False)
    role: Literal["bashExecution"] = field(default="bashExecution", init=False)


@frozen(slots=True)
class CustomMessage:
    """Text that a program put into the conversation; models see it as a user message."""

    custom_type: str
    content: str | tuple[Block, ...]
    display: bool = True
    details: Any = None
    timestamp: float | None = None
    extra: JsonObject = field(default=NO_FIELDS, eq=False, repr=False)
    role: Literal["custom"] = field(default="custom", init=False)


@frozen(slots=True)
class BranchSummaryMessage:
    """Stands for a branch that the conversation came back from. Built from an entry, never stored."""

    summary: str
    from_id: str = ""
    timestamp: float | None = None
    role: Literal["branchSummary"] = field(default="branchSummary", init=False)


@frozen(slots=True)
class CompactionSummaryMessage:
    """Stands for history that was compacted. Built from an entry, never stored."""

    summary: str
    tokens_before: float = 0
    timestamp: float | None = None
    role: Literal["compactionSummary"] = field(default="compactionSummary", init=False)


@frozen(slots=True)
class OtherMessage:
    """A message whose role this version does not know; kept as it came, never sent to a model."""

    raw: JsonObject

    @property
    def role(self) -> str:
        role = self.raw.get("role")
        return role if isinstance(role, str) else ""

    @property
    def timestamp(self) -> float | None:
        return number_or_none(self.raw.get("timestamp"))


Message: TypeAlias = (
    UserMessage
    | AssistantMessage
    | ToolResultMessage
    | BashExecutionMessage
    | CustomMessage
    | BranchSummaryMessage
    | CompactionSummaryMessage
    | OtherMessage
)

# What a provider adapter receives, after conversion and repair.
ModelMessage: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage


def text_of(content: str | Iterable[Block] | None, separator: str = "") -> str:
    """The text of a content field: the string itself, or its text blocks joined by `separator`."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return separator.join(b.text for b in content if isinstance(b, TextBlock))


def blocks_of(content: str | tuple[Block, ...]) -> tuple[Block, ...]:
    """Content as blocks: a string becomes one text block, an empty string none."""
    if isinstance(content, str):
        return (TextBlock(content),) if content else ()
    return content


DEEPEST = 100


def nests_deeply(value: Any) -> bool:
    """Whether a JSON value has lists and objects in one another more than `DEEPEST` times.

    No tool needs that, and whatever walks through such a value fails where Python ends recursion.
    """
    level = [value]
    for _ in range(DEEPEST):
        parts = (v.values() if isinstance(v, Mapping) else v for v in level if isinstance(v, (Mapping, list, tuple)))
        level = [item for part in parts for item in part]
        if not level:
            return False
    return True


def number_or_none(value: Any) -> float | None:
    """A JSON number; None for anything else, booleans included."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
