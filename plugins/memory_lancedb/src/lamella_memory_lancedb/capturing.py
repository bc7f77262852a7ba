"""Capture after a turn: what users said since the last time, kept when it is of lasting interest."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from lamella.errors import LamellaError
from lamella.memory.errand import Errand, StillRunning
from lamella.text.recalled import without_blocks
from lamella.types.entries import Entry
from lamella.types.events import Notice
from lamella.types.hooks import AgentEnded
from lamella.types.host import SHARED_CHATS, Host
from lamella.types.messages import UserMessage, text_of
from lamella_memory_lancedb.capture.signs import category_of, is_worth_keeping
from lamella_memory_lancedb.keeping import Kept
from lamella_memory_lancedb.service import Memories
from lamella_memory_lancedb.store.memory import Origin

CURSOR = "memory-lancedb.captured"
IMPORTANCE = 0.7
_SECONDS = 50.0  # within the time limit of the hook
log = logging.getLogger(__name__)


@frozen(slots=True)
class Said:
    """What a user said: the entry that holds it, and its text without recalled blocks."""

    entry_id: str
    text: str


def said_since(entries: Sequence[Entry], cursor: object) -> tuple[Said, ...]:
    """What users said behind the entry that the cursor names; all of it when that entry is not there, as
    after a compaction. Pure."""
    last = cursor.get("entry") if isinstance(cursor, Mapping) else None
    places = [place for place, entry in enumerate(entries) if entry.id == last]
    fresh = entries[places[-1] + 1 :] if places else entries
    return tuple(_said(fresh))


class Capturer:
    """Implements the setting `auto_capture`."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def turn_ended(self, event: AgentEnded, host: Host) -> None:
        """Keep what is worth it, and remember in the transcript how far that went.

        What a failed turn's user said is looked at when a later turn succeeds. Prompts of heartbeats and
        schedules are nobody's words, and what others say in a group is not the user's.
        """
        turn = host.turn
        if turn.chat_type in SHARED_CHATS and not self._memories.config.capture_in_groups:
            return
        fresh = said_since(host.entries(), host.latest_entry(CURSOR))
        prompts = 0 if turn.trigger == "user" else sum(isinstance(m, UserMessage) for m in event.messages)
        said = fresh[: max(len(fresh) - prompts, 0)]
        if not fresh or (said and not event.success):
            return
        config = self._memories.config
        worth = [s for s in said if is_worth_keeping(s.text, config.capture_max_chars, config.capture_triggers)]
        origins = [
            Origin(turn.agent_id, "capture", turn.session_key, turn.session_id, s.entry_id, turn.chat_type)
            for s in worth
        ]
        if worth:
            try:
                kept = await Errand(lambda: self._keep(worth, origins), "lamella-capture").outcome(_SECONDS)
            except StillRunning:
                host.emit(Notice("capture_late", f"capturing takes more than {_SECONDS:g} s; it goes on"))
                return
            except LamellaError as error:
                self._memories.note_error(error)
                host.emit(Notice("capture_failed", f"nothing was captured: {error}"))
                return
            created = [k.memory.id for k in kept if k.action == "created" and k.memory is not None]
            if created:
                host.emit(Notice("captured", f"{len(created)} memories captured", {"ids": created}))
        host.append_entry(CURSOR, {"entry": fresh[-1].entry_id})

    def _keep(self, worth: Sequence[Said], origins: Sequence[Origin]) -> list[Kept]:
        keep = self._memories.keeper.keep
        return [
            keep(s.text, origin, category=category_of(s.text), importance=IMPORTANCE, wanted=False)
            for s, origin in zip(worth, origins, strict=True)
        ]


def _said(entries: Sequence[Entry]) -> Iterator[Said]:
    for entry in entries:
        if entry.role == "user" and isinstance(message := entry.message, UserMessage):
            text = without_blocks(text_of(message.content))
            if text:
                yield Said(entry.id, text)
