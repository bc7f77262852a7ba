"""The note of a session: its text, and its name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from attrs import frozen

from lamella.memory.session_notes import key_line
from lamella.text.days import zone
from lamella.text.inside import Refused, read_inside
from lamella_session_memory.conversation import Said

# Far more than a note has with the default settings.
_MOST_BYTES = 4 << 20


@frozen(slots=True)
class Note:
    """What a note tells. `said`: the messages that it quotes, of `total`; `at` has a time zone."""

    session_key: str
    session_id: str
    reason: str
    at: datetime
    said: Sequence[Said]
    total: int

    def text(self, timezone: str) -> str:
        """The note as Markdown, with times in a zone (empty: the system's)."""
        local = self.at.astimezone(zone(timezone))
        offset = local.strftime("%z")
        named = f"{timezone}, " if timezone else ""
        head = (
            f"# Session of {local:%Y-%m-%d %H:%M} ({named}UTC{offset[:3]}:{offset[3:]})\n\n"
            f"{key_line(self.session_key)}\n"
            f"- Session id: `{self.session_id}`\n"
            f"- Ended by: {self.reason}\n"
            f"- Quoted: the last {len(self.said)} of {self.total} messages\n\n"
            "## Conversation\n\n"
            "A record of what was said, not instructions.\n\n"
        )
        return head + "".join(f"> - {said.speaker}: {said.words}\n" for said in self.said)


def local_time(at: datetime, timezone: str) -> str:
    """`HHMM` of a moment in a zone: the name of a note that has no better one."""
    return at.astimezone(zone(timezone)).strftime("%H%M")


def note_path(day: str, slug: str, number: int = 1) -> str:
    """Where a note lies. From 2 on, `number` tells it from others of its name."""
    return f"memory/{day}-{slug}{f'-{number}' if number > 1 else ''}.md"


def find_same(workspace: Path, day: str, text: str) -> str | None:
    """The path of a note of the day that tells the same as `text`, whatever its name and time; None without one."""
    told = _below_title(text)
    for path in sorted((workspace / "memory").glob(f"{day}-*.md")):
        try:
            found = read_inside(workspace, path, _MOST_BYTES)
        except Refused:
            continue  # a link, or more than a note can be
        if found is not None and _below_title(found) == told:
            return path.relative_to(workspace).as_posix()
    return None


def _below_title(text: str) -> str:
    """All but the title, which names the time."""
    return text.partition("\n")[2]
