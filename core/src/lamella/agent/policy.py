"""What plugins and the person at the keyboard have to say about tool calls."""

from __future__ import annotations

from attrs import field, frozen

from lamella.agent.environment import Confirm
from lamella.plugins.hooks import Hooks
from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.messages import JsonObject, ToolCall, ToolResultMessage
from lamella.types.results import ToolResult
from lamella.types.tools import Tool

DECLINED = "The user declined this tool call."


@frozen(slots=True)
class HookPolicy:
    """`lamella.agent.toolcalls.ToolPolicy` over hooks and a confirmation."""

    hooks: Hooks
    host: Host
    tools: dict[str, Tool] = field(factory=dict)
    confirm: Confirm | None = None

    async def before(self, call: ToolCall, arguments: JsonObject) -> tuple[JsonObject, str | None]:
        verdict = await self.hooks.before_tool_call(h.BeforeToolCall(call.name, call.id, arguments), self.host)
        arguments = arguments if verdict.arguments is None else verdict.arguments
        if verdict.block:
            return arguments, verdict.reason
        tool = self.tools.get(call.name)
        if tool is not None and tool.writes and self.confirm is not None and not await self.confirm(tool, arguments):
            return arguments, DECLINED
        return arguments, None

    async def after(self, call: ToolCall, arguments: JsonObject, result: ToolResult, seconds: float) -> None:
        event = h.AfterToolCall(
            call.name, call.id, arguments, result.blocks, result.details, result.is_error, seconds * 1000
        )
        await self.hooks.after_tool_call(event, self.host)

    async def persist(self, message: ToolResultMessage) -> ToolResultMessage:
        return await self.hooks.tool_result_persist(h.ToolResultPersist(message), self.host)
