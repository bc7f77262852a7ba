"""A memory, who may see it, and names for it that come from outside. Pure."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from attrs import asdict, field, frozen

from lamella.errors import UsageError
from lamella.text.segment import fold
from lamella.types.host import SHARED_CHATS, ChatType

Category: TypeAlias = Literal["preference", "fact", "decision", "entity", "other"]
CATEGORIES: tuple[Category, ...] = ("preference", "fact", "decision", "entity", "other")
FOLDER = "memories"
_LEAST_PREFIX = 4
_PREFIX = re.compile(r"[0-9a-f]{1,8}(?:-[0-9a-f]{0,4}){0,3}(?:-[0-9a-f]{0,12})?")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@frozen(slots=True)
class Memory:
    """One memory, and where it came from. Times in Unix milliseconds; `importance` is in 0..1.

    `source` is the door that it came through (`memory_store`, `capture`, `cli`, `import`, ...), `chat` the
    type of chat that it was said in. `hash` is that of the text as it is compared.
    """

    id: str
    text: str
    hash: str
    importance: float = 0.7
    category: Category | str = "other"
    created_at: int = 0
    updated_at: int = 0
    agent: str = ""
    session_key: str = ""
    session_id: str = ""
    entry_id: str = ""
    source: str = ""
    chat: str = "direct"

    @property
    def path(self) -> str:
        """Its name where a memory file is asked for."""
        return f"{FOLDER}/{self.id}"

    def to_json(self) -> dict[str, Any]:
        return {_camel(name): value for name, value in asdict(self).items() if name != "hash"}


@frozen(slots=True)
class Selection:
    """Which memories are wanted: of these `categories` (none: of any), of the session with this key or with an
    id that begins so (empty: of any), and stored at `since` (Unix milliseconds) or later."""

    categories: tuple[str, ...] = ()
    session: str = ""
    since: int = 0

    def conditions(self) -> list[str]:
        """The same as SQL conditions."""
        parts = []
        if self.categories:
            parts.append(f"category IN ({', '.join(map(quoted, self.categories))})")
        if self.session:
            wanted = quoted(self.session)
            parts.append(f"(session_key = {wanted} OR starts_with(session_id, {wanted}))")
        if self.since:
            parts.append(f"created_at >= {self.since}")
        return parts


ANY = Selection()


@frozen(slots=True)
class Reader:
    """Who looks, and what he may see: memories of these `agents` (None: of any), of one session when
    `session_key` is not empty, and only what was said in front of others when `in_public`. `only`: what of
    that he wants to see."""

    agents: frozenset[str] | None = None
    session_key: str = ""
    in_public: bool = False
    only: Selection = ANY

    def condition(self) -> str:
        """The same as an SQL condition; empty when everything may be seen."""
        parts = []
        if self.agents is not None:
            parts.append(f"agent IN ({', '.join(map(quoted, sorted(self.agents))) or quoted('')})")
        if self.session_key:
            parts.append(f"session_key = {quoted(self.session_key)}")
        if self.in_public:
            parts.append(f"chat IN ({', '.join(map(quoted, SHARED_CHATS))})")
        return " AND ".join([*parts, *self.only.conditions()])


@frozen(slots=True)
class Origin:
    """Where a new memory comes from; fields as in `Memory`."""

    agent: str
    source: str
    session_key: str = ""
    session_id: str = ""
    entry_id: str = ""
    chat: ChatType = "direct"


@frozen(slots=True)
class Tombstone:
    """What is left of a forgotten memory: enough to know it again, and none of its words.

    `vector` counts only for the embedder of that `identity`; None when there was none.
    """

    hash: str
    agent: str
    session_key: str
    forgotten_at: int
    identity: str = ""
    vector: Any = field(default=None, eq=False, repr=False)


class MemoryNotFound(UsageError, LookupError):
    """No memory has that id."""

    exit_code = 4


def new_id() -> str:
    return str(uuid.uuid4())


def text_hash(text: str) -> str:
    """The same for texts that differ in case, width, spaces and punctuation at the ends only."""
    compared = " ".join(fold(text).split()).strip(" .!。！…,;:，；：")
    return hashlib.sha256(compared.encode()).hexdigest()


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def ids_condition(ids: Iterable[str]) -> str:
    """The SQL condition that a row has one of these ids. Raises `UsageError` for what is none."""
    wanted = [checked_id(name) for name in ids]
    return f"id IN ({', '.join(map(quoted, wanted)) or quoted('')})"


def is_id(name: str) -> bool:
    return _ID.fullmatch(name) is not None


def checked_id(name: str) -> str:
    """An id in full. Raises `UsageError` for anything else."""
    if not is_id(name):
        raise UsageError(f"{_short(name)!r} is not a memory id: invalid format, expected a UUID")
    return name


def checked_prefix(name: str) -> str:
    """An id or the beginning of one, as it is stored. Raises `UsageError` for anything else."""
    text = name.strip().lower()
    if not _PREFIX.fullmatch(text) or len(text) < _LEAST_PREFIX:
        raise UsageError(
            f"{_short(name)!r} is not a memory id: invalid format, expected a UUID or at least "
            f"{_LEAST_PREFIX} characters of its beginning"
        )
    return text


def memory_of(row: Mapping[str, Any]) -> Memory:
    """A memory from a row of the table."""
    known = {name: row[name] for name in _FIELDS if row.get(name) is not None}
    return Memory(**known)


def _short(name: str) -> str:
    return name if len(name) <= 80 else name[:77] + "..."


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.title() for part in others)


_FIELDS = tuple(Memory.__slots__[: Memory.__slots__.index("chat") + 1])
