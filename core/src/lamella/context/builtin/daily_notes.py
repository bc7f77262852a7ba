"""The notes of the last days at the beginning of a session that was asked for with a bare `/new` or
`/reset`: the agent knows them without having to look.

They are a message of the transcript, before the first prompt, so the system prompt stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from lamella.config.schema import between, each_of, setting
from lamella.context.daily_notes import note_names, prelude
from lamella.plugins import hookimpl
from lamella.sessions.keys import parse_key
from lamella.text.days import human_day
from lamella.text.inside import Refused, read_inside
from lamella.types.hooks import SessionStart
from lamella.types.host import PRIVATE_CHATS, Host, TurnInfo

log = logging.getLogger(__name__)


@frozen(slots=True)
class DailyNotesConfig:
    """Settings of the plugin, with their defaults."""

    apply_on: tuple[str, ...] = setting(
        ("new", "reset"),
        "Beginnings of a session (new: the key's first one, reset) that get the notes.",
        check=each_of("new", "reset"),
    )
    days: int = setting(2, "How many days back, today included.", check=between(1, 14))
    file_max_bytes: int = setting(16_384, "Most bytes that are read of one note, from its end.", check=between(1))
    file_max_chars: int = setting(1_200, "Most characters of one note; its end is kept.", check=between(1))
    total_max_chars: int = setting(2_800, "Most characters of all notes together.", check=between(1))


class DailyNotes:
    """Begins a new session with the notes of the last days."""

    name = "daily-notes"
    Config = DailyNotesConfig

    def __init__(self, config: DailyNotesConfig) -> None:
        self.config = config

    @hookimpl
    def session_start(self, event: SessionStart, host: Host) -> None:
        if not event.bare or event.reason not in self.config.apply_on or not _is_private(host.turn):
            return
        names = note_names(human_day(tz=host.turn.timezone), self.config.days)
        notes = self._read(host.turn.workspace, names)
        text = prelude(notes, file_max=self.config.file_max_chars, total_max=self.config.total_max_chars)
        if text:
            host.enqueue_event(text)

    def _read(self, workspace: Path, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for name in names:
            try:
                text = read_inside(workspace, workspace / name, self.config.file_max_bytes, only_end=True)
            except Refused as error:
                log.warning("note %s is left out: %s", name, error)
                continue
            if text is not None:
                yield name, text


def _is_private(turn: TurnInfo) -> bool:
    """Whether the session is the user's own: notes are no business of groups, sub-agents or schedules."""
    return turn.chat_type in PRIVATE_CHATS and turn.trigger == "user" and parse_key(turn.session_key).kind == "main"
