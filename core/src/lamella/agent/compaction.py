"""One pipeline for every compaction, whatever its cause.

    before_compaction -> prepare -> on_compaction (or the engine's own summary) -> write the entry
    -> after_compaction

On failure the session is as it was, and the reason is reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import frozen

from lamella.agent.cut import prepare_compaction, tokens_in_context
from lamella.agent.retry import unless_aborted
from lamella.agent.summaries import Ask, summarize
from lamella.config.budget import Budget
from lamella.errors import ModelAborted, ModelError, TranscriptError
from lamella.plugins.hooks import Hooks
from lamella.sessions.transcript import SessionFile
from lamella.text.conversation import FileLists
from lamella.text.estimate import Estimator
from lamella.types import events as e
from lamella.types import hooks as h
from lamella.types.host import Host

Emit: TypeAlias = Callable[[e.AgentEvent], None]

log = logging.getLogger(__name__)


@frozen(slots=True)
class Outcome:
    """What a compaction did. `error` says why nothing was compacted.

    `freed` is how much smaller the context became, by estimates or by the provider's own count.
    """

    entry_id: str | None = None
    tokens_before: int = 0
    tokens_after: int = 0
    freed: int = 0
    error: str = ""


@frozen(slots=True)
class Compactor:
    """What a compaction works with."""

    file: SessionFile
    hooks: Hooks
    host: Host
    budget: Budget
    estimate: Estimator
    ask: Ask
    emit: Emit
    aborted: asyncio.Event

    async def run(
        self, cause: e.CompactionCause, *, instructions: str = "", attempt: int = 1, will_retry: bool = False
    ) -> Outcome:
        """Compact the session's current branch."""
        self.emit(e.AutoCompactionStart(cause))
        try:
            outcome = await self._run(cause, instructions, attempt)
        except ModelAborted:
            self.emit(e.AutoCompactionEnd(cause, aborted=True))
            return Outcome(error="aborted")
        except (ModelError, TranscriptError, TimeoutError) as error:
            log.warning("compaction failed: %s", error)
            outcome = Outcome(error=str(error) or type(error).__name__)
        entry = self.file.entry(outcome.entry_id) if outcome.entry_id else None
        self.emit(
            e.AutoCompactionEnd(
                cause,
                summary=entry.text("summary") if entry else None,
                first_kept_entry_id=entry.text("firstKeptEntryId") if entry else None,
                tokens_before=outcome.tokens_before,
                tokens_after=outcome.tokens_after if entry else None,
                will_retry=will_retry and entry is not None,
                error=outcome.error or None,
            )
        )
        return outcome

    async def _run(self, cause: e.CompactionCause, instructions: str, attempt: int) -> Outcome:
        prepared = self._prepare()
        if prepared is None:
            return Outcome(error="nothing to compact: the session is too small or has just been compacted")
        if self.hooks.implemented("before_compaction"):
            event = h.BeforeCompaction(prepared, cause, self.budget.window)
            await self.hooks.before_compaction(event, self.host)
            prepared = self._prepare() or prepared  # a plugin may have added entries
        entries = self.file.branch_entries()
        compacting = h.Compacting(prepared, entries, cause, instructions, attempt)
        answer = await unless_aborted(self.hooks.on_compaction(compacting, self.host), self.aborted)
        if answer is not None and answer.cancel:
            return Outcome(error=f"cancelled: {answer.reason}" if answer.reason else "cancelled by a plugin")
        if answer is not None:
            summary, details = answer.summary, answer.details
            first_kept = answer.first_kept_entry_id or prepared.first_kept_entry_id
        else:
            summary = await summarize(prepared, self.ask, instructions)
            details, first_kept = _details(prepared, cause), prepared.first_kept_entry_id
        size_before = self._size()
        entry = self.file.append_compaction(
            summary, first_kept, prepared.tokens_before, details=details, from_hook=answer is not None
        )
        after = tokens_in_context(self.file.context(), self.estimate)
        await self.hooks.after_compaction(
            h.AfterCompaction(
                entry.id, summary, cause, prepared.tokens_before, after, len(self.file.context().messages)
            ),
            self.host,
        )
        # The provider's count may be lower than an estimate (or missing): either may show the gain.
        freed = max(size_before - self._size(), prepared.tokens_before - after, 0)
        return Outcome(entry.id, prepared.tokens_before, after, freed)

    def _size(self) -> int:
        return sum(self.estimate(m) for m in self.file.context().messages)

    def _prepare(self) -> h.Preparation | None:
        return prepare_compaction(
            self.file.context(),
            keep_recent_tokens=self.budget.keep_recent,
            reserve_tokens=self.budget.reserve,
            estimate=self.estimate,
        )


def _details(prepared: h.Preparation, cause: e.CompactionCause) -> dict[str, Any]:
    """What is stored beside the engine's own summary; the next compaction reads the file lists again."""
    files = FileLists(prepared.read_files, prepared.modified_files)
    return {**files.to_details(), "cause": cause, "foldedEntryIds": list(prepared.folded_entry_ids)}
