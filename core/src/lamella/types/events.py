"""What an agent run reports while it goes on, in Pi's order.

    agent_start
    turn_start
      message_start / message_end          every prompt message
      message_start / message_update* / message_end    the reply
      tool_execution_start / _update* / _end, then message_start / message_end of its result
    turn_end
    ...
    agent_end

Around compactions `auto_compaction_start` / `_end`, around retries `auto_retry_start` / `_end`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import frozen

if TYPE_CHECKING:
    from lamella.types.messages import JsonObject, Message, ToolResultMessage
    from lamella.types.model import Delta
    from lamella.types.results import ToolResult


@frozen(slots=True)
class AgentStart:
    type: Literal["agent_start"] = "agent_start"


@frozen(slots=True)
class TurnStart:
    type: Literal["turn_start"] = "turn_start"


@frozen(slots=True)
class MessageStart:
    message: Message
    type: Literal["message_start"] = "message_start"


@frozen(slots=True)
class MessageUpdate:
    message: Message
    delta: Delta
    type: Literal["message_update"] = "message_update"


@frozen(slots=True)
class MessageEnd:
    message: Message
    type: Literal["message_end"] = "message_end"


@frozen(slots=True)
class ToolExecutionStart:
    tool_call_id: str
    tool_name: str
    arguments: JsonObject
    type: Literal["tool_execution_start"] = "tool_execution_start"


@frozen(slots=True)
class ToolExecutionUpdate:
    tool_call_id: str
    tool_name: str
    arguments: JsonObject
    partial: ToolResult
    type: Literal["tool_execution_update"] = "tool_execution_update"


@frozen(slots=True)
class ToolExecutionEnd:
    tool_call_id: str
    tool_name: str
    result: ToolResult
    is_error: bool
    type: Literal["tool_execution_end"] = "tool_execution_end"


@frozen(slots=True)
class TurnEnd:
    message: Message
    tool_results: tuple[ToolResultMessage, ...]
    type: Literal["turn_end"] = "turn_end"


@frozen(slots=True)
class AgentEnd:
    """`messages` are all new ones of the run, prompts included."""

    messages: tuple[Message, ...]
    type: Literal["agent_end"] = "agent_end"


CompactionCause: TypeAlias = Literal["threshold", "overflow", "manual"]


@frozen(slots=True)
class AutoCompactionStart:
    reason: CompactionCause
    type: Literal["auto_compaction_start"] = "auto_compaction_start"


@frozen(slots=True)
class AutoCompactionEnd:
    """`summary` is None when nothing was compacted; then `error` or `aborted` says why. Sizes in tokens."""

    reason: CompactionCause
    summary: str | None = None
    first_kept_entry_id: str | None = None
    tokens_before: int = 0
    tokens_after: int | None = None
    aborted: bool = False
    will_retry: bool = False
    error: str | None = None
    type: Literal["auto_compaction_end"] = "auto_compaction_end"


@frozen(slots=True)
class AutoRetryStart:
    """A call failed and is tried again in `delay_ms` milliseconds; `attempt` counts from 1."""

    attempt: int
    max_attempts: int
    delay_ms: int
    error: str
    type: Literal["auto_retry_start"] = "auto_retry_start"


@frozen(slots=True)
class AutoRetryEnd:
    """The call succeeded at last, or was given up with `final_error`."""

    success: bool
    attempt: int
    final_error: str | None = None
    type: Literal["auto_retry_end"] = "auto_retry_end"


@frozen(slots=True)
class PluginFault:
    """A hook implementation failed or took too long; the run went on without it."""

    plugin: str
    hook: str
    error: str
    type: Literal["plugin_fault"] = "plugin_fault"


@frozen(slots=True)
class Notice:
    """Something the user should know: a fallback, a repair, a missing piece.

    `code` is stable and meant for programs; plugins may define their own.
    """

    code: str
    message: str
    data: Any = None
    type: Literal["notice"] = "notice"


AgentEvent: TypeAlias = (
    AgentStart
    | TurnStart
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | TurnEnd
    | AgentEnd
    | AutoCompactionStart
    | AutoCompactionEnd
    | AutoRetryStart
    | AutoRetryEnd
    | PluginFault
    | Notice
)
