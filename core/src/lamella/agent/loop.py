"""The model/tool loop: call the model, run the tools that it asks for, call it again.

It knows nothing of files, plugins or compaction: those come in as callbacks. Events are reported
in Pi's order (`lamella.types.events`); a message counts from its `message_end` on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

import attrs
from attrs import field, frozen

from lamella.agent.toolcalls import ToolPolicy, run_tool_calls
from lamella.context.repairs.calls import callable_names
from lamella.errors import ModelAborted, ModelError, ModelTransient
from lamella.text.days import unix_ms
from lamella.types import events as e
from lamella.types.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultMessage,
)
from lamella.types.model import Delta, Done, Model, ModelRequest, StreamEvent
from lamella.types.tools import Tool, ToolContext

Emit: TypeAlias = Callable[[e.AgentEvent], None]
Take: TypeAlias = Callable[[], Sequence[Message]]


def _nothing() -> Sequence[Message]:
    return ()


@frozen(slots=True)
class LoopSetup:
    """What a run needs. `build` turns all messages so far into the next request; it may raise
    `ModelError` (a request that would not fit), which ends the run like a failed reply.

    `steering` is asked before each model call, `follow_ups` when the run would end.
    """

    model: Model
    tools: Mapping[str, Tool]
    build: Callable[[Sequence[Message], int], Awaitable[ModelRequest]]
    policy: ToolPolicy
    make_context: Callable[[str], ToolContext]
    steering: Take = _nothing
    follow_ups: Take = _nothing
    parallel: bool = True
    max_turns: int = 0
    aborted: asyncio.Event = field(factory=asyncio.Event)


@frozen(slots=True)
class LoopResult:
    """All new messages of the run, the last reply, and its error when it failed."""

    messages: tuple[Message, ...]
    reply: AssistantMessage | None
    error: ModelError | None = None


async def run_loop(prompts: Sequence[Message], history: Sequence[Message], setup: LoopSetup, emit: Emit) -> LoopResult:
    """Run until the model asks for no more tools and nothing is queued.

    With no prompts the run continues from `history`, whose last message must not be a reply.
    """
    new: list[Message] = []
    error: ModelError | None = None
    reply: AssistantMessage | None = None

    def add(message: Message) -> None:
        emit(e.MessageStart(message))
        emit(e.MessageEnd(message))
        new.append(message)

    emit(e.AgentStart())
    emit(e.TurnStart())
    for prompt in prompts:
        add(prompt)
    pending = setup.steering()
    calls = 0
    while True:
        for message in pending:
            add(message)
        calls += 1
        reply, error = await _reply([*history, *new], calls, setup, emit)
        new.append(reply)
        results: list[ToolResultMessage] = []
        if not reply.failed and reply.tool_calls:
            results = await run_tool_calls(
                reply,
                setup.tools,
                setup.policy,
                setup.make_context,
                emit,
                parallel=setup.parallel,
                aborted=setup.aborted,
            )
            new += results
        emit(e.TurnEnd(reply, tuple(results)))
        if reply.failed or setup.aborted.is_set():
            break
        pending = setup.steering()
        if not pending and not results:
            pending = setup.follow_ups()
            if not pending:
                break
        if setup.max_turns and calls >= setup.max_turns:
            emit(e.Notice("max_turns", f"stopped after {calls} model calls (agent.max_turns)"))
            break
        emit(e.TurnStart())
    emit(e.AgentEnd(tuple(new)))
    return LoopResult(tuple(new), reply, error)


async def _reply(
    messages: Sequence[Message], call: int, setup: LoopSetup, emit: Emit
) -> tuple[AssistantMessage, ModelError | None]:
    """One streamed reply, whatever happens: failures become a reply with stop reason and error."""
    try:
        request = await setup.build(messages, call)
    except ModelError as failure:
        reply = failed_reply(setup.model, failure)
        emit(e.MessageStart(reply))
        emit(e.MessageEnd(reply))
        return reply, failure
    started = False
    partial: AssistantMessage | None = None
    done: Done | None = None
    async for event in _until_aborted(setup.model.stream(request), setup.aborted):
        if isinstance(event, Done):
            done = event
            break
        partial = event.partial
        if event.type == "start":
            started = True
            emit(e.MessageStart(partial))
        else:
            if not started:
                started = True
                emit(e.MessageStart(partial))
            emit(e.MessageUpdate(partial, event))
    if done is None:
        early: ModelError = ModelTransient("the stream ended without a reply")
        if setup.aborted.is_set():
            early = ModelAborted("the run was aborted")
        done = Done(failed_reply(setup.model, early, partial), early)
    reply = callable_names(done.message, setup.tools)
    if reply.timestamp is None:
        reply = attrs.evolve(reply, timestamp=unix_ms())
    if not started:
        emit(e.MessageStart(reply))
    emit(e.MessageEnd(reply))
    return reply, done.error


def failed_reply(model: Model, error: ModelError, partial: AssistantMessage | None = None) -> AssistantMessage:
    """The reply that stands in the transcript for a call that failed: what had arrived, and why."""
    stop = "aborted" if isinstance(error, ModelAborted) else "error"
    if partial is None:
        partial = AssistantMessage((TextBlock(""),), model.provider, model.id, model.api)
    return attrs.evolve(partial, stop_reason=stop, error_message=str(error), timestamp=partial.timestamp or unix_ms())


async def _until_aborted(stream: AsyncIterator[StreamEvent], aborted: asyncio.Event) -> AsyncIterator[Delta | Done]:
    """The events of a stream, up to the moment of an abort; the stream is closed then."""
    iterator = stream.__aiter__()
    stop = asyncio.ensure_future(aborted.wait())
    step: asyncio.Future[StreamEvent] | None = None
    try:
        while not aborted.is_set():
            step = asyncio.ensure_future(iterator.__anext__())
            await asyncio.wait({step, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                return
            try:
                yield step.result()
            except StopAsyncIteration:
                return
    finally:
        stop.cancel()
        if step is not None and not step.done():
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()
