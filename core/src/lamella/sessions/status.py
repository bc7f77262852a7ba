"""How full a session is, read from its entry in sessions.json and never from a transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from lamella.config.budget import budget
from lamella.config.schema import Settings
from lamella.sessions.fields import count_of, integer_of, mapping_of, string_of
from lamella.sessions.store import Located
from lamella.sessions.watch import CompactionNote, Finding, findings, notes_of

WATCH_SHARE = 0.70
HIGH_SHARE = 0.80


@frozen(slots=True)
class SessionStatus:
    """Numbers in tokens unless their name says otherwise; None is unknown."""

    key: str
    session_id: str
    updated_at: int | None
    model: str
    used_tokens: int | None
    fresh: bool
    window_tokens: int | None
    reserve_tokens: int | None
    to_compaction: int | None
    to_flush: int | None
    compaction_count: int
    last_compaction_cause: str | None
    memory_flush_at: int | None
    memory_flush_compaction_count: int | None
    last_flush_outcome: str | None
    turns: int | None
    bytes_per_turn: int | None
    compactions: tuple[CompactionNote, ...]
    findings: tuple[Finding, ...]
    transcript_bytes: int | None
    transcript_entries: int | None
    totals: Mapping[str, Any]
    memory: Mapping[str, Any]
    last_error: str | None
    transcript: str
    label: str = ""

    @property
    def share(self) -> float | None:
        """Used part of the window, 0..1 (more when it is overfull)."""
        if self.used_tokens is None or not self.window_tokens:
            return None
        return self.used_tokens / self.window_tokens

    @property
    def level(self) -> str:
        share = self.share
        if share is None:
            return "unknown"
        return "ok" if share < WATCH_SHARE else "watch" if share <= HIGH_SHARE else "high"

    def to_json(self) -> dict[str, Any]:
        share = self.share
        return {
            "key": self.key,
            "sessionId": self.session_id,
            "updatedAt": self.updated_at,
            "model": self.model,
            "usedTokens": self.used_tokens,
            "fresh": self.fresh,
            "windowTokens": self.window_tokens,
            "share": round(share, 4) if share is not None else None,
            "level": self.level,
            "reserveTokens": self.reserve_tokens,
            "tokensToFlush": self.to_flush,
            "tokensToCompaction": self.to_compaction,
            "compactionCount": self.compaction_count,
            "lastCompactionCause": self.last_compaction_cause,
            "memoryFlushAt": self.memory_flush_at,
            "memoryFlushCompactionCount": self.memory_flush_compaction_count,
            "lastFlushOutcome": self.last_flush_outcome,
            "turns": self.turns,
            "bytesPerTurn": self.bytes_per_turn,
            "compactions": [note.to_json() for note in self.compactions],
            "findings": [finding.to_json() for finding in self.findings],
            "transcriptBytes": self.transcript_bytes,
            "transcriptEntries": self.transcript_entries,
            "totals": dict(self.totals),
            "memory": dict(self.memory),
            "lastError": self.last_error,
            "transcript": self.transcript,
            "label": self.label,
        }


def session_status(row: Located, settings: Settings, memory: Mapping[str, Any]) -> SessionStatus:
    """The status of a session."""
    entry = row.entry
    used, window = integer_of(entry, "usedTokens"), integer_of(entry, "contextTokens")
    fresh = entry.get("totalTokensFresh") is not False
    if used is None and fresh:
        used = integer_of(entry, "totalTokens")  # an entry that OpenClaw wrote
    reserve = integer_of(entry, "reserveTokens")
    limits = budget(settings.compaction, window) if window is not None else None
    if reserve is None and limits is not None:
        reserve = limits.reserve
    left = None if used is None or window is None or reserve is None else window - reserve - used
    flush_at = limits.flush_at if limits is not None else 0
    compactions = tuple(notes_of(entry))
    model = "/".join(str(entry[k]) for k in ("modelProvider", "model") if entry.get(k))
    return SessionStatus(
        key=row.key,
        session_id=str(entry.get("sessionId") or ""),
        updated_at=integer_of(entry, "updatedAt"),
        model=model,
        used_tokens=used,
        fresh=fresh,
        window_tokens=window,
        reserve_tokens=reserve,
        to_compaction=left,
        to_flush=flush_at - used if flush_at and used is not None else None,
        compaction_count=count_of(entry, "compactionCount"),
        last_compaction_cause=string_of(entry, "lastCompactionCause"),
        memory_flush_at=integer_of(entry, "memoryFlushAt"),
        memory_flush_compaction_count=integer_of(entry, "memoryFlushCompactionCount"),
        last_flush_outcome=string_of(entry, "lastFlushOutcome"),
        turns=integer_of(entry, "turns"),
        bytes_per_turn=_bytes_per_turn(entry),
        compactions=compactions,
        findings=tuple(findings(compactions, count_of(entry, "silentLeaks"))),
        transcript_bytes=integer_of(entry, "transcriptBytes"),
        transcript_entries=integer_of(entry, "transcriptEntries"),
        totals=mapping_of(entry, "lifetimeUsage"),
        memory=memory,
        last_error=string_of(entry, "lastError"),
        transcript=str(row.path),
        label=string_of(entry, "label") or "",
    )


def _bytes_per_turn(entry: Mapping[str, Any]) -> int | None:
    """How much a turn adds to the transcript, on average of the turns that were counted."""
    turns, size = integer_of(entry, "turns"), integer_of(entry, "transcriptBytes")
    if not turns or size is None:
        return None
    return (size - count_of(entry, "turnsFromBytes")) // turns
