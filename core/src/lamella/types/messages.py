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
        return _number(self.raw.get("timestamp"))


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


# --- JSON -> values -------------------------------------------------------------------------------


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _optional_string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _rest(raw: JsonObject, known: frozenset[str]) -> JsonObject:
    if raw.keys() <= known:
        return NO_FIELDS
    return {k: v for k, v in raw.items() if k not in known}


_TEXT_KEYS = frozenset({"type", "text", "textSignature"})
_THINKING_KEYS = frozenset({"type", "thinking", "thinkingSignature", "redacted"})
_IMAGE_KEYS = frozenset({"type", "data", "mimeType"})
_CALL_KEYS = frozenset({"type", "id", "name", "arguments", "input", "thoughtSignature"})
_CALL_TYPES = frozenset({"toolCall", "toolUse", "functionCall"})


def parse_block(raw: Any) -> Block:
    """One content block from JSON. Anything that is not a known, well-formed block becomes `OtherBlock`."""
    if not isinstance(raw, Mapping):
        return OtherBlock(raw)
    kind = raw.get("type")
    if kind == "text" and isinstance(raw.get("text"), str):
        return TextBlock(raw["text"], _optional_string(raw.get("textSignature")), _rest(raw, _TEXT_KEYS))
    if kind == "thinking" and isinstance(raw.get("thinking"), str):
        return ThinkingBlock(
            raw["thinking"],
            _optional_string(raw.get("thinkingSignature")),
            raw.get("redacted") is True,
            _rest(raw, _THINKING_KEYS),
        )
    if kind == "image" and isinstance(raw.get("data"), str) and isinstance(raw.get("mimeType"), str):
        return ImageBlock(raw["data"], raw["mimeType"], _rest(raw, _IMAGE_KEYS))
    if kind in _CALL_TYPES and isinstance(raw.get("name"), str):
        arguments = raw.get("arguments", raw.get("input"))
        return ToolCall(
            _string(raw.get("id")),
            raw["name"],
            arguments if isinstance(arguments, Mapping) else {},
            _optional_string(raw.get("thoughtSignature")),
            _rest(raw, _CALL_KEYS),
        )
    return OtherBlock(raw)


def parse_content(raw: Any) -> str | tuple[Block, ...]:
    """A content field from JSON: strings stay strings, lists become blocks, anything else is empty."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, list):
        return tuple(parse_block(b) for b in raw)
    return ()


def _int(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _float(value: Any) -> float:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def parse_usage(raw: Any) -> Usage | None:
    """Token usage from JSON; None when there is none. Missing counts are 0."""
    if not isinstance(raw, Mapping):
        return None
    cost = raw.get("cost")
    cost = cost if isinstance(cost, Mapping) else {}
    return Usage(
        _int(raw.get("input")),
        _int(raw.get("output")),
        _int(raw.get("cacheRead")),
        _int(raw.get("cacheWrite")),
        _int(raw.get("totalTokens")),
        Cost(
            _float(cost.get("input")),
            _float(cost.get("output")),
            _float(cost.get("cacheRead")),
            _float(cost.get("cacheWrite")),
            _float(cost.get("total")),
        ),
    )


_USER_KEYS = frozenset({"role", "content", "timestamp"})
_ASSISTANT_KEYS = frozenset(
    {
        "role",
        "content",
        "provider",
        "model",
        "api",
        "usage",
        "stopReason",
        "errorMessage",
        "timestamp",
    }
)
_RESULT_KEYS = frozenset(
    {
        "role",
        "toolCallId",
        "toolUseId",
        "toolName",
        "content",
        "isError",
        "details",
        "timestamp",
    }
)
_BASH_KEYS = frozenset(
    {
        "role",
        "command",
        "output",
        "exitCode",
        "cancelled",
        "truncated",
        "fullOutputPath",
        "excludeFromContext",
        "timestamp",
    }
)
_CUSTOM_KEYS = frozenset({"role", "customType", "content", "display", "details", "timestamp"})


def parse_message(raw: JsonObject) -> Message:
    """One message from JSON. Never raises: what cannot be understood becomes `OtherMessage`."""
    role = raw.get("role")
    timestamp = _number(raw.get("timestamp"))
    if role == "user":
        return UserMessage(parse_content(raw.get("content")), timestamp, _rest(raw, _USER_KEYS))
    if role == "assistant":
        return AssistantMessage(
            content=blocks_of(parse_content(raw.get("content"))),
            provider=_string(raw.get("provider")),
            model=_string(raw.get("model")),
            api=_string(raw.get("api")),
            usage=parse_usage(raw.get("usage")),
            stop_reason=_string(raw.get("stopReason")) or "stop",
            error_message=_optional_string(raw.get("errorMessage")),
            timestamp=timestamp,
            extra=_rest(raw, _ASSISTANT_KEYS),
        )
    if role == "toolResult":
        return ToolResultMessage(
            tool_call_id=_string(raw.get("toolCallId")) or _string(raw.get("toolUseId")),
            tool_name=_string(raw.get("toolName")),
            content=parse_content(raw.get("content")),
            is_error=raw.get("isError") is True,
            details=raw.get("details"),
            timestamp=timestamp,
            extra=_rest(raw, _RESULT_KEYS),
        )
    if role == "bashExecution":
        exit_code = raw.get("exitCode")
        return BashExecutionMessage(
            command=_string(raw.get("command")),
            output=_string(raw.get("output")),
            exit_code=exit_code if isinstance(exit_code, int) else None,
            cancelled=raw.get("cancelled") is True,
            truncated=raw.get("truncated") is True,
            full_output_path=_optional_string(raw.get("fullOutputPath")),
            exclude_from_context=raw.get("excludeFromContext") is True,
            timestamp=timestamp,
            extra=_rest(raw, _BASH_KEYS),
        )
    if role in ("custom", "hookMessage"):  # hookMessage: the name in version 2 files
        return CustomMessage(
            custom_type=_string(raw.get("customType")),
            content=parse_content(raw.get("content")),
            display=raw.get("display") is not False,
            details=raw.get("details"),
            timestamp=timestamp,
            extra=_rest(raw, _CUSTOM_KEYS),
        )
    if role == "compactionSummary":
        return CompactionSummaryMessage(_string(raw.get("summary")), _float(raw.get("tokensBefore")), timestamp)
    if role == "branchSummary":
        return BranchSummaryMessage(_string(raw.get("summary")), _string(raw.get("fromId")), timestamp)
    return OtherMessage(raw)


# --- values -> JSON -------------------------------------------------------------------------------


def dump_block(block: Block) -> Any:
    """The JSON form of a block; fields that are not set are left out."""
    match block:
        case TextBlock():
            out: dict[str, Any] = {"type": "text", "text": block.text}
            if block.signature is not None:
                out["textSignature"] = block.signature
        case ThinkingBlock():
            out = {"type": "thinking", "thinking": block.thinking}
            if block.signature is not None:
                out["thinkingSignature"] = block.signature
            if block.redacted:
                out["redacted"] = True
        case ImageBlock():
            out = {"type": "image", "data": block.data, "mimeType": block.mime_type}
        case ToolCall():
            out = {"type": "toolCall", "id": block.id, "name": block.name, "arguments": block.arguments}
            if block.thought_signature is not None:
                out["thoughtSignature"] = block.thought_signature
        case OtherBlock():
            return block.raw
    return {**out, **block.extra}


def dump_content(content: str | tuple[Block, ...]) -> Any:
    return content if isinstance(content, str) else [dump_block(b) for b in content]


def dump_usage(usage: Usage) -> dict[str, Any]:
    cost = usage.cost
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "totalTokens": usage.total_tokens,
        "cost": {
            "input": cost.input,
            "output": cost.output,
            "cacheRead": cost.cache_read,
            "cacheWrite": cost.cache_write,
            "total": cost.total,
        },
    }


def dump_message(message: Message) -> dict[str, Any]:
    """The JSON form of a message, in Pi's field names; fields that are not set are left out."""
    out: dict[str, Any] = {"role": message.role}
    match message:
        case OtherMessage():
            return dict(message.raw)
        case UserMessage():
            out["content"] = dump_content(message.content)
        case AssistantMessage():
            out["content"] = dump_content(message.content)
            out.update(api=message.api, provider=message.provider, model=message.model)
            if message.usage is not None:
                out["usage"] = dump_usage(message.usage)
            out["stopReason"] = message.stop_reason
            if message.error_message is not None:
                out["errorMessage"] = message.error_message
        case ToolResultMessage():
            out.update(toolCallId=message.tool_call_id, toolName=message.tool_name)
            out["content"] = dump_content(message.content)
            if message.details is not None:
                out["details"] = message.details
            out["isError"] = message.is_error
        case BashExecutionMessage():
            out.update(command=message.command, output=message.output)
            if message.exit_code is not None:
                out["exitCode"] = message.exit_code
            out.update(cancelled=message.cancelled, truncated=message.truncated)
            if message.full_output_path is not None:
                out["fullOutputPath"] = message.full_output_path
            if message.exclude_from_context:
                out["excludeFromContext"] = True
        case CustomMessage():
            out.update(customType=message.custom_type, content=dump_content(message.content))
            out["display"] = message.display
            if message.details is not None:
                out["details"] = message.details
        case BranchSummaryMessage():
            out.update(summary=message.summary, fromId=message.from_id)
        case CompactionSummaryMessage():
            out.update(summary=message.summary, tokensBefore=message.tokens_before)
    if message.timestamp is not None:
        out["timestamp"] = message.timestamp
    extra = getattr(message, "extra", None)
    return {**out, **extra} if extra else out
