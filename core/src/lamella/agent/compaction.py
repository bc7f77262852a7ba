"""One pipeline for every compaction, whatever its cause.

    before_compaction (with the decision on a flush) -> prepare -> on_compaction, or the engine's own
    summary -> does it free something? -> write the entry -> after_compaction

On failure the session is as it was, and the reason is reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from lamella.agent.cut import measure_context, prepare_compaction
from lamella.agent.retry import unless_aborted
from lamella.agent.summaries import Ask, summarize
from lamella.config.budget import Budget
from lamella.errors import ModelAborted, ModelError, TranscriptError
from lamella.plugins.hooks import Hooks
from lamella.sessions.context import Context
from lamella.sessions.transcript import SessionFile
from lamella.text.conversation import FileLists
from lamella.text.estimate import Estimator
from lamella.types import events as e
from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.messages import CompactionSummaryMessage, Message

Emit: TypeAlias = Callable[[e.AgentEvent], None]

NOTHING_TO_COMPACT = "nothing to compact: the session is too small or has just been compacted"
# A summary that frees less than this part of the window costs more than it gives; after an overflow, whose
# window may be another one than the model's, this part of the history. By hand it is taken
# as long as the session can go on with it: somebody wants it, and nothing asks for it again by itself.
LEAST_FREED = 0.01
_GOOD_PART = 0.25
_KEEP_DIVISORS = (1, 2, 4, 8)

log = logging.getLogger(__name__)


@frozen(slots=True)
class Why:
    """What set a compaction off. `attempt` counts the tries of the turn, from 1, `cycle` the compactions of
    the session before it. `observed`: the tokens that a server counted in the request it refused."""

    cause: e.CompactionCause
    instructions: str = ""
    attempt: int = 1
    cycle: int = 0
    observed: int | None = None


@frozen(slots=True)
class Outcome:
    """What a compaction did. `error` says why nothing was compacted. Sizes in tokens of the next request.

    `freed` is how much smaller the history became, by estimates; `futile` tells that there was nothing to
    gain, so that another try would do the same. `details` is what the entry holds beside
    its summary; `summary_tokens` the summary's size.
    """

    entry_id: str | None = None
    tokens_before: int = 0
    tokens_after: int = 0
    freed: int = 0
    error: str = ""
    futile: bool = False
    details: Mapping[str, Any] = {}
    summary_tokens: int = 0


@frozen(slots=True)
class _Sizes:
    """Tokens of the next request before and after, what went from the history, and what the summary takes."""

    before: int
    after: int
    freed: int
    summary: int


@frozen(slots=True)
class Compactor:
    """What a compaction works with. `fixed` tokens are in every request beside the history; `summariser`
    names the model that `ask` asks."""

    file: SessionFile
    hooks: Hooks
    host: Host
    budget: Budget
    estimate: Estimator
    ask: Ask
    emit: Emit
    aborted: asyncio.Event
    fixed: int = 0
    summariser: str = ""
    flush: bool = True

    async def run(self, why: Why, *, will_retry: bool = False) -> Outcome:
        """Compact the session's current branch."""
        self.emit(e.AutoCompactionStart(why.cause))
        try:
            outcome = await self._run(why)
        except ModelAborted:
            self.emit(e.AutoCompactionEnd(why.cause, aborted=True))
            return Outcome(error="aborted")
        except (ModelError, TranscriptError) as error:
            log.warning("compaction failed: %s", error)
            outcome = Outcome(error=str(error) or type(error).__name__)
        entry = self.file.entry(outcome.entry_id) if outcome.entry_id else None
        self.emit(
            e.AutoCompactionEnd(
                why.cause,
                summary=entry.text("summary") if entry else None,
                first_kept_entry_id=entry.text("firstKeptEntryId") if entry else None,
                tokens_before=outcome.tokens_before,
                tokens_after=outcome.tokens_after if entry else None,
                will_retry=will_retry and entry is not None,
                error=outcome.error or None,
            )
        )
        return outcome

    async def _run(self, why: Why) -> Outcome:
        prepared = self._prepare(why)
        if prepared is None:
            return Outcome(error=self._nothing(), futile=True)
        flushed = await self._before(prepared, why)
        prepared = self._prepare(why) or prepared  # a plugin may have added entries
        event = h.Compacting(prepared, self.file.branch_entries(), why.cause, why.instructions, why.attempt)
        answer = await unless_aborted(self.hooks.on_compaction(event, self.host), self.aborted)
        if answer is not None and answer.cancel:
            return Outcome(error=f"cancelled: {answer.reason}" if answer.reason else "cancelled by a plugin")
        return await self._adopt(
            prepared, answer or await self._own_summary(prepared, why), why, flushed, by_plugin=answer is not None
        )

    async def _before(self, prepared: h.Preparation, why: Why) -> h.FlushReport:
        """`before_compaction`, and what it means for memory: every compaction has an answer to that."""
        event = h.BeforeCompaction(prepared, why.cause, self.budget.window, why.cycle, self.flush)
        report = await unless_aborted(self.hooks.before_compaction(event, self.host), self.aborted)
        if report is not None:
            return report
        if self.hooks.catalog.slot("memory") is None:
            return h.FlushReport("none: slot")
        return h.FlushReport("none: the memory plugin did not answer")

    async def _own_summary(self, prepared: h.Preparation, why: Why) -> h.CompactionResult:
        """The engine's own summary, by the session's model."""
        summary = await summarize(prepared, self.ask, why.instructions)
        files = FileLists(prepared.read_files, prepared.modified_files)
        return h.CompactionResult(summary, details={**files.to_details(), "summarisedBy": self.summariser})

    async def _adopt(
        self,
        prepared: h.Preparation,
        answer: h.CompactionResult,
        why: Why,
        flushed: h.FlushReport,
        *,
        by_plugin: bool,
    ) -> Outcome:
        """Write the entry, unless nothing would be gained by it."""
        first_kept = answer.first_kept_entry_id or prepared.first_kept_entry_id
        sizes = self._sizes(answer.summary, first_kept)
        if self._is_futile(sizes, why):
            error = f"the summary would free {max(sizes.freed, 0)} of {sizes.before} tokens, so it was not taken"
            return Outcome(tokens_before=sizes.before, error=error, futile=True)
        details = _details(prepared, answer, why, flushed, sizes)
        entry = self.file.append_compaction(
            answer.summary, first_kept, prepared.tokens_before, details=details, from_hook=by_plugin
        )
        done = h.AfterCompaction(
            entry.id, answer.summary, why.cause, prepared.tokens_before, sizes.after, len(self.file.context().messages)
        )
        await self.hooks.after_compaction(done, self.host)
        return Outcome(entry.id, sizes.before, sizes.after, sizes.freed, details=details, summary_tokens=sizes.summary)

    def _sizes(self, summary: str, first_kept: str) -> _Sizes:
        """What the context is, and what it would be with this summary."""
        context = self.file.context()
        measured, history = measure_context(context, self.estimate), self._total(context.messages)
        told = self.estimate(CompactionSummaryMessage(summary))
        left = told + self._total(_kept(context, first_kept))
        counted = measured.last_usage_index is not None
        before = measured.tokens if counted else history + self.fixed
        return _Sizes(before, left + self.fixed, history - left, told)

    def _total(self, messages: Iterable[Message]) -> int:
        return sum(map(self.estimate, messages))

    def _nothing(self) -> str:
        if self.fixed <= self.budget.limit:
            return NOTHING_TO_COMPACT
        return f"the system prompt and the tools alone take about {self.fixed} of {self.budget.window} tokens"

    def _prepare(self, why: Why) -> h.Preparation | None:
        """What would be folded; None when that is nothing, or too little to be worth a summary.

        For a request that was refused ever less is kept: with each try of the turn, and until a good part
        of the history is folded.
        """
        divisors = (1,) if why.cause != "overflow" else _KEEP_DIVISORS[why.attempt - 1 :]
        plans = [self._plan(max(self.budget.keep_recent // divisor, 1)) for divisor in divisors]
        sizes = [0 if plan is None else self._folded(plan) for plan in plans]
        if why.cause == "manual":
            return plans[0]
        history = self._total(self.file.context().messages)
        good = next((n for n, size in enumerate(sizes) if size >= _GOOD_PART * history), len(plans) - 1)
        return plans[good] if sizes[good] >= self._least(why) else None

    def _is_futile(self, sizes: _Sizes, why: Why) -> bool:
        if why.cause == "manual":
            return sizes.freed <= 0 and sizes.after > self.budget.limit
        return sizes.freed < self._least(why)

    def _least(self, why: Why) -> float:
        """The fewest tokens that a summary must free."""
        history = self._total(self.file.context().messages)
        by_history = why.cause == "overflow" and self.fixed <= self.budget.limit
        return max(LEAST_FREED * (history if by_history else self.budget.window), 1)

    def _folded(self, plan: h.Preparation) -> int:
        return self._total((*plan.messages_to_summarize, *plan.turn_prefix))

    def _plan(self, keep: int) -> h.Preparation | None:
        return prepare_compaction(
            self.file.context(),
            keep_recent_tokens=keep,
            reserve_tokens=self.budget.reserve,
            estimate=self.estimate,
        )


def _kept(context: Context, first_kept: str) -> list[Message]:
    """The messages that stay. Raises `ModelError` for an entry that is not in the context."""
    items = context.items
    start = next((i for i, item in enumerate(items) if item.entry.id == first_kept), None)
    if start is None:
        raise ModelError(f"a plugin would keep from entry {first_kept!r} on, which is not in the context")
    kept = (m for item in items[start:] for m in item.messages)
    return [m for m in kept if not isinstance(m, CompactionSummaryMessage)]


def _details(
    prepared: h.Preparation, answer: h.CompactionResult, why: Why, flushed: h.FlushReport, sizes: _Sizes
) -> dict[str, Any]:
    """What the entry holds beside its summary: what the plugin says, and what is known of every compaction."""
    details = {
        "summarisedBy": "plugin",
        **_as_mapping(answer.details),
        "cause": why.cause,
        "tokensBefore": sizes.before,
        "tokensAfter": sizes.after,
        "foldedEntryIds": list(prepared.folded_entry_ids),
        "flush": flushed.outcome,
    }
    if flushed.path:
        details["flushPath"] = flushed.path
    if why.observed:
        details["observedTokens"] = why.observed
    return details


def _as_mapping(details: Any) -> dict[str, Any]:
    """What a plugin wants stored; what is no mapping goes under a name."""
    if details is None:
        return {}
    return dict(details) if isinstance(details, Mapping) else {"details": details}
