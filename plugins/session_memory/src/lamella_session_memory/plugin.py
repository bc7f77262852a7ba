"""The plugin: a note in memory of each session that is reset."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from lamella.errors import LamellaError, MemoryConflict
from lamella.plugins import hookimpl
from lamella.text.days import human_day, utc_now
from lamella_session_memory.config import Config as _Config

if TYPE_CHECKING:
    from lamella.types.hooks import RegistrationContext, SessionEnd
    from lamella.types.host import Host
    from lamella.types.memory import MemoryService, MemoryWrite
    from lamella.types.tools import Tool
    from lamella_session_memory.conversation import Said

# The model of rules without weights: it answers, but knows no names.
_NO_MODEL = "offline"
_MOST_NOTES = 1000  # of one name on a day
_SLUG_TOKENS = 200
_SYNC_SECONDS = 20.0

log = logging.getLogger(__name__)


class SessionMemory:
    """Writes what was last said before a reset into `memory/<day>-<slug>.md`."""

    name = "session-memory"
    priority = 0
    Config = _Config

    def __init__(self, config: _Config, clock: Callable[[], datetime] = utc_now) -> None:
        self.config = config
        self._clock = clock
        self._memory: MemoryService | None = None

    @hookimpl
    def register_tools(self, context: RegistrationContext) -> Iterable[Tool]:
        """Offers none; it is here that memory is handed out."""
        self._memory = context.memory
        return ()

    @hookimpl
    async def session_end(self, event: SessionEnd, host: Host) -> None:
        """Write the note. What goes wrong is told, and keeps nobody from a new session."""
        if event.reason not in self.config.apply_on or not _is_of_people(event.session_key):
            return
        try:
            written = await self._write(event, host)
        except (LamellaError, OSError) as error:
            from lamella.types.events import Notice

            log.warning("no note of session %s: %s", event.session_id, error)
            host.emit(Notice("session_note_failed", f"no note of the session was written: {error}"))
        else:
            if written is not None and self._memory is not None:
                await self._index(self._memory, written)

    async def _write(self, event: SessionEnd, host: Host) -> str | None:
        """The path of the note; None when nothing was said."""
        import asyncio

        from lamella_session_memory.conversation import find_transcript, read_messages, said_in
        from lamella_session_memory.note import Note, find_same

        transcript = find_transcript(event.transcript)
        if transcript is None:
            return None
        said = said_in(await asyncio.to_thread(read_messages, transcript), self.config.message_max_chars)
        quoted = said[-self.config.messages :]
        if not quoted:
            return None
        at, timezone = self._clock(), host.turn.timezone
        note = Note(event.session_key, event.session_id, event.reason, at, quoted, len(said))
        day, text = human_day(at, timezone), note.text(timezone)
        if (same := await asyncio.to_thread(find_same, host.turn.workspace, day, text)) is not None:
            return same  # of a reset that was killed after it
        return (await _create(host, day, await self._slug(quoted, at, host), text)).path

    async def _slug(self, said: Sequence[Said], at: datetime, host: Host) -> str:
        """The note's name: from the model, from the text without one, and else the time."""
        from lamella_session_memory.note import local_time
        from lamella_session_memory.slug import slug_of_text

        name = ""
        if self.config.slug == "model" and host.turn.provider != _NO_MODEL:
            name = await self._ask(said, host)
        elif self.config.slug != "time":
            name = slug_of_text(said)
        return name or local_time(at, host.turn.timezone)

    async def _ask(self, said: Sequence[Said], host: Host) -> str:
        from lamella.types.messages import text_of
        from lamella_session_memory.slug import slug_of_answer, slug_prompt

        try:
            reply = await host.complete(
                slug_prompt(said), max_tokens=_SLUG_TOKENS, timeout=self.config.slug_timeout_seconds
            )
        except (LamellaError, TimeoutError) as error:
            log.warning("the model gave no name for a note: %s", str(error) or type(error).__name__)
            return ""
        return slug_of_answer(text_of(reply.content))

    @staticmethod
    async def _index(memory: MemoryService, path: str) -> None:
        """Bring the index up to date; a long sync goes on by itself."""
        import asyncio  # not light, and most commands end no session

        try:
            await asyncio.wait_for(asyncio.to_thread(memory.sync), _SYNC_SECONDS)
        except (LamellaError, TimeoutError) as error:
            log.warning("%s was written, but is not indexed yet: %s", path, str(error) or type(error).__name__)


async def _create(host: Host, day: str, slug: str, text: str) -> MemoryWrite:
    """Write a note under the first free name. Raises `LamellaError`."""
    from lamella_session_memory.note import note_path

    for number in range(1, _MOST_NOTES):
        try:
            return await host.write_memory(note_path(day, slug, number), text, mode="create")
        except MemoryConflict:
            continue
    raise LamellaError(f"{note_path(day, slug)}: there are {_MOST_NOTES} notes of this name")


def _is_of_people(session_key: str) -> bool:
    """Whether people take part in a session: notes of sub-agents and schedules would bury theirs."""
    from lamella.sessions.keys import parse_key

    return parse_key(session_key).kind == "main"
