"""What a run did, for the log: one line for each step, with sizes and names but never with texts."""

from __future__ import annotations

import logging

from lamella.types import events as e
from lamella.types.messages import AssistantMessage

log = logging.getLogger(__name__)


def log_event(session_key: str, event: e.AgentEvent) -> None:
    """Log an event of a session, if it is one that a log should hold. Repaired faults are warnings."""
    line = describe_event(event)
    if line:
        level = logging.WARNING if isinstance(event, e.AutoRetryStart) else logging.INFO
        log.log(level, "%s: %s", session_key, line)


def describe_event(event: e.AgentEvent) -> str:
    """One line about an event; empty for those that only carry a text on its way."""
    match event:
        case e.AgentStart() | e.AgentEnd():
            return event.type.replace("agent_", "run ")
        case e.MessageEnd(message=AssistantMessage() as reply):
            used = f"{reply.usage.input} in, {reply.usage.output} out" if reply.usage else "usage unknown"
            failed = f": {reply.error_message}" if reply.error_message else ""
            return f"reply of {reply.provider}/{reply.model}: {reply.stop_reason} ({used}){failed}"
        case e.MessageEnd():
            return f"stored a {event.message.role} message"
        case e.ToolExecutionStart():
            return f"tool {event.tool_name} starts ({event.tool_call_id})"
        case e.ToolExecutionEnd():
            return f"tool {event.tool_name} {'failed' if event.is_error else 'is done'} ({event.tool_call_id})"
        case e.AutoCompactionStart():
            return f"compaction starts ({event.reason})"
        case e.AutoCompactionEnd():
            if event.summary is None:
                return f"not compacted ({event.reason}): {event.error or 'aborted'}"
            return f"compacted ({event.reason}): {event.tokens_before} tokens became {event.tokens_after}"
        case e.AutoRetryStart():
            return f"retry {event.attempt} of {event.max_attempts} in {event.delay_ms} ms: {event.error}"
        case e.AutoRetryEnd(success=False):
            return f"given up after {event.attempt} retries: {event.final_error}"
        case e.Notice():
            return f"notice {event.code}: {event.message}"
        case _:
            return ""
