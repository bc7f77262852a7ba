"""The flush: shortly before a compaction, the model saves what should outlast it.

A silent turn with two tools: `read`, and a `write` that only appends to today's note. When it runs is
decided here; the numbers behind it are the engine's (`lamella.config.budget`). Rules follow OpenClaw
2026.3; docs/decisions/0024 lists where not.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from attrs import define, evolve, field, frozen

from lamella.memory.writer import MemoryWriter
from lamella.sessions.fields import count_of, integer_of, mapping_of, string_of
from lamella.text.days import unix_ms
from lamella.text.estimate import estimate_tokens
from lamella.text.shorten import shorten
from lamella.text.silent import SILENT, is_silent
from lamella.types.hooks import BeforeCompaction, BeforeTurn, FlushReport
from lamella.types.host import Host, SilentTurn, TurnInfo
from lamella.types.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from lamella_memory_core.config import Config
from lamella_memory_core.flush.prompt import flush_prompt, flush_system_prompt
from lamella_memory_core.flush.write import Written, write_tool

# Model calls of a flush: to read, to write, and to say that it is done.
MAX_CALLS = 3
# After so many failures in a cycle, the next try waits for the next cycle.
MAX_FAILURES = 2
# Part of the window that the history about to be folded may take in a flush of its own.
_SLICE = 0.5
_RESULT_CHARS = 2_000

FLUSHED = "flushed"

log = logging.getLogger(__name__)


@frozen(slots=True)
class Cycle:
    """What a session's entry says about flushes since its last compaction.

    `number` counts compactions. A mark without a number is none: 0 means flushed before the first one.
    """

    number: int = 0
    flushed: bool = False
    failures: int = 0
    outcome: str = ""

    @classmethod
    def of(cls, entry: JsonObject) -> Cycle:
        number = count_of(entry, "compactionCount")
        failed = mapping_of(entry, "memoryFlushFailures")
        failures = count_of(failed, "count") if failed.get("cycle") == number else 0
        flushed = integer_of(entry, "memoryFlushCompactionCount") == number
        return cls(number, flushed, failures, string_of(entry, "lastFlushOutcome") or "")


def closed_gate(entry: JsonObject, turn: TurnInfo) -> str:
    """Why no flush may run now; empty when one may."""
    cycle = Cycle.of(entry)
    if turn.trigger in ("heartbeat", "memory"):
        return f"gate: {turn.trigger} turn"
    if not turn.workspace_writable:
        return "gate: the workspace is read-only"
    if not entry:
        return "gate: the session has no entry"
    if cycle.flushed:
        return FLUSHED
    if cycle.failures >= MAX_FAILURES:
        return f"gate: failed {cycle.failures} times since the last compaction"
    return ""


def newest_part(messages: Sequence[Message], tokens: int) -> list[Message]:
    """The newest messages that take at most so many tokens by estimate, long texts cut.

    It begins with a user's message where there is one. Tool results are cut most: what lasts is said.
    """
    light = [_lighter(message, tokens // 4) for message in messages]
    start, total = len(light), 0
    while start and (total := total + estimate_tokens(light[start - 1])) <= tokens:
        start -= 1
    part = light[start:]
    return part[next((i for i, message in enumerate(part) if isinstance(message, UserMessage)), 0) :]


def _lighter(message: Message, most: int) -> Message:
    """A message whose texts have at most `most` characters, and of a tool at most `_RESULT_CHARS`."""
    if isinstance(message, ToolResultMessage):
        most = min(most, _RESULT_CHARS)
    elif not isinstance(message, UserMessage | AssistantMessage):
        return message
    blocks = blocks_of(message.content)
    cut = tuple(evolve(b, text=shorten(b.text, most, min_keep=0)) if isinstance(b, TextBlock) else b for b in blocks)
    return message if cut == blocks else evolve(message, content=cut)


@define
class Flush:
    """Runs flushes with a writer: at most one a turn, once in a cycle."""

    writer: MemoryWriter
    config: Config
    _tried: dict[str, str] = field(factory=dict, init=False, repr=False)  # outcomes of this turn, by session

    async def before_turn(self, event: BeforeTurn, host: Host) -> None:
        """A flush on the session's history, when the engine says that one is due."""
        self.turn_ended(host)
        if not event.flush_due or not self.config.flush:
            return
        closed = closed_gate(host.session_entry(), host.turn)
        if not closed:
            await self._run(host, event.cycle)
        elif closed != FLUSHED:
            host.patch_session_entry(lastFlushOutcome=f"none: {closed}")

    async def before_compaction(self, event: BeforeCompaction, host: Host) -> FlushReport:
        """What was saved before this compaction. Where nothing was tried, a flush of what will be folded."""
        prepared, entry = event.preparation, host.session_entry()
        closed = closed_gate(entry, host.turn)
        if not event.flush or not self.config.flush:
            return FlushReport("none: switched off")
        if closed == FLUSHED:
            return FlushReport(Cycle.of(entry).outcome or "written", str(entry.get("lastFlushPath") or ""))
        if event.cause != "manual" and host.turn.session_id in self._tried:
            outcome = self._tried[host.turn.session_id]
            return FlushReport(outcome if outcome.startswith("failed") else "none: gate: one flush a turn")
        if closed:
            host.patch_session_entry(lastFlushOutcome=f"none: {closed}")
            return FlushReport(f"none: {closed}")
        folded = (*prepared.messages_to_summarize, *prepared.turn_prefix)
        return await self._run(host, event.cycle, newest_part(folded, int(event.window * _SLICE)))

    def turn_ended(self, host: Host) -> None:
        """The next turn may flush again."""
        self._tried.pop(host.turn.session_id, None)

    async def _run(self, host: Host, cycle: int, history: Sequence[Message] | None = None) -> FlushReport:
        """One flush. What it wrote is marked at once, so that nothing is written twice."""
        target = self.writer.today()
        written = Written(target, lambda: self._mark(host, cycle, "written", target))
        result = await host.run_silent_turn(
            flush_prompt(self.writer, host.turn.timezone, self.config.flush_prompt),
            tools=("read", write_tool(self.writer, written)),
            system_prompt=flush_system_prompt(target, self.config.flush_system_prompt),
            timeout=self.config.flush_timeout_seconds,
            history=history,
            max_calls=MAX_CALLS,
        )
        outcome = self._outcome(result, written)
        if outcome == "nothing":
            self._mark(host, cycle, outcome, target)
        elif outcome != "written":
            self._note_failure(host, cycle, outcome)
        self._tried[host.turn.session_id] = outcome
        return FlushReport(outcome, target if written.count else "")

    @staticmethod
    def _outcome(result: SilentTurn, written: Written) -> str:
        if written.count:
            return "written"  # what came after it may have failed; what matters is saved
        if not result.success or written.refused:
            return f"failed: {result.error or written.refused}"
        return "nothing" if is_silent(result.text) else f"failed: the model neither wrote nor answered {SILENT}"

    @staticmethod
    def _mark(host: Host, cycle: int, outcome: str, target: str) -> None:
        host.patch_session_entry(
            memoryFlushAt=unix_ms(),
            memoryFlushCompactionCount=cycle,
            memoryFlushFailures=None,
            lastFlushOutcome=outcome,
            lastFlushPath=target if outcome == "written" else None,
        )

    @staticmethod
    def _note_failure(host: Host, cycle: int, outcome: str) -> None:
        log.warning("%s: the memory flush %s", host.turn.session_key, outcome)
        count = Cycle.of(host.session_entry()).failures + 1
        host.patch_session_entry(
            memoryFlushFailures={"cycle": cycle, "count": count}, lastFlushOutcome=outcome, lastFlushPath=None
        )
