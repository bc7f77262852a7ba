"""A session at work: one user turn after the other on one transcript."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve, frozen

from lamella.agent.accounting import counters, reply_text, total_usage
from lamella.agent.compaction import Compactor, Outcome
from lamella.agent.cut import tokens_in_context
from lamella.agent.environment import Environment
from lamella.agent.host import SessionHost, SessionRecord, complete
from lamella.agent.loop import LoopResult, LoopSetup, run_loop
from lamella.agent.policy import HookPolicy
from lamella.agent.request import RequestBuilder
from lamella.agent.retry import retry_delay_ms, unless_aborted, wait
from lamella.agent.summaries import SummaryRequest
from lamella.config.budget import Budget, budget
from lamella.context.prompt import render
from lamella.errors import ContextOverflow, ModelAborted, ModelError, UsageError
from lamella.models.classify import usage_overflows
from lamella.plugins.hooks import merge_additions
from lamella.sessions.keys import SessionKey
from lamella.sessions.transcript import SessionFile
from lamella.types import events as e
from lamella.types import hooks as h
from lamella.types.host import SilentTurn, Trigger, TurnInfo
from lamella.types.messages import (
    AssistantMessage,
    CustomMessage,
    ImageBlock,
    Message,
    TextBlock,
    Usage,
    UserMessage,
    text_of,
)
from lamella.types.model import THINKING_LEVELS, Model, ModelRequest, ThinkingLevel
from lamella.types.tools import ToolContext

MAX_COMPACTIONS = 3
EVENT_TYPE = "lamella.event"
Listener = Callable[[e.AgentEvent], None]


@frozen(slots=True)
class TurnResult:
    """What a turn gave. `error` is None when it ended by itself; `usage` sums all its calls.

    `handled` tells that a plugin answered and no model was called.
    """

    text: str
    session_id: str
    messages: tuple[Message, ...] = ()
    reply: AssistantMessage | None = None
    error: ModelError | None = None
    usage: Usage = Usage()
    compactions: int = 0
    handled: bool = False

    @property
    def aborted(self) -> bool:
        return isinstance(self.error, ModelAborted)


class AgentSession:
    """Runs turns. Hold the transcript's lock while you use it; one turn at a time."""

    def __init__(
        self,
        key: SessionKey,
        file: SessionFile,
        model: Model,
        environment: Environment,
        record: SessionRecord,
        *,
        trigger: Trigger = "user",
        thinking: ThinkingLevel | None = None,
    ) -> None:
        self.key = key
        self.file = file
        self.model = model
        self.environment = environment
        self.record = record
        self.trigger: Trigger = trigger
        self.thinking: ThinkingLevel = thinking or _level(file, environment)
        self.listeners: list[Listener] = []
        self._steering: deque[Message] = deque()
        self._follow_ups: deque[Message] = deque()
        self._aborted = asyncio.Event()
        self._running = False
        self._appended_before = 0
        self._causes: list[str] = []  # of this turn's compactions

    # --- what callers do -------------------------------------------------------------------------

    async def prompt(self, text: str, *, images: Sequence[ImageBlock] = ()) -> TurnResult:
        """Run one user turn. Raises `UsageError` while another one runs.

        Model failures come back in the result; failures to store the transcript are raised.
        """
        with self._exclusive():
            return await self._turn(text, images)

    async def compact(self, instructions: str = "") -> Outcome:
        """Compact now."""
        with self._exclusive():
            self._begin()
            outcome = await self._compact("manual", self.host(), instructions=instructions)
            if outcome.entry_id:
                self._save((), None)
            return outcome

    def steer(self, text: str) -> None:
        """Queue a message that enters the running turn before its next model call."""
        self._steering.append(_user(text))

    def follow_up(self, text: str) -> None:
        """Queue a message that is taken when the running turn would end."""
        self._follow_ups.append(_user(text))

    def abort(self) -> None:
        """Stop the running turn; what has arrived stays in the transcript."""
        self._aborted.set()

    def _exclusive(self) -> _Running:
        if self._running:
            raise UsageError(
                f"session {self.key.text}: a turn is running", hint="Use steer() or follow_up(), or wait for its end."
            )
        self._aborted = asyncio.Event()
        return _Running(self)

    # --- one turn ----------------------------------------------------------------------------------

    async def _turn(self, text: str, images: Sequence[ImageBlock]) -> TurnResult:
        started = time.monotonic()
        self._begin()
        hooks, host = self.environment.hooks, self.host()
        received = await hooks.input(h.Input(text, self.trigger), host)
        if received.handled:
            return TurnResult(received.reply, self.file.id, handled=True)
        user = _user(received.text if received.text is not None else text, images)
        await self._make_room(user, host)
        addition = await self._additions(text_of(user.content), host)
        if addition.model:
            self.model = self.environment.make_model(addition.model)
            host = self.host()
        self._note_settings()
        result = await self._run((*self._queued_events(), user), addition, host)
        turn = TurnResult(
            reply_text(result.reply),
            self.file.id,
            result.messages,
            result.reply,
            result.error,
            total_usage(result.messages),
            len(self._causes),
        )
        self._save(turn.messages, turn.error)
        error = str(turn.error) if turn.error else ""
        ended = h.AgentEnded(turn.messages, turn.error is None, error, (time.monotonic() - started) * 1000)
        await hooks.agent_end(ended, host)
        return turn

    async def _make_room(self, user: UserMessage, host: SessionHost) -> None:
        """`before_turn`, and a compaction when the window is nearly full already."""
        limits = self._budget()
        tokens = self.tokens() + self.environment.estimate(user)
        event = h.BeforeTurn(
            text_of(user.content), tokens, limits.window, limits.reserve, self._compaction_count(), self._bytes()
        )
        await self.environment.hooks.before_turn(event, host)
        if self.environment.settings.compaction.enabled and tokens > limits.threshold:
            await self._compact("threshold", host)

    async def _additions(self, prompt: str, host: SessionHost) -> h.PromptAddition:
        hooks = self.environment.hooks
        base = self.system_prompt()
        event = h.BeforePromptBuild(prompt, tuple(self.file.context().messages), base)
        first = await hooks.before_prompt_build(event, host)
        second = await hooks.before_agent_start(event, host)
        merged = merge_additions([first, second])
        # A base prompt from before_prompt_build comes before one from before_agent_start.
        return evolve(merged, system_prompt=first.system_prompt or second.system_prompt)

    def system_prompt(self) -> str:
        """The base prompt, before additions of the turn."""
        return self.environment.system_prompt or render(self.environment.sections)

    def _note_settings(self) -> None:
        """Model and thinking level go into the transcript when they differ from its last ones."""
        state, is_new = self.file.state, self.file.leaf_id is None
        if (state.provider, state.model_id) != (self.model.provider, self.model.id):
            self.file.append_model_change(self.model.provider, self.model.id)
        if is_new or state.thinking_level != self.thinking:
            self.file.append_thinking_level(self.thinking)

    async def _run(self, prompts: tuple[Message, ...], addition: h.PromptAddition, host: SessionHost) -> LoopResult:
        """The loop, again after retries and compactions."""
        settings = self.environment.settings
        setup = self._setup(addition, host)
        new: list[Message] = []
        retries = freed = 0
        result = await run_loop(prompts, self._history(), setup, self._emit)
        while True:
            new += result.messages
            error, reply = result.error, result.reply
            if error is None and reply is not None:
                if retries:
                    self._tell(e.AutoRetryEnd(True, retries))
                await self._after_success(reply, host)
                break
            if isinstance(error, ContextOverflow):
                freed += 1
                if freed > MAX_COMPACTIONS or not await self._free_room(error, freed, host):
                    break
            elif error is not None and error.retryable and settings.retry.enabled:
                if retries >= settings.retry.max_retries:
                    self._tell(e.AutoRetryEnd(False, retries, str(error)))
                    break
                retries += 1
                if not await self._pause(retries, error):
                    break
            else:
                if retries:
                    self._tell(e.AutoRetryEnd(False, retries, str(error)))
                break
            result = await run_loop((), self._history(), setup, self._emit)
        return LoopResult(tuple(new), result.reply, result.error)

    async def _pause(self, attempt: int, error: ModelError) -> bool:
        retry = self.environment.settings.retry
        delay = retry_delay_ms(retry, attempt, error)
        self._tell(e.AutoRetryStart(attempt, retry.max_retries, delay, str(error)))
        if await wait(delay, self._aborted):
            return True
        self._tell(e.AutoRetryEnd(False, attempt, "Retry cancelled"))
        return False

    async def _free_room(self, error: ContextOverflow, attempt: int, host: SessionHost) -> bool:
        """Compact after an overflow, else let plugins free something. False when nothing helped."""
        if not self.environment.settings.compaction.enabled:
            self._tell(e.Notice("compaction_disabled", "the context overflowed and compaction.enabled is false"))
            return False
        outcome = await self._compact("overflow", host, attempt=attempt, will_retry=True)
        if outcome.freed > 0:
            return True
        event = h.Overflow(self.file.branch_entries(), self.tokens(), self._budget().window, str(error))
        freed = await self.environment.hooks.on_overflow(event, host)
        return freed is not None

    async def _after_success(self, reply: AssistantMessage, host: SessionHost) -> None:
        """Compact when the window is nearly full."""
        limits = self._budget()
        if not self.environment.settings.compaction.enabled or self._aborted.is_set():
            return
        if usage_overflows(reply, limits.window):
            await self._compact("overflow", host)
        elif self.tokens() > limits.threshold:
            await self._compact("threshold", host)

    async def _compact(
        self,
        cause: e.CompactionCause,
        host: SessionHost,
        *,
        instructions: str = "",
        attempt: int = 1,
        will_retry: bool = False,
    ) -> Outcome:
        compactor = Compactor(
            self.file, self.environment.hooks, host, self._budget(), self.environment.estimate, self._ask, self._tell
        )
        wanted = instructions or self.environment.settings.compaction.custom_instructions
        outcome = await compactor.run(cause, instructions=wanted, attempt=attempt, will_retry=will_retry)
        if outcome.entry_id:
            self._causes.append(cause)
        return outcome

    # --- pieces --------------------------------------------------------------------------------------

    def _setup(self, addition: h.PromptAddition, host: SessionHost) -> LoopSetup:
        environment = self.environment
        builder = self._builder(addition, host, environment.tools)
        return LoopSetup(
            model=self.model,
            tools=environment.tools,
            build=builder.build,
            policy=HookPolicy(environment.hooks, host, dict(environment.tools), environment.confirm),
            make_context=self._tool_context(host),
            steering=lambda: _take(self._steering, environment.agent.steering_mode),
            follow_ups=lambda: _take(self._follow_ups, environment.agent.follow_up_mode),
            parallel=environment.settings.tools.parallel,
            max_turns=environment.agent.max_turns,
            aborted=self._aborted,
        )

    def _builder(self, addition: h.PromptAddition, host: SessionHost, tools: Any) -> RequestBuilder:
        base = addition.system_prompt or self.system_prompt()
        parts = (addition.prepend_system, base, addition.append_system)
        return RequestBuilder(
            model=self.model,
            hooks=self.environment.hooks,
            host=host,
            estimate=self.environment.estimate,
            system_prompt="\n\n".join(p.strip() for p in parts if p.strip()),
            tools=tuple(t.spec for t in tools.values()),
            window=self._budget().window,
            thinking=self.thinking,
            prepend=addition.prepend_context,
        )

    def _tool_context(self, host: SessionHost) -> Callable[[str], ToolContext]:
        environment = self.environment

        def make(call_id: str) -> ToolContext:
            return ToolContext(call_id, environment.workspace, self.key.text, host, trigger=self.trigger)

        return make

    def host(self) -> SessionHost:
        info = TurnInfo(
            session_key=self.key.text,
            session_id=self.file.id,
            agent_id=self.environment.agent_id,
            workspace=self.environment.workspace,
            trigger=self.trigger,
            chat_type=self.key.chat_type,
            provider=self.model.provider,
            model=self.model.id,
            context_window=self._budget().window,
        )
        return SessionHost(
            info,
            self.file,
            self.model,
            self.record,
            emit=self._tell,
            tools=[t.spec for t in self.environment.tools.values()],
            writer=self.environment.writer,
            silent=self._silent,
        )

    async def _ask(self, request: SummaryRequest) -> str:
        """One summary by the session's model, within the configured time."""
        call = ModelRequest(
            [UserMessage(request.prompt)],
            request.system_prompt,
            max_tokens=min(request.max_tokens, self.model.max_output) or None,
            thinking=self.thinking,
        )
        limit = self.environment.settings.compaction.timeout_seconds
        work = asyncio.wait_for(complete(self.model, call), limit)
        reply = await unless_aborted(work, self._aborted)
        text = text_of(reply.content, "\n").strip()
        if not text:
            raise ModelError("the model gave an empty summary")
        if reply.stop_reason == "length":
            raise ModelError("the summary was cut off by the model's length limit")
        return text

    async def _silent(self, prompt: str, tools: Sequence[str], system_prompt: str) -> SilentTurn:
        """A turn on a copy of the history that is neither shown nor stored."""
        offered = {n: t for n, t in self.environment.tools.items() if n in tools}
        host = self.host()
        addition = h.PromptAddition(append_system=system_prompt)
        builder = self._builder(addition, host, offered)
        setup = evolve(
            self._setup(addition, host),
            tools=offered,
            build=builder.build,
            policy=HookPolicy(self.environment.hooks, host, dict(offered)),
            steering=lambda: (),
            follow_ups=lambda: (),
        )
        result = await run_loop([_user(prompt)], self._history(), setup, lambda _event: None)
        text = text_of(result.reply.content) if result.reply else ""
        return SilentTurn(text, result.error is None, str(result.error) if result.error else "")

    def _history(self) -> list[Message]:
        """The context without failed replies at its end, so that a run can continue from it."""
        messages = list(self.file.context().messages)
        while messages and isinstance(messages[-1], AssistantMessage) and messages[-1].failed:
            messages.pop()
        return messages

    def _queued_events(self) -> tuple[Message, ...]:
        """Lines that plugins queued for this prompt, as one message; the queue is emptied."""
        entry = self.record.read()
        lines = [str(line) for line in entry.get("pendingEvents") or ()]
        if not lines:
            return ()
        self.record.patch({"pendingEvents": None})
        return (CustomMessage(EVENT_TYPE, "\n".join(lines), display=False, timestamp=_now()),)

    # --- numbers -------------------------------------------------------------------------------------

    def tokens(self) -> int:
        """Tokens that the session's context takes now."""
        return tokens_in_context(self.file.context(), self.environment.estimate)

    def _budget(self) -> Budget:
        return budget(self.environment.settings.compaction, self.environment.window(self.model))

    def _compaction_count(self) -> int:
        count = self.record.read().get("compactionCount")
        return count if isinstance(count, int) else 0

    def _bytes(self) -> int:
        return self.file.path.stat().st_size if self.file.path.exists() else 0

    def _begin(self) -> None:
        self._appended_before = self.file.appended
        self._causes = []

    def _save(self, messages: Sequence[Message], error: ModelError | None) -> None:
        """Counters and state of the turn into sessions.json."""
        limits = self._budget()
        fields = {
            "modelProvider": self.model.provider,
            "model": self.model.id,
            "contextTokens": limits.window,
            "reserveTokens": limits.reserve,
            "usedTokens": self.tokens(),
            "systemSent": True,
            "abortedLastRun": isinstance(error, ModelAborted),
            "lastError": str(error) if error and not isinstance(error, ModelAborted) else None,
            "transcriptBytes": self._bytes(),
            **counters(messages, compacted=bool(self._causes)),
        }
        if self._causes:
            fields["lastCompactionCause"] = self._causes[-1]
        self.record.finish(
            fields,
            total_usage(messages),
            compactions=len(self._causes),
            entries=self.file.appended - self._appended_before,
        )

    # --- events --------------------------------------------------------------------------------------

    def _emit(self, event: e.AgentEvent) -> None:
        """Store what a `message_end` completes, then tell the listeners."""
        if isinstance(event, e.MessageEnd):
            self.file.append_message(event.message)
        self._tell(event)

    def _tell(self, event: e.AgentEvent) -> None:
        for listener in self.listeners:
            listener(event)


class _Running:
    def __init__(self, session: AgentSession) -> None:
        self.session = session

    def __enter__(self) -> None:
        self.session._running = True

    def __exit__(self, *_exc: object) -> None:
        self.session._running = False


def _take(queue: deque[Message], mode: str) -> Sequence[Message]:
    if not queue:
        return ()
    if mode == "all":
        taken = tuple(queue)
        queue.clear()
        return taken
    return (queue.popleft(),)


def _user(text: str, images: Sequence[ImageBlock] = ()) -> UserMessage:
    return UserMessage((TextBlock(text), *images), _now())


def _now() -> int:
    return int(time.time() * 1000)


def _level(file: SessionFile, environment: Environment) -> ThinkingLevel:
    wanted = file.state.thinking_level if file.leaf_id is not None else environment.agent.thinking
    return next((level for level in THINKING_LEVELS if level == wanted), "off")
