"""Messages and blocks to JSON and back, in Pi's field names.

Reading never raises: what is not understood is kept as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lamella.types.messages import (
    NO_FIELDS,
    AssistantMessage,
    BashExecutionMessage,
    Block,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Cost,
    CustomMessage,
    ImageBlock,
    JsonObject,
    Message,
    OtherBlock,
    OtherMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    blocks_of,
    nests_deeply,
    number_or_none,
)

# --- JSON -> values -------------------------------------------------------------------------------


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
    kind = _string(raw.get("type"))
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
    arguments = raw.get("arguments", raw.get("input"))
    if (
        kind in _CALL_TYPES
        and isinstance(raw.get("name"), str)
        and arguments is not None
        and not nests_deeply(arguments)
    ):
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
    timestamp = number_or_none(raw.get("timestamp"))
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
