"""Running the tool calls of one reply: validation, hooks, the tools themselves, their results."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from attrs import evolve, frozen

from lamella.errors import LamellaError, ToolError
from lamella.plugins.tasks import contained, give_up, result_of, start_in_thread
from lamella.sessions.lines import encode_line
from lamella.text.shorten import shorten_result
from lamella.tools.validation import validate_arguments
from lamella.types import events as e
from lamella.types.messages import (
    AssistantMessage,
    ImageBlock,
    JsonObject,
    OtherBlock,
    TextBlock,
    ToolCall,
    ToolResultMessage,
)
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext

Emit: TypeAlias = Callable[[e.AgentEvent], None]

ABORTED = "Operation aborted"
BLOCKED = "Tool execution was blocked"
# Most characters of a stored result, whatever tools and plugins return: no window holds more.
MAX_RESULT_CHARS = 400_000
# What a running tool gets to end by itself after an abort.
ABORT_SECONDS = 1.5

log = logging.getLogger(__name__)


class ToolPolicy(Protocol):
    """What plugins have to say about tool calls."""

    async def before(self, call: ToolCall, arguments: JsonObject) -> tuple[JsonObject, str | None]:
        """Arguments to use, and the reason of a block or None."""
        ...

    async def after(self, call: ToolCall, arguments: JsonObject, result: ToolResult, seconds: float) -> None:
        """The call is over."""
        ...

    async def persist(self, message: ToolResultMessage) -> ToolResultMessage:
        """The result as it is stored and shown to the model."""
        ...


@frozen(slots=True)
class _Prepared:
    """A call that is ready to run, or that already has its answer."""

    call: ToolCall
    arguments: JsonObject
    tool: Tool | None = None
    answer: ToolResult | None = None


async def run_tool_calls(
    reply: AssistantMessage,
    tools: Mapping[str, Tool],
    policy: ToolPolicy,
    make_context: Callable[[str], ToolContext],
    emit: Emit,
    *,
    parallel: bool,
    aborted: asyncio.Event,
) -> list[ToolResultMessage]:
    """Run all calls of a reply; results in call order, one for each call, whatever happens.

    Calls are prepared one after the other. In parallel mode they then run together, unless one of
    their tools asks to run alone.
    """
    calls = reply.tool_calls
    together = parallel and not any(t.sequential for c in calls if (t := tools.get(c.name)) is not None)

    async def prepare(call: ToolCall) -> _Prepared:
        emit(e.ToolExecutionStart(call.id, call.name, call.arguments))
        if reply.stop_reason == "length":
            return _Prepared(call, call.arguments, answer=_error(_cut_short(call.name)))
        return await _prepare(call, tools, policy, aborted)

    async def finish(prepared: _Prepared) -> ToolResult:
        return await _execute(prepared, policy, make_context, emit, aborted)

    async def store(call: ToolCall, result: ToolResult) -> ToolResultMessage:
        message = to_message(call, result)
        kept = await policy.persist(message)
        wrong = fault_in(kept)
        if wrong:
            emit(e.Notice("bad_tool_result", f"the result of {call.name} is kept as it was: a plugin's has {wrong}"))
        else:
            message = kept
        message = shorten_result(message, MAX_RESULT_CHARS)
        emit(e.MessageStart(message))
        emit(e.MessageEnd(message))
        return message

    if not together:
        return [await store(call, await finish(await prepare(call))) for call in calls]
    ready = [await prepare(call) for call in calls]
    results = await asyncio.gather(*(finish(p) for p in ready))
    return [await store(call, result) for call, result in zip(calls, results, strict=True)]


def to_message(call: ToolCall, result: ToolResult) -> ToolResultMessage:
    """The transcript's message for a result."""
    details = result.details if result.details is not None else ({} if result.is_error else None)
    return ToolResultMessage(call.id, call.name, result.blocks, result.is_error, details, int(time.time() * 1000))


async def _prepare(call: ToolCall, tools: Mapping[str, Tool], policy: ToolPolicy, aborted: asyncio.Event) -> _Prepared:
    if aborted.is_set():
        return _Prepared(call, call.arguments, answer=_error(ABORTED))
    tool = tools.get(call.name)
    if tool is None:
        return _Prepared(call, call.arguments, answer=_error(f"Tool {call.name} not found"))
    broken = call.extra.get("argumentsError")
    if broken is not None:  # what came was no JSON object: running the tool without would be a guess
        received = call.extra.get("argumentsText", "")
        return _Prepared(call, call.arguments, tool, _error(f"{broken}\n\nReceived arguments:\n{received}"))
    try:
        arguments: JsonObject = validate_arguments(tool, call.arguments)
    except ToolError as error:
        return _Prepared(call, call.arguments, tool, _error(str(error)))
    arguments, blocked = await policy.before(call, arguments)
    if blocked is not None:
        return _Prepared(call, arguments, tool, _error(blocked or BLOCKED))
    return _Prepared(call, arguments, tool)


async def _execute(
    prepared: _Prepared,
    policy: ToolPolicy,
    make_context: Callable[[str], ToolContext],
    emit: Emit,
    aborted: asyncio.Event,
) -> ToolResult:
    call, tool = prepared.call, prepared.tool
    started = time.monotonic()
    if prepared.answer is not None or tool is None:
        result = prepared.answer or _error(f"Tool {call.name} not found")
    elif aborted.is_set():
        result = _error(ABORTED)
    else:
        result = await _run(tool, prepared, make_context(call.id), emit, aborted)
    await policy.after(call, prepared.arguments, result, time.monotonic() - started)
    emit(e.ToolExecutionEnd(call.id, call.name, result, result.is_error))
    return result


async def _run(tool: Tool, prepared: _Prepared, context: ToolContext, emit: Emit, aborted: asyncio.Event) -> ToolResult:
    """The tool's own answer, or an error result. An abort ends the wait for tools that ignore it."""
    call = prepared.call
    loop = asyncio.get_running_loop()

    def update(partial: ToolResult) -> None:
        event = e.ToolExecutionUpdate(call.id, call.name, prepared.arguments, partial)
        loop.call_soon_threadsafe(emit, event)

    context = evolve(context, update=update, cancelled=aborted)
    work = asyncio.ensure_future(contained(_call(tool, prepared.arguments, context)))
    stop = asyncio.ensure_future(aborted.wait())
    try:
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            # Tools see the abort too; give them a moment to stop in their own way.
            await asyncio.wait({work}, timeout=ABORT_SECONDS)
        if not work.done():
            return _error(ABORTED)
        return result_of(work)
    except (ToolError, LamellaError) as error:
        return _error(str(error))
    except Exception as error:
        log.warning("tool %s failed", tool.name, exc_info=True)
        return _error(str(error) or type(error).__name__)
    finally:
        stop.cancel()
        if not work.done():
            await give_up(work)
        await asyncio.sleep(0)  # let updates that were sent from threads come before the end


async def _call(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
    if inspect.iscoroutinefunction(tool.run) or inspect.iscoroutinefunction(getattr(tool.run, "__call__", None)):  # noqa: B004
        answer: Any = tool.run(arguments, context)
    else:
        answer = await start_in_thread(lambda: tool.run(arguments, context))
    if isinstance(answer, Awaitable):
        answer = await answer
    if isinstance(answer, str):
        return ToolResult(answer)
    if not isinstance(answer, ToolResult):
        raise ToolError(f"tool {tool.name} returned {type(answer).__name__}, expected str or ToolResult")
    wrong = fault_in(answer)
    if wrong:
        raise ToolError(f"tool {tool.name} returned a result with {wrong}")
    return answer


def fault_in(result: ToolResult | ToolResultMessage) -> str:
    """What keeps a result from being stored, or nothing."""
    content = result.content
    if not isinstance(content, (str, tuple, list)):
        return f"content of type {type(content).__name__}, expected str or blocks"
    for block in () if isinstance(content, str) else content:
        if not isinstance(block, (TextBlock, ImageBlock, OtherBlock)):
            return f"a block of type {type(block).__name__}, expected TextBlock or ImageBlock"
        if isinstance(block, TextBlock) and not isinstance(block.text, str):
            return f"a text block that holds {type(block.text).__name__}"
        if isinstance(block, ImageBlock) and not (isinstance(block.data, str) and isinstance(block.mime_type, str)):
            return "an image block whose data is not base64 text"
    try:
        encode_line({"details": result.details})
    except (TypeError, ValueError, RecursionError) as error:
        return f"details that are not JSON ({error})"
    return ""


def _error(text: str) -> ToolResult:
    return ToolResult((TextBlock(text),), is_error=True)


def _cut_short(name: str) -> str:
    return (
        f'Tool call "{name}" was not run: the reply reached its length limit, so the arguments may be '
        "incomplete. Call the tool again with complete arguments."
    )
