"""Older transcript versions, brought to version 3 in memory.

1 -> 2: entries get ids and parent links (a plain chain); a compaction's numeric
`firstKeptEntryIndex` (counted with the header at 0) becomes `firstKeptEntryId`.
2 -> 3: the message role `hookMessage` becomes `custom`.

Ids are derived from the session id and the line, so that reading twice gives the same ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from lamella.types.messages import JsonObject

CURRENT_VERSION = 3


def version_of(header: JsonObject) -> int:
    """A header's version; missing or unreadable means 1."""
    version = header.get("version")
    return version if isinstance(version, int) and not isinstance(version, bool) else 1


def migrate(header: JsonObject, objects: Sequence[JsonObject]) -> tuple[JsonObject, list[dict[str, Any]]]:
    """Header and entry objects at version 3, as new objects; newer versions are returned as they are."""
    version = version_of(header)
    entries = [dict(o) for o in objects]
    if version >= CURRENT_VERSION:
        return header, entries
    if version < 2:
        entries = _chain(str(header.get("id") or ""), entries)
    for entry in entries:
        message = entry.get("message")
        if isinstance(message, dict) and message.get("role") == "hookMessage":
            entry["message"] = {**message, "role": "custom"}
    return {**header, "version": CURRENT_VERSION}, entries


def _chain(session_id: str, objects: Sequence[JsonObject]) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    used: set[str] = set()
    for line, source in enumerate(objects, start=1):
        entry = dict(source)
        entry["id"] = _derived_id(session_id, line, used)
        entry["parentId"] = entries[-1]["id"] if entries else None
        if entry.get("type") == "compaction" and "firstKeptEntryIndex" in entry:
            index = entry.pop("firstKeptEntryIndex")
            # Only entries before the compaction can be kept; anything else keeps nothing.
            if isinstance(index, int) and not isinstance(index, bool) and 1 <= index <= len(entries):
                entry["firstKeptEntryId"] = entries[index - 1]["id"]
        entries.append(entry)
    return entries


def _derived_id(session_id: str, line: int, used: set[str]) -> str:
    digest = hashlib.sha256(f"{session_id}:{line}".encode()).hexdigest()
    length = 8
    while digest[:length] in used:
        length += 1
    used.add(digest[:length])
    return digest[:length]
