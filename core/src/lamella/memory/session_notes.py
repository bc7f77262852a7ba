"""Notes of sessions: which session a note in memory quotes, by its head.

lamella's notes and those of OpenClaw (2026.3) name the session's key below their title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lamella.errors import LamellaError, MemoryPathError
from lamella.memory.paths import FOLDER, MemoryFile
from lamella.memory.reading import open_plain
from lamella.memory.scan import scan_memory
from lamella.sessions.keys import parse_key
from lamella.text.files import decode_text
from lamella.types.host import SHARED_CHATS

_HEAD_BYTES = 2048
_NAME = re.compile(rf"{FOLDER}/(?:.*/)?\d{{4}}-\d\d-\d\d-[^/]+\.md\Z")
# "- Session key: `agent:main:main`"; in OpenClaw "- **Session Key**: agent:main:main".
_KEY = re.compile(r"# Session\b[^\n]*\n\s*- (?:\*\*Session Key\*\*|Session key): `?([^`\n]+)", re.IGNORECASE)


def key_line(session_key: str) -> str:
    """The line below a note's title that names its session."""
    return f"- Session key: `{session_key}`"


def key_in(text: str) -> str | None:
    """The key of the session that a note quotes; None for other notes."""
    named = _KEY.match(text.lstrip("\ufeff").replace("\r\n", "\n"))
    return named[1].strip() if named else None


def is_private(file: MemoryFile) -> bool:
    """Whether a file is the note of a session that only one person read. One that cannot be read counts as one."""
    try:
        opened = open_plain(file)
    except (MemoryPathError, OSError):
        return True
    if opened is None:
        return False
    with opened:
        key = key_in(decode_text(opened.read(_HEAD_BYTES)).text)
    return key is not None and _is_of_one(key)


def private_notes(workspace: Path) -> Iterator[str]:
    """The names of all private notes of sessions, found by their names: `memory/<day>-<words>.md`.

    Raises `UsageError` when the workspace is missing.
    """
    for found in scan_memory(workspace).files:
        if _NAME.match(found.name) and is_private(found.file):
            yield found.name


def _is_of_one(session_key: str) -> bool:
    try:
        return parse_key(session_key).chat_type not in SHARED_CHATS
    except LamellaError:  # `main`, `global` and other short forms of OpenClaw
        return True
