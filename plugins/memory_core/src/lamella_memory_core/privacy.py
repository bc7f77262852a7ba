"""What of memory a chat may see: lasting facts and what was said in private are not for those who read along."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from lamella.errors import MemoryPathError
from lamella.memory.paths import CURATED, CURATED_LOWER
from lamella.memory.roots import readable_file
from lamella.memory.session_notes import is_private, private_notes
from lamella.types.host import SHARED_CHATS, ChatType
from lamella.types.memory import SearchQuery
from lamella_memory_core.config import Config

_CURATED = (CURATED, CURATED_LOWER)
_NOTES = ("memory",)


def sees_curated(chat_type: ChatType, config: Config) -> bool:
    """Whether a chat of this type may see `MEMORY.md`."""
    return config.curated_in_groups or chat_type not in SHARED_CHATS


def sees_sessions(chat_type: ChatType, config: Config) -> bool:
    """Whether a chat of this type may see transcripts, and notes of private sessions."""
    return config.sessions_in_groups or chat_type not in SHARED_CHATS


def visible_to(query: SearchQuery, chat_type: ChatType, config: Config, workspace: Path) -> SearchQuery:
    """The query without what a chat of this type must not see. Raises `UsageError` for a missing workspace."""
    if not sees_curated(chat_type, config):
        query = evolve(query, exclude=(*query.exclude, *_CURATED))
    if not sees_sessions(chat_type, config):
        query = evolve(query, sources=_NOTES, exclude=(*query.exclude, *private_notes(workspace)))
    return query


def check_readable(path: str, chat_type: ChatType, config: Config, workspace: Path) -> None:
    """Raises `MemoryPathError` for the path of a file that a chat of this type must not see."""
    curated = path.lower() == CURATED_LOWER and not sees_curated(chat_type, config)
    said = not sees_sessions(chat_type, config) and is_private(readable_file(workspace, path, config.extra_paths))
    if curated or said:
        raise MemoryPathError(f"{path} is not shown in chats that others read")
