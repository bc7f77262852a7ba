"""Room in the window: when a turn compacts, how often, and what happens after an overflow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from attrs import field, frozen
from attrs.validators import instance_of

from lamella.agent.compaction import Outcome, Why
from lamella.agent.host import SessionHost
from lamella.agent.retry import unless_aborted
from lamella.agent.workbench import Workbench
from lamella.config.budget import flush_trigger
from lamella.errors import ContextOverflow, SessionError
from lamella.models.classify import usage_overflows
from lamella.sessions.fields import count_of, mapping_of
from lamella.sessions.watch import CompactionNote, findings, notes_of, with_note
from lamella.text.days import unix_ms
from lamella.text.estimate import should_compact
from lamella.types import events as e
from lamella.types import hooks as h
from lamella.types.messages import AssistantMessage, JsonObject, Usage, UserMessage, text_of

T = TypeVar("T")

MAX_COMPACTIONS = 3
# After a compaction that freed nothing, the context must change by this part of the window for the next.
_GROWTH = 20
_SWITCHED_OFF = "compaction.enabled is false; set it to true, start a new session, or use a larger model."


@frozen(slots=True)
class _Stalled:
    """A compaction that freed nothing: its cause, and the size of the context then."""

    cause: str = field(validator=instance_of(str))
    tokens: int = field(validator=instance_of(int))

    @classmethod
    def of(cls, entry: JsonObject) -> _Stalled | None:
        raw = mapping_of(entry, "compactionStalled")
        try:
            return cls(**raw) if raw else None
        except TypeError:  # of another version or program
            return None

    def holds(self, cause: str, tokens: int, window: int) -> bool:
        """Whether another try would only do the same again."""
        return self.cause == cause and abs(tokens - self.tokens) < window // _GROWTH


class Room:
    """The compactions of one turn: at most `MAX_COMPACTIONS`, for whatever causes.

    Every one is recorded in sessions.json at once, so that a turn that is killed leaves true counts.
    """

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.causes: list[e.CompactionCause] = []  # of the compactions so far
        self._attempts = 0
        self._failed = ""  # why the last attempt gave nothing
        self._asked_plugins = False
        self._entries_counted = bench.file.appended

    # --- the moments of a turn -------------------------------------------------------------------------

    async def make(self, user: UserMessage, host: SessionHost) -> None:
        """`before_turn`, and a compaction when the window is nearly full already."""
        limits, entry = self.bench.budget(), self.bench.record.read()
        size = self.bench.transcript_bytes()
        tokens = self.bench.tokens() + self.bench.environment.estimate(user)
        event = h.BeforeTurn(
            text_of(user.content),
            tokens,
            limits.window,
            limits.reserve,
            count_of(entry, "compactionCount"),
            size,
            flush_trigger(limits, tokens, size - count_of(entry, "compactionTranscriptBytes")),
        )
        await self._unless_aborted(self.bench.environment.hooks.before_turn(event, host))
        await self._when_due(tokens, host)

    async def after_reply(self, reply: AssistantMessage, host: SessionHost) -> None:
        """Compact when the window is nearly full, or more than full by the reply's own count."""
        if self.bench.aborted.is_set():
            return
        if not usage_overflows(reply, self.bench.budget().window):
            await self._when_due(self.bench.tokens(), host)
        elif self._may_try("overflow"):
            await self._compact("overflow", host)

    async def free(self, error: ContextOverflow, host: SessionHost) -> bool:
        """After an overflow: compact, else let plugins shorten what is stored. False when nothing helped;
        `error` says then what to do."""
        if await self._compacted(error, host) or await self._plugins_freed(error, host):
            return True
        error.hint = error.hint or self._hint()
        return False

    async def by_hand(self, instructions: str, host: SessionHost) -> Outcome:
        """Compact now, without a turn."""
        return await self._compact("manual", host, instructions=instructions)

    # --- compacting ------------------------------------------------------------------------------------

    @property
    def _enabled(self) -> bool:
        return self.bench.environment.settings.compaction.enabled

    def _may_try(self, cause: e.CompactionCause, most: int = MAX_COMPACTIONS) -> bool:
        """Whether a compaction is allowed, in this turn and after what the last one gave."""
        return self._enabled and self._attempts < most and not self._stalled(cause)

    async def _when_due(self, tokens: int, host: SessionHost) -> None:
        limits = self.bench.budget()
        due = should_compact(tokens, limits.window, limits.reserve)
        if due and not self._failed and self._may_try("threshold"):
            await self._compact("threshold", host)

    async def _compacted(self, error: ContextOverflow, host: SessionHost) -> bool:
        """Compact for a request that was refused. One that may be too large in bytes only gets one try."""
        if not self._may_try("overflow", MAX_COMPACTIONS if error.certain else 1):
            return False
        outcome = await self._compact("overflow", host, observed=error.tokens, will_retry=True)
        return outcome.freed > 0

    async def _plugins_freed(self, error: ContextOverflow, host: SessionHost) -> bool:
        """`on_overflow`, once in a turn."""
        if self._asked_plugins:
            return False
        self._asked_plugins = True
        tokens = error.tokens or self.bench.tokens()
        event = h.Overflow(self.bench.file.branch_entries(), tokens, self.bench.budget().window, str(error))
        return await self.bench.environment.hooks.on_overflow(event, host) is not None

    async def _compact(
        self,
        cause: e.CompactionCause,
        host: SessionHost,
        *,
        instructions: str = "",
        observed: int | None = None,
        will_retry: bool = False,
    ) -> Outcome:
        self._attempts += 1
        size = self.bench.tokens()
        why = Why(
            cause,
            instructions or self.bench.environment.settings.compaction.custom_instructions,
            self._attempts,
            count_of(self.bench.record.read(), "compactionCount"),
            observed,
        )
        outcome = await self.bench.compactor(host).run(why, will_retry=will_retry)
        self._failed = outcome.error
        if outcome.entry_id:
            self.causes.append(cause)
            self._record(cause, outcome)
        elif outcome.futile and cause != "manual":
            self.store(lambda: self.bench.record.patch({"compactionStalled": {"cause": cause, "tokens": size}}))
        return outcome

    def _stalled(self, cause: str) -> bool:
        stalled = _Stalled.of(self.bench.record.read())
        return stalled is not None and stalled.holds(cause, self.bench.tokens(), self.bench.budget().window)

    def _hint(self) -> str:
        if not self._enabled:
            return _SWITCHED_OFF
        limits, fixed = self.bench.budget(), self.bench.fixed_tokens()
        if fixed > limits.limit:
            return (
                f"The system prompt and the tools alone take about {fixed} of {limits.window} tokens. Shorten the "
                "workspace's files, leave out tools (tools.deny), or use a model with a larger window."
            )
        why = f"Compaction gave nothing: {self._failed}." if self._failed else "Compaction freed too little."
        return f"{why} The session is kept; start a new one, or use a model with a larger window."

    # --- records ---------------------------------------------------------------------------------------

    def _record(self, cause: e.CompactionCause, outcome: Outcome) -> None:
        entry = self.bench.record.read()
        note = CompactionNote(
            at=int(unix_ms()),
            turn=count_of(entry, "turns"),
            cause=cause,
            before=outcome.tokens_before,
            after=outcome.tokens_after,
            fixed=self.bench.fixed_tokens(),
            summary=outcome.summary_tokens,
            limit=self.bench.budget().limit,
            flush=str(outcome.details.get("flush", "")),
            by=str(outcome.details.get("summarisedBy", "")),
        )
        fields = {
            "compactions": with_note(entry, note),
            "lastCompactionCause": cause,
            "compactionTranscriptBytes": self.bench.transcript_bytes(),
            "compactionStalled": None,
        }
        added = self.new_entries()
        self.store(lambda: self.bench.record.finish(fields, Usage(), compactions=1, entries=added))
        for finding in findings([*notes_of(entry), note]):
            if finding.code != "compactions_without_flush":  # shown by status, told to nobody
                self.bench.tell(e.Notice(finding.code, finding.message))

    def new_entries(self) -> int:
        """How many entries were stored since this was asked last."""
        new = self.bench.file.appended - self._entries_counted
        self._entries_counted += new
        return new

    def store(self, write: Callable[[], None]) -> None:
        """Change the session's entry. When that fails it is told: what is in the transcript is not undone for
        it, and a reply is not withheld for its counters."""
        try:
            write()
        except SessionError as failure:
            self.bench.tell(e.Notice("counters_not_saved", f"the session's counters were not saved: {failure}"))

    async def _unless_aborted(self, work: Awaitable[T]) -> T:
        return await unless_aborted(work, self.bench.aborted)
