"""What a turn works with: the session's parts, and what is built from them for a run."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from attrs import evolve, field, frozen

from lamella.agent.accounting import total_usage
from lamella.agent.compaction import Compactor
from lamella.agent.cut import measure_context
from lamella.agent.environment import Environment
from lamella.agent.host import SessionHost, SessionRecord, SilentRequest, complete
from lamella.agent.loop import LoopSetup, run_loop
from lamella.agent.policy import HookPolicy
from lamella.agent.prefix_log import PrefixLog
from lamella.agent.request import RequestBuilder, fixed_tokens, tool_tokens
from lamella.agent.retry import unless_aborted
from lamella.agent.summaries import SummaryRequest
from lamella.config.budget import Budget, budget
from lamella.context.prompt import render
from lamella.errors import ModelError
from lamella.sessions.keys import SessionKey
from lamella.sessions.transcript import SessionFile
from lamella.text.estimate import estimate_text
from lamella.text.silent import spoken
from lamella.types import events as e
from lamella.types import hooks as h
from lamella.types.host import SilentTurn, Trigger, TurnInfo
from lamella.types.messages import (
    AssistantMessage,
    Message,
    Usage,
    UserMessage,
    text_of,
)
from lamella.types.model import Model, ModelRequest, ThinkingLevel
from lamella.types.tools import Tool, ToolContext


@frozen(slots=True)
class Workbench:
    """The parts of a session during one turn. `tell` reports events to whoever watches; `sections` are
    those of the system prompt."""

    key: SessionKey
    file: SessionFile
    model: Model
    environment: Environment
    record: SessionRecord
    trigger: Trigger
    thinking: ThinkingLevel
    tell: Callable[[e.AgentEvent], None] = field(repr=False)
    aborted: asyncio.Event = field(repr=False)
    sections: tuple[h.PromptSection, ...] = field(repr=False)
    prefixes: PrefixLog = field(repr=False)
    steering: deque[Message] = field(factory=deque, repr=False)
    follow_ups: deque[Message] = field(factory=deque, repr=False)

    # --- numbers -------------------------------------------------------------------------------------

    def budget(self) -> Budget:
        """The window and its reserve."""
        return budget(self.environment.settings.compaction, self.environment.window(self.model))

    def tokens(self) -> int:
        """Tokens that the session's next request takes, before its new prompt."""
        measured = measure_context(self.file.context(), self.environment.estimate)
        if measured.last_usage_index is not None:
            return measured.tokens
        return measured.tokens + self.fixed_tokens()

    def fixed_tokens(self) -> int:
        """Tokens that every request takes: the system prompt and the tools. Asked for several times in a turn."""
        return self._fixed_tokens

    @cached_property
    def _fixed_tokens(self) -> int:
        return fixed_tokens(self.system_prompt(), (t.spec for t in self.environment.tools.values()))

    def largest_part(self) -> str:
        """What takes the most tokens of every request, and whose it is."""
        # The core's own sections are short, but for the one that repeats what tools say of themselves.
        others = (s for s in self.sections if s.owner != "core")
        sections = [(estimate_text(s.text), f"the prompt section {s.name!r} of {s.owner}") for s in others]
        tools = [(tool_tokens(t.spec), f"the tool {name!r}") for name, t in self.environment.tools.items()]
        return max([*sections, *tools], default=(0, "nothing"))[1]

    def transcript_bytes(self) -> int:
        return self.file.path.stat().st_size if self.file.path.exists() else 0

    # --- pieces of a run -------------------------------------------------------------------------------

    def system_prompt(self) -> str:
        """The base prompt, before additions of the turn."""
        return render(self.sections)

    def prompt_parts(self, addition: h.PromptAddition) -> list[h.PromptSection]:
        """The parts of the system prompt with the additions of the turn."""
        replaced = addition.system_prompt
        base = (h.PromptSection("replaced", replaced, owner="plugins"),) if replaced else self.sections
        before = h.PromptSection("prepended", addition.prepend_system, owner="plugins")
        after = h.PromptSection("appended", addition.append_system, owner="plugins")
        return [part for part in (before, *base, after) if part.text.strip()]

    def note_prefix(self, addition: h.PromptAddition, request: ModelRequest) -> None:
        """Record what a turn sent. The record only helps to find costs, so no turn fails for it."""
        try:
            self.prefixes.add(self.prompt_parts(addition), request)
        except OSError as error:
            self.tell(e.Notice("prefix_not_recorded", f"what the turn sent was not recorded: {error}"))

    def history(self) -> list[Message]:
        """The context without failed replies at its end, so that a run can continue from it."""
        messages = list(self.file.context().messages)
        while messages and isinstance(messages[-1], AssistantMessage) and messages[-1].failed:
            messages.pop()
        return messages

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
            workspace_writable=os.access(self.environment.workspace, os.W_OK),
            context_window=self.budget().window,
            timezone=self.environment.agent.timezone,
        )
        return SessionHost(
            info,
            self.file,
            self.model,
            self.record,
            emit=self.tell,
            tools=[t.spec for t in self.environment.tools.values()],
            writer=self.environment.writer,
            silent=self._silent,
        )

    def setup(self, addition: h.PromptAddition, host: SessionHost, *, with_thinking: bool = True) -> LoopSetup:
        environment = self.environment
        builder = self._builder(addition, host, environment.tools)
        return LoopSetup(
            model=self.model,
            tools=environment.tools,
            build=evolve(builder, with_thinking=with_thinking).build,
            policy=HookPolicy(environment.hooks, host, dict(environment.tools), environment.confirm),
            make_context=self._tool_context(host),
            steering=lambda: _take(self.steering, environment.agent.steering_mode),
            follow_ups=lambda: _take(self.follow_ups, environment.agent.follow_up_mode),
            parallel=environment.settings.tools.parallel,
            max_turns=environment.agent.max_turns,
            aborted=self.aborted,
        )

    def _builder(self, addition: h.PromptAddition, host: SessionHost, tools: Mapping[str, Tool]) -> RequestBuilder:
        return RequestBuilder(
            model=self.model,
            hooks=self.environment.hooks,
            host=host,
            estimate=self.environment.estimate,
            system_prompt=render(self.prompt_parts(addition)),
            tools=tuple(t.spec for t in tools.values()),
            window=self.budget().window,
            thinking=self.thinking,
            prepend=addition.prepend_context,
        )

    def _tool_context(self, host: SessionHost) -> Callable[[str], ToolContext]:
        def make(call_id: str) -> ToolContext:
            return ToolContext(
                call_id,
                self.environment.workspace,
                self.key.text,
                session_id=self.file.id,
                entry_id=self.file.leaf_id or "",
                host=host,
                trigger=self.trigger,
                chat_type=self.key.chat_type,
            )

        return make

    def compactor(self, host: SessionHost) -> Compactor:
        return Compactor(
            self.file,
            self.environment.hooks,
            host,
            self.budget(),
            self.environment.estimate,
            self._ask,
            self.tell,
            self.aborted,
            fixed=self.fixed_tokens(),
            summariser=f"{self.model.provider}/{self.model.id}",
            flush=self.environment.settings.compaction.flush,
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
        try:
            reply = await unless_aborted(work, self.aborted)
        except TimeoutError:
            raise ModelError(f"no summary within {limit:g} s (compaction.timeout_seconds)") from None
        self.record.spend(reply.usage or Usage())
        text = spoken(text_of(reply.content, "\n")).strip()
        if not text:
            raise ModelError("the model gave an empty summary")
        if reply.stop_reason == "length":
            raise ModelError("the summary was cut off by the model's length limit")
        return text

    async def _silent(self, wanted: SilentRequest) -> SilentTurn:
        """A turn on a copy of the history that is neither shown nor stored."""
        bench = evolve(self, trigger="memory", steering=deque(), follow_ups=deque(), tell=_unheard)
        return await bench._run_silent(wanted)

    async def _run_silent(self, wanted: SilentRequest) -> SilentTurn:
        known = self.environment.tools
        named = {tool: known[tool] for tool in wanted.tools if isinstance(tool, str) and tool in known}
        offered = {**named, **{tool.name: tool for tool in wanted.tools if isinstance(tool, Tool)}}
        host = self.host()
        addition = h.PromptAddition(append_system=wanted.system_prompt)
        setup = evolve(
            self.setup(addition, host),
            tools=offered,
            build=self._builder(addition, host, offered).build,
            policy=HookPolicy(self.environment.hooks, host, dict(offered)),
            max_turns=wanted.max_calls,
        )
        history = self.history() if wanted.history is None else list(wanted.history)
        result = await run_loop([UserMessage(wanted.prompt)], history, setup, _unheard)
        self.record.spend(total_usage(result.messages))
        text = text_of(result.reply.content) if result.reply else ""
        return SilentTurn(text, result.error is None, str(result.error) if result.error else "")


def _unheard(_event: e.AgentEvent) -> None:
    """Nobody is told of a silent turn."""


def _take(queue: deque[Message], mode: str) -> Sequence[Message]:
    if not queue:
        return ()
    if mode == "all":
        taken = tuple(queue)
        queue.clear()
        return taken
    return (queue.popleft(),)
