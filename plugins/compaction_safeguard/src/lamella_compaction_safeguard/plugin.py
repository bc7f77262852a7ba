"""The plugin: summaries that are checked, and the refresh after a compaction."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lamella.errors import ModelAborted, ModelError
from lamella.plugins import hookimpl
from lamella_compaction_safeguard.config import Config as _Config

if TYPE_CHECKING:
    from lamella.types.hooks import AfterCompaction, Compacting, CompactionResult
    from lamella.types.host import Host
    from lamella_compaction_safeguard.plan import Plan
    from lamella_compaction_safeguard.summarise import Written

log = logging.getLogger(__name__)


class CompactionSafeguard:
    """Writes the summary of every compaction, and reminds the model of the workspace's rules after it."""

    name = "compaction-safeguard"
    priority = 0
    Config = _Config

    def __init__(self, config: _Config) -> None:
        self.config = config
        self._warned: set[str] = set()  # sessions that were told of a failing model

    @hookimpl
    async def on_compaction(self, event: Compacting, host: Host) -> CompactionResult:
        """A checked summary. When the model fails, cancels, or quotes by rules if the window is exceeded."""
        from lamella.types.hooks import CompactionResult
        from lamella_compaction_safeguard.plan import is_conversation, make_plan
        from lamella_compaction_safeguard.requests import Requests
        from lamella_compaction_safeguard.summarise import SummaryWriter

        prepared, turn, config = event.preparation, host.turn, self.config
        if not is_conversation((*prepared.messages_to_summarize, *prepared.turn_prefix)):
            return CompactionResult(cancel=True, reason="nothing was said in the part that would be summarised")
        window = turn.context_window or _window_of(event)
        plan = make_plan(event, window, config, self._agents(host))
        requests = Requests(
            host,
            max_calls=max(config.max_calls - event.attempt + 1, 1),  # several compactions of a turn share a bound
            seconds=config.timeout_seconds,
            retry_delay_ms=config.retry_delay_ms,
        )
        writer = SummaryWriter(plan, requests, guard=config.quality_guard, retries=config.quality_retries)
        try:
            written, error = await writer.write(), ""
        except ModelAborted as aborted:
            return CompactionResult(cancel=True, reason=str(aborted) or "aborted")
        except (ModelError, TimeoutError) as failure:
            error = str(failure) or type(failure).__name__
            self._warn(host, error)
            if not _is_exceeded(event, window):
                return CompactionResult(cancel=True, reason=f"the model gave no summary: {error}")
            written = writer.by_rules()
        model = f"{turn.provider}/{turn.model}"
        return CompactionResult(written.text, details=_details(event, plan, written, requests.calls, model, error))

    @hookimpl
    def after_compaction(self, event: AfterCompaction, host: Host) -> None:
        """Queues the refresh for the next turn."""
        from lamella.text.days import human_day
        from lamella_compaction_safeguard.refresh import refresh_text

        config = self.config
        day = human_day(tz=host.turn.timezone)
        text = refresh_text(self._agents(host), config.refresh_sections, day, config.refresh_max_chars)
        if text:
            host.enqueue_event(text)

    def _agents(self, host: Host) -> str:
        """The text of AGENTS.md; one that may not be read counts as none."""
        from lamella.text.inside import Refused
        from lamella_compaction_safeguard.refresh import FILE, agents_file

        if not self.config.refresh_sections:
            return ""
        try:
            return agents_file(host.turn.workspace)
        except Refused as why:
            log.warning("%s is not read: %s", host.turn.workspace / FILE, why)
            return ""

    def _warn(self, host: Host, error: str) -> None:
        """Tell of a failing model, once in a session."""
        from lamella.types.events import Notice

        if host.turn.session_id not in self._warned:
            self._warned.add(host.turn.session_id)
            host.emit(Notice("summary_failed", f"the model gave no summary for a compaction: {error}"))


def _window_of(event: Compacting) -> int:
    """A window for hosts that do not know theirs: what was in it, at least."""
    return max(event.preparation.tokens_before + event.preparation.reserve_tokens, 1)


def _is_exceeded(event: Compacting, window: int) -> bool:
    """Whether the session cannot go on without a compaction."""
    return event.cause == "overflow" or event.preparation.tokens_before > window


def _details(event: Compacting, plan: Plan, written: Written, calls: int, model: str, error: str) -> dict[str, Any]:
    """What is stored beside the summary. The next compaction reads files, failures and identifiers again."""
    return {
        **plan.files.to_details(),
        "cause": event.cause,
        "foldedEntryIds": list(event.preparation.folded_entry_ids),
        "summarisedBy": model if written.by == "model" else written.by,
        "modelCalls": calls,
        "extractedPieces": written.extracted,
        "quality": {
            "ok": not written.reasons,
            "reasons": list(written.reasons),
            "retries": written.retries,
            "repaired": list(written.repaired),
        },
        "identifiers": [identifier.text for identifier in plan.facts.kept],
        "toolFailures": [{"callId": f.call_id, "line": f.line} for f in plan.failures.shown],
        "toolFailuresLeftOut": plan.failures.left_out,
        "leftOut": list(plan.notes),
        "quotedOnly": plan.quoted_only,
        **({"error": error} if error else {}),
    }
