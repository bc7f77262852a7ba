"""A session at work: one user turn after the other on one transcript."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TypeAlias

from lamella.agent.compaction import Outcome
from lamella.agent.environment import Environment
from lamella.agent.eventlog import log_event
from lamella.agent.host import SessionHost, SessionRecord
from lamella.agent.prefix_log import PrefixLog, log_path
from lamella.agent.turn import Turn, TurnResult, user_message
from lamella.agent.workbench import Workbench
from lamella.context.assembly import PromptFor
from lamella.errors import UsageError
from lamella.sessions.keys import SessionKey
from lamella.sessions.transcript import SessionFile
from lamella.types import events as e
from lamella.types.hooks import PromptSection
from lamella.types.host import Trigger
from lamella.types.messages import ImageBlock, Message
from lamella.types.model import THINKING_LEVELS, Model, ThinkingLevel

Listener: TypeAlias = Callable[[e.AgentEvent], None]


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
        state_dir = environment.prompts.facts.state_dir
        self._prefixes = PrefixLog(log_path(state_dir, file.id), environment.estimate)
        self._steering: deque[Message] = deque()
        self._follow_ups: deque[Message] = deque()
        self._aborted = asyncio.Event()
        self._running = False

    # --- what callers do -------------------------------------------------------------------------

    async def prompt(self, text: str, *, images: Sequence[ImageBlock] = ()) -> TurnResult:
        """Run one user turn. Raises `UsageError` while another one runs.

        Model failures come back in the result; failures to store the transcript are raised.
        """
        with self._turn() as turn:
            return await turn.run(text, images)

    async def compact(self, instructions: str = "") -> Outcome:
        """Compact now."""
        with self._turn() as turn:
            return await turn.compact(instructions)

    def steer(self, text: str) -> None:
        """Queue a message that enters the running turn before its next model call."""
        self._steering.append(user_message(text))

    def follow_up(self, text: str) -> None:
        """Queue a message that is taken when the running turn would end."""
        self._follow_ups.append(user_message(text))

    def abort(self) -> None:
        """Stop the running turn; what has arrived stays in the transcript."""
        self._aborted.set()

    def host(self) -> SessionHost:
        """A host for hooks outside a turn."""
        return self._bench().host()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[Turn]:
        """A new turn; one at a time."""
        if self._running:
            raise UsageError(
                f"session {self.key.text}: a turn is running", hint="Use steer() or follow_up(), or wait for its end."
            )
        self._aborted = asyncio.Event()
        self._running = True
        try:
            yield Turn(self._bench())
        finally:
            self._running = False

    def _bench(self) -> Workbench:
        return Workbench(
            self.key,
            self.file,
            self.model,
            self.environment,
            self.record,
            self.trigger,
            self.thinking,
            self._tell,
            self._aborted,
            self._sections,
            self._prefixes,
            self._steering,
            self._follow_ups,
        )

    @cached_property
    def _sections(self) -> tuple[PromptSection, ...]:
        """The parts of the system prompt: made once, so that no turn changes its prefix."""
        configured = self.environment.system_prompt
        if configured:
            return (PromptSection("system_prompt", configured),)
        model = f"{self.model.provider}/{self.model.id}"
        return self.environment.prompts.sections(PromptFor(self.key, self.file.id, self.trigger, model))

    def _tell(self, event: e.AgentEvent) -> None:
        log_event(self.key.text, event)
        for listener in self.listeners:
            listener(event)


def _level(file: SessionFile, environment: Environment) -> ThinkingLevel:
    wanted = file.state.thinking_level if file.leaf_id is not None else environment.agent.thinking
    return next((level for level in THINKING_LEVELS if level == wanted), "off")
