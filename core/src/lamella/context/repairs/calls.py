"""Tool calls that no provider takes, and the names of new ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import count
from typing import Any

from attrs import evolve

from lamella.context.repairs.changes import each_block
from lamella.sessions.lines import well_formed_json
from lamella.types.messages import AssistantMessage, Block, JsonObject, ToolCall

LONGEST_NAME = 64
# OpenClaw's own word: the tool is its own, and its readers know it.
REDACTED = "__OPENCLAW_REDACTED__"

_LEGAL = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")
_NAMESPACE = re.compile(r"(?:functions|tools)[./]")


def valid_call(call: ToolCall, known: frozenset[str] = frozenset()) -> ToolCall | None:
    """A call as it may go out, or None for one with a blank id or a name that servers refuse.

    `known` has the lower-case names of all tools that may be called; empty means any.
    """
    name = call.name.strip()
    if not call.id.strip() or not _LEGAL.fullmatch(name) or (known and name.lower() not in known):
        return None
    arguments = _valid_arguments(name, call.arguments)
    if name == call.name and arguments is call.arguments:
        return call
    return evolve(call, name=name, arguments=arguments)


def _valid_arguments(name: str, arguments: JsonObject) -> JsonObject:
    mended: dict[str, Any] = well_formed_json(dict(arguments))
    if name == "sessions_spawn" and isinstance(mended.get("attachments"), list):
        mended["attachments"] = [_redacted(item) for item in mended["attachments"]]
    return arguments if mended == arguments else mended


def _redacted(attachment: Any) -> Any:
    if isinstance(attachment, Mapping) and "content" in attachment:
        return {**attachment, "content": REDACTED}
    return attachment


def callable_names(reply: AssistantMessage, tools: Collection[str]) -> AssistantMessage:
    """A new reply whose calls name tools as they are called, where it is plain which are meant.

    Models write `functions.read` or `Read` for `read`. What means no tool becomes a legal name, so
    that the call and its error can go back to the model. Calls without an id get one.
    """
    number = count(1)

    def change(block: Block) -> Block:
        return _callable(block, tools, f"call_auto_{next(number)}") if isinstance(block, ToolCall) else block

    content = each_block(reply.content, change)
    return reply if content is reply.content else evolve(reply, content=content)


def _callable(call: ToolCall, tools: Collection[str], spare_id: str) -> ToolCall:
    name = _meant(call.name, tools)
    call_id = call.id if call.id.strip() else spare_id
    return call if (name, call_id) == (call.name, call.id) else evolve(call, name=name, id=call_id)


def _meant(name: str, tools: Collection[str]) -> str:
    bare = _NAMESPACE.sub("", name.strip(), count=1)
    exact = next((n for n in (name, name.strip(), bare) if n in tools), None)
    if exact is not None:
        return exact
    alike = [tool for tool in tools if tool.lower() == bare.lower()]
    if len(alike) == 1:
        return alike[0]
    legal = re.sub(r"[^A-Za-z0-9_-]", "_", name.strip())[:LONGEST_NAME]
    return legal or "unnamed"
