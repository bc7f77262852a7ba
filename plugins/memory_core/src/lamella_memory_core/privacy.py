"""What of memory a chat may see: lasting facts and transcripts are the user's, and not for those who read along."""

from __future__ import annotations

from attrs import evolve

from lamella.errors import MemoryPathError
from lamella.memory.paths import CURATED, CURATED_LOWER
from lamella.types.host import SHARED_CHATS, ChatType
from lamella.types.memory import SearchQuery
from lamella_memory_core.config import Config

_CURATED = (CURATED, CURATED_LOWER)
_NOTES = ("memory",)


def sees_curated(chat_type: ChatType, config: Config) -> bool:
    """Whether a chat of this type may see `MEMORY.md`."""
    return config.curated_in_groups or chat_type not in SHARED_CHATS


def visible_to(query: SearchQuery, chat_type: ChatType, config: Config) -> SearchQuery:
    """The query without what a chat of this type must not see."""
    if not sees_curated(chat_type, config):
        query = evolve(query, exclude=(*query.exclude, *_CURATED))
    if chat_type in SHARED_CHATS and not config.sessions_in_groups:
        query = evolve(query, sources=_NOTES)
    return query


def check_readable(path: str, chat_type: ChatType, config: Config) -> None:
    """Raises `MemoryPathError` for the path of a file that a chat of this type must not see."""
    if path.lower() == CURATED_LOWER and not sees_curated(chat_type, config):
        raise MemoryPathError(f"{path} is not shown in chats that others read")
