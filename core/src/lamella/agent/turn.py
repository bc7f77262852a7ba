"""One user turn: hooks, request, loop, retries, compactions, counters."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from attrs import evolve, frozen

from lamella.agent.accounting import counters, reply_text, total_usage
from lamella.agent.additions import additions
from lamella.agent.compaction import Outcome
from lamella.agent.host import SessionHost
from lamella.agent.loop import LoopResult, LoopSetup, run_loop
from lamella.agent.prefix_log import LastRequest
from lamella.agent.quiet import Quiet, all_audible, audible
from lamella.agent.retry import retry_delay_ms, unless_aborted, wait
from lamella.agent.room import Room
from lamella.agent.workbench import Workbench
from lamella.errors import (
    ContextOverflow,
    LamellaError,
    ModelAborted,
    ModelError,
    ThinkingRejected,
)
from lamella.sessions.fields import integer_of, strings_of
from lamella.sessions.watch import silent_leaks
from lamella.text.days import unix_ms
from lamella.types import events as e
from lamella.types import hooks as h
from lamella.types.messages import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    TextBlock,
    Usage,
    UserMessage,
)

T = TypeVar("T")

EVENT_TYPE = "lamella.event"


@frozen(slots=True)
class TurnResult:
    """What a turn gave. `error` is None when it ended by itself; `usage` sums all its calls.

    `handled` tells that a plugin answered and no model was called, `silent` that the model said only that
    it has nothing to say. Texts are without the silent token; the transcript holds what the model wrote.
    """

    text: str
    session_id: str
    messages: tuple[Message, ...] = ()
    reply: AssistantMessage | None = None
    error: ModelError | None = None
    usage: Usage = Usage()
    compactions: int = 0
    handled: bool = False
    silent: bool = False

    @property
    def aborted(self) -> bool:
        return isinstance(self.error, ModelAborted)


class Turn:
    """Runs one turn (or one compaction) on a workbench."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.room = Room(bench)
        self._quiet = Quiet(bench.tell)
        self._bytes_before = bench.transcript_bytes()
        self._events_taken: tuple[str, ...] = ()  # queued texts that are part of this turn, until they are stored

    async def run(self, text: str, images: Sequence[ImageBlock]) -> TurnResult:
        started = time.monotonic()
        hooks, host = self.bench.environment.hooks, self.bench.host()
        try:
            received = await self._unless_aborted(hooks.input(h.Input(text, self.bench.trigger), host))
        except ModelAborted as error:
            return self._stopped(user_message(text, images), error)
        if received.handled:
            return TurnResult(received.reply, self.bench.file.id, handled=True)
        user = user_message(received.text if received.text is not None else text, images)
        too_long = self._too_long(user)
        if too_long is not None:
            return TurnResult("", self.bench.file.id, error=too_long)
        try:
            await self.room.make(user, host)
            addition = await self._unless_aborted(additions(self.bench, user, host))
        except ModelAborted as error:
            return self._stopped(user, error)
        if addition.model:
            self._use_model(addition.model)
            host = self.bench.host()
        self._note_settings()
        result = await self._run((*self._queued_events(), user), addition, host)
        self.room.store(lambda: self._save(result.messages, result.error))
        why = str(result.error) if result.error else ""
        ended = h.AgentEnded(result.messages, result.error is None, why, (time.monotonic() - started) * 1000)
        await hooks.agent_end(ended, host)
        self._count_late_entries()
        reply = audible(result.reply) if result.reply is not None else None
        return TurnResult(
            reply_text(reply),
            self.bench.file.id,
            all_audible(result.messages),
            reply,
            result.error,
            total_usage(result.messages),
            len(self.room.causes),
            silent=reply != result.reply and not reply_text(reply),
        )

    def _count_late_entries(self) -> None:
        """Count what plugins stored after the counters were saved."""
        late = self.room.new_entries()
        if late:
            fields = {"transcriptBytes": self.bench.transcript_bytes()}
            self.room.store(lambda: self.bench.record.finish(fields, Usage(), compactions=0, entries=late))

    async def _unless_aborted(self, work: Awaitable[T]) -> T:
        """The result of hooks; an abort does not wait for them. Raises `ModelAborted`."""
        return await unless_aborted(work, self.bench.aborted)

    def _stopped(self, user: UserMessage, error: ModelAborted) -> TurnResult:
        """A turn that was aborted before its first model call. The user's words are kept."""
        self.bench.file.append_message(user)
        return TurnResult("", self.bench.file.id, (user,), error=error)

    def _use_model(self, reference: str) -> None:
        """Take the model that a plugin chose, if there is one of that name."""
        try:
            self.bench = self.room.bench = evolve(self.bench, model=self.bench.environment.make_model(reference))
        except LamellaError as error:
            self.bench.tell(e.Notice("model_not_changed", f"a plugin chose {reference!r}: {error}"))

    async def compact(self, instructions: str = "") -> Outcome:
        """Compact now, without a turn."""
        outcome = await self.room.by_hand(instructions, self.bench.host())
        if outcome.entry_id:
            self._save((), None)
        return outcome

    def _too_long(self, user: UserMessage) -> ContextOverflow | None:
        """The error for a message that no compaction makes fit. It is refused before it is stored,
        since every later request of the session would hold it too."""
        window = self.bench.budget().window
        tokens, fixed = self.bench.environment.estimate(user), self.bench.fixed_tokens()
        if tokens + fixed <= window:
            return None
        if fixed >= window:
            return ContextOverflow(
                f"the system prompt and the tools have about {fixed} tokens, the context window holds {window}; "
                "the message was not stored",
                hint=f"The largest part is {self.bench.largest_part()}. Shorten it or leave it out, or use a model "
                "with a larger window.",
            )
        return ContextOverflow(
            f"the message has about {tokens} tokens, the context window holds {window}; it was not stored",
            hint="Shorten it, put it into a file in the workspace, or use a model with a larger window.",
        )

    def _note_settings(self) -> None:
        """Model and thinking level go into the transcript when they differ from its last ones."""
        state, is_new = self.bench.file.state, self.bench.file.leaf_id is None
        if (state.provider, state.model_id) != (self.bench.model.provider, self.bench.model.id):
            self.bench.file.append_model_change(self.bench.model.provider, self.bench.model.id)
        if is_new or state.thinking_level != self.bench.thinking:
            self.bench.file.append_thinking_level(self.bench.thinking)

    async def _run(self, prompts: tuple[Message, ...], addition: h.PromptAddition, host: SessionHost) -> LoopResult:
        """The loop, again after retries and compactions."""
        settings = self.bench.environment.settings
        setup, sent = self._setup(addition, host)
        with_thinking = True
        new: list[Message] = []
        retries = 0
        result = await run_loop(prompts, self.bench.history(), setup, self._emit)
        while True:
            new += result.messages
            error, reply = result.error, result.reply
            if error is None and reply is not None:
                if retries:
                    self.bench.tell(e.AutoRetryEnd(True, retries))
                await self.room.after_reply(reply, host)
                break
            if isinstance(error, ContextOverflow):
                if not await self.room.free(error, host):
                    break
            elif error is not None and error.retryable and settings.retry.enabled:
                if retries >= settings.retry.max_retries:
                    self.bench.tell(e.AutoRetryEnd(False, retries, str(error)))
                    break
                retries += 1
                if not await self._pause(retries, error):
                    break
            elif isinstance(error, ThinkingRejected) and with_thinking:
                with_thinking = False
                self.bench.tell(e.Notice("thinking_left_out", f"tried again without thinking: {error}"))
                setup, sent = self._setup(addition, host, with_thinking=False)
            else:
                if retries:
                    self.bench.tell(e.AutoRetryEnd(False, retries, str(error)))
                break
            result = await run_loop((), self.bench.history(), setup, self._emit)
        if sent.request is not None:
            self.bench.note_prefix(addition, sent.request)
        return LoopResult(tuple(new), result.reply, result.error)

    def _setup(
        self, addition: h.PromptAddition, host: SessionHost, *, with_thinking: bool = True
    ) -> tuple[LoopSetup, LastRequest]:
        """What the loop works with, and where its last request is to be found."""
        setup = self.bench.setup(addition, host, with_thinking=with_thinking)
        sent = LastRequest(setup.build)
        return evolve(setup, build=sent.build), sent

    async def _pause(self, attempt: int, error: ModelError) -> bool:
        retry = self.bench.environment.settings.retry
        delay = retry_delay_ms(retry, attempt, error)
        self.bench.tell(e.AutoRetryStart(attempt, retry.max_retries, delay, str(error)))
        if await wait(delay, self.bench.aborted):
            return True
        self.bench.tell(e.AutoRetryEnd(False, attempt, "Retry cancelled"))
        return False

    def _queued_events(self) -> tuple[Message, ...]:
        """Lines that plugins queued for this prompt, as one message."""
        entry = self.bench.record.read()
        lines = tuple(strings_of(entry, "pendingEvents"))
        if not lines:
            return ()
        self._events_taken = lines
        return (CustomMessage(EVENT_TYPE, "\n".join(lines), display=False, timestamp=unix_ms()),)

    def _save(self, messages: Sequence[Message], error: ModelError | None) -> None:
        """Counters and state of the turn into sessions.json."""
        limits = self.bench.budget()
        fields = {
            "modelProvider": self.bench.model.provider,
            "model": self.bench.model.id,
            "contextTokens": limits.window,
            "reserveTokens": limits.reserve,
            "usedTokens": self.bench.tokens(),
            "systemSent": True,
            "abortedLastRun": isinstance(error, ModelAborted),
            "lastError": str(error) if error and not isinstance(error, ModelAborted) else None,
            "transcriptBytes": self.bench.transcript_bytes(),
            **counters(messages, compacted=bool(self.room.causes)),
        }
        if self.bench.trigger == "user":
            fields["lastInteractionAt"] = unix_ms()  # what runs by itself keeps no session fresh
        if messages:
            fields |= self._watched()
        added = self.room.new_entries()
        self.bench.record.finish(fields, total_usage(messages), compactions=0, entries=added)

    def _watched(self) -> dict[str, Any]:
        """How many turns the session had, how large it was when they began to be counted, and what stands
        in its history that should not."""
        entry = self.bench.record.read()
        turns, leaks = integer_of(entry, "turns"), silent_leaks(self.bench.file.context().messages) or None
        if turns is not None:
            return {"turns": turns + 1, "silentLeaks": leaks}
        return {"turns": 1, "turnsFromBytes": self._bytes_before, "silentLeaks": leaks}

    def _emit(self, event: e.AgentEvent) -> None:
        """Store what a `message_end` completes, then tell."""
        if isinstance(event, e.MessageEnd):
            self.bench.file.append_message(event.message)
            if self._events_taken and isinstance(event.message, UserMessage):
                # The file appears with the user's message; only now are they sure to be stored.
                self.bench.record.dequeue(self._events_taken)
                self._events_taken = ()
        self._quiet(event)


def user_message(text: str, images: Sequence[ImageBlock] = ()) -> UserMessage:
    return UserMessage((TextBlock(text), *images), unix_ms())
