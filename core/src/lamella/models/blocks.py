"""Content blocks to pydantic-ai's parts and back: what is opaque travels unchanged.

Wire formats differ in where they keep the proof of a model's reasoning; each adapter overrides the
methods here that its format needs. Imports pydantic-ai, so only adapters may import this module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic_ai import messages as pai

from lamella.types.messages import (
    DEEPEST,
    NO_FIELDS,
    Block,
    JsonObject,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    nests_deeply,
)

_TOO_DEEP = f"lists and objects in one another more than {DEEPEST} times"


class BlockMapping:
    """The mapping for formats without signatures: text and tool calls only, thinking one way.

    `tool_errors` tells whether the format marks failed tool results by itself.
    """

    tool_errors = False

    def text_part(self, block: TextBlock, system: str) -> pai.TextPart:
        """Text of an earlier reply. `system` is pydantic-ai's name of the provider."""
        return pai.TextPart(block.text)

    def thinking_part(self, block: ThinkingBlock, system: str) -> pai.ThinkingPart | None:
        """Thinking of an earlier reply of the same model; None leaves it out."""
        return None

    def call_part(self, call: ToolCall, system: str) -> pai.ToolCallPart:
        """A tool call of an earlier reply."""
        return pai.ToolCallPart(call.name, dict(call.arguments), call.id)

    def call_id(self, tool_call_id: str) -> str:
        """The id under which the server knows a call of ours."""
        return tool_call_id

    def text_block(self, part: pai.TextPart) -> TextBlock:
        return TextBlock(part.content)

    def thinking_block(self, part: pai.ThinkingPart) -> ThinkingBlock:
        return ThinkingBlock(part.content, part.signature)

    def call_block(self, part: pai.ToolCallPart, *, done: bool) -> ToolCall:
        """A call as it stands; its arguments are read once it is `done`, and empty before."""
        arguments, extra = read_arguments(part.args) if done else ({}, NO_FIELDS)
        return ToolCall(part.tool_call_id, part.tool_name, arguments, extra=extra)

    def block(self, part: pai.ModelResponsePart, *, done: bool) -> Block | None:
        """The block for a part; None for kinds that lamella does not ask for."""
        match part:
            case pai.TextPart():
                return self.text_block(part)
            case pai.ThinkingPart():
                return self.thinking_block(part)
            case pai.ToolCallPart():
                return self.call_block(part, done=done)
            case _:
                return None


def read_arguments(raw: str | Mapping[str, Any] | None) -> tuple[JsonObject, JsonObject]:
    """(arguments, extra fields of the call).

    What is not a JSON object becomes no arguments at all, never a guess at what was meant: a tool
    must not run on half a text. The fault and the text are kept in `argumentsError` and
    `argumentsText`.
    """
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, NO_FIELDS
    try:
        value = raw if isinstance(raw, Mapping) else json.loads(raw)
    except ValueError as error:
        return {}, {"argumentsError": f"not JSON: {error}", "argumentsText": raw}
    except RecursionError:
        return {}, {"argumentsError": _TOO_DEEP, "argumentsText": raw}
    if not isinstance(value, Mapping):
        return {}, {"argumentsError": f"expected an object, found {type(value).__name__}", "argumentsText": raw}
    if nests_deeply(value):
        return {}, {"argumentsError": _TOO_DEEP}
    return value, NO_FIELDS


def complete(part: pai.ToolCallPart) -> bool:
    """True when the arguments that have arrived form a whole JSON value; more may follow otherwise."""
    if isinstance(part.args, dict):
        return True
    try:
        json.loads(part.args or "")
    except (ValueError, RecursionError):
        return False
    return True
