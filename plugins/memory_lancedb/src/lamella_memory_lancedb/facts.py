"""Numbers on memories, and lines of JSON that hold them all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from lamella.errors import UsageError
from lamella.types.host import SHARED_CHATS, ChatType
from lamella_memory_lancedb.config import SECTION, Config
from lamella_memory_lancedb.keeping import clean_text
from lamella_memory_lancedb.store.memory import CATEGORIES, Memory, Origin

# Unix milliseconds of the last day but one of the year 9999: a day later, it is the year 10000 in some zones.
_LATEST = 253_402_214_399_999


@frozen(slots=True)
class Stats:
    """Numbers on memories: how many in all, by category, by source, and how many lack a vector."""

    total: int
    by_category: Mapping[str, int]
    by_source: Mapping[str, int]
    without_vector: int
    forgotten: int

    @classmethod
    def of(cls, memories: list[Memory], without_vector: int, forgotten: int) -> Stats:
        return cls(
            len(memories),
            dict(sorted(Counter(str(m.category) for m in memories).items())),
            dict(sorted(Counter(m.source for m in memories).items())),
            without_vector,
            forgotten,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "byCategory": dict(self.by_category),
            "bySource": dict(self.by_source),
            "withoutVector": self.without_vector,
            "forgotten": self.forgotten,
        }


@frozen(slots=True)
class Line:
    """A memory from a line of an export, before it is stored: its text, and what is kept of the rest."""

    text: str
    category: str
    importance: float
    origin: Origin
    created_at: int | None = None


def export_line(memory: Memory) -> str:
    return json.dumps(memory.to_json(), ensure_ascii=False)


def import_lines(lines: Iterable[str], agent: str) -> Iterator[Line]:
    """The memories of an export; `agent` becomes their owner. Raises `UsageError` with the line's number for
    what is none."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _import_line(number, line, agent)


def switched_off(config: Config, meaning: bool) -> list[dict[str, str]]:
    """What the settings have switched off, and what switches it on."""
    switches = {
        "recall before a turn": (config.auto_recall, "auto_recall = true"),
        "capture after a turn": (config.auto_capture, "auto_capture = true"),
        "search by meaning": (meaning, 'embedder = "static"'),
    }
    return [{"what": what, "turnOn": f"{SECTION}.{how}"} for what, (on, how) in switches.items() if not on]


def _import_line(number: int, line: str, agent: str) -> Line:
    def expected(what: str) -> UsageError:
        return UsageError(f"line {number}: expected {what}")

    try:
        raw = json.loads(line)
    except ValueError:
        raise expected("an object of JSON") from None
    if not isinstance(raw, dict):
        raise expected("an object of JSON")
    text, category, importance = raw.get("text"), raw.get("category", "other"), raw.get("importance", 0.7)
    if not isinstance(text, str) or not text.strip():
        raise expected("a text that is not empty, as text")
    try:
        text = clean_text(text)
    except UsageError as error:
        raise UsageError(f"line {number}: {error}") from None
    if category not in CATEGORIES:
        raise expected(f"one of {', '.join(CATEGORIES)}, as category")
    if isinstance(importance, bool) or not isinstance(importance, (int, float)) or not 0 <= importance <= 1:
        raise expected("a number of 0 to 1, as importance")
    created = raw.get("createdAt")
    if created is not None and (type(created) is not int or not 0 <= created <= _LATEST):
        raise expected("Unix milliseconds, as createdAt")
    key, session, entry = (str(raw.get(name) or "") for name in ("sessionKey", "sessionId", "entryId"))
    chat: ChatType = raw["chat"] if raw.get("chat") in SHARED_CHATS else "direct"
    origin = Origin(agent, "import", key, session, entry, chat)
    return Line(text, category, float(importance), origin, created)
