"""The reminder after a compaction: rules of AGENTS.md, with today's date filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import evolve

from lamella.text.inside import read_inside
from lamella.types.messages import CustomMessage, Message
from lamella_compaction_safeguard.sections import is_default, rules

FILE = "AGENTS.md"
_MAX_BYTES = 2 * 1024 * 1024
_DATE = "YYYY-MM-DD"
_TITLE = "[Post-compaction context refresh]"
_REFRESH = re.compile(rf"^{re.escape(_TITLE)}$.*?^Today is \d{{4}}-\d{{2}}-\d{{2}}\.$", re.DOTALL | re.MULTILINE)
_STARTUP = (
    "The conversation was just compacted. Its summary is a hint and does not stand in for the startup sequence: read "
    "the files that it requires before you answer."
)


def agents_file(workspace: Path) -> str:
    """The text of the workspace's AGENTS.md; empty when there is none. Raises `Refused`."""
    return read_inside(workspace, workspace / FILE, _MAX_BYTES) or ""


def without_refreshes(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Messages without the text of earlier reminders: it was not said, and the next one is made anew."""
    return tuple(map(_without_refresh, messages))


def _without_refresh(message: Message) -> Message:
    if not isinstance(message, CustomMessage) or not isinstance(message.content, str):
        return message
    rest = _REFRESH.sub("", message.content).strip()
    return message if rest == message.content.strip() else evolve(message, content=rest)


def refresh_text(markdown: str, names: Sequence[str], day: str, max_chars: int) -> str:
    """What the next turn is told after a compaction; empty when none of the sections is there.

    `day` is today's date where the user is. It holds no time of day, so that two compactions on one
    day give the same text.
    """
    content = rules(markdown, names, max_chars)
    if not content:
        return ""
    if is_default(names):
        about, head = _STARTUP, f"Critical rules from {FILE}:"
    else:
        listed = ", ".join(names)
        about = f"The conversation was just compacted. These sections of {FILE} hold on: {listed}."
        head = f"Injected sections from {FILE} ({listed}):"
    return "\n\n".join([_TITLE, about, f"{head}\n\n{content.replace(_DATE, day)}", f"Today is {day}."])
