"""An agent's sessions: keys to transcripts, new sessions, listings."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from attrs import frozen

from lamella.errors import SessionError, SessionNotFound, TranscriptError
from lamella.sessions.fields import count_of, integer_of, mapping_of, number_of, strings_of
from lamella.sessions.index import IndexDamage, SessionIndex
from lamella.sessions.index_file import Sessions
from lamella.sessions.keys import SessionKey
from lamella.sessions.locks import PathLock
from lamella.sessions.transcript import SessionFile
from lamella.text.days import unix_ms
from lamella.text.files import count_lines
from lamella.types.messages import JsonObject, Usage

# More texts for the next prompt than these are not kept; the newest count.
MAX_PENDING_EVENTS = 20


@frozen(slots=True)
class Located:
    """A key's session: its entry, its transcript's path, and whether the file is there."""

    key: str
    entry: JsonObject
    path: Path
    exists: bool


class SessionStore:
    """The sessions folder of one agent."""

    def __init__(
        self,
        folder: Path,
        *,
        lock_timeout: float = 30.0,
        listener: Callable[[IndexDamage], None] = lambda _damage: None,
    ) -> None:
        self.folder = folder
        self.lock_timeout = lock_timeout
        self.index = SessionIndex(folder, timeout=lock_timeout, listener=listener)

    def locate(self, key: SessionKey) -> Located | None:
        """Where a key's session is; None when the key has none.

        Raises `SessionError` when its pointer leads outside the folder.
        """
        entry = self.index.get(key.text)
        if entry is None:
            return None
        path = self.index.transcript_path(entry)
        return Located(key.text, entry, path, path.is_file())

    def require(self, key: SessionKey) -> Located:
        """As `locate`, but raises `SessionNotFound`."""
        found = self.locate(key)
        if found is None:
            raise SessionNotFound(
                f"no session with key {key.text!r} in {self.folder}", hint="`lamella sessions list` shows the keys."
            )
        return found

    def start(self, key: SessionKey) -> Located:
        """Give a key a new session id. The file appears with the first message."""
        new = new_entry(key)
        entry = self.index.update(key.text, lambda _old: new)
        return Located(key.text, entry, self.folder / str(new["sessionFile"]), False)

    def begin(self, key: SessionKey, new: JsonObject | None = None) -> tuple[Located, bool]:
        """The session of a key that had none when we looked, and whether it is ours. One that another process
        has begun meanwhile stays: both go on in it. `new`: our entry, if not just any."""
        new = new or new_entry(key)
        entry = self.index.update(key.text, lambda old: new if old is None else old)
        path = self.index.transcript_path(entry)
        return Located(key.text, entry, path, path.is_file()), entry.get("sessionId") == new["sessionId"]

    def open(self, located: Located, *, cwd: str, whole: bool = False) -> SessionFile:
        """The transcript of a located session, or a new one with its id when there is no file yet."""
        if located.exists:
            return SessionFile.open(located.path, whole=whole)
        if os.path.lexists(located.path):  # a folder, a pipe: reading one might never end
            raise TranscriptError(located.path, "is not a regular file", hint="Move it away, or start a new session.")
        return SessionFile.create(
            located.path, session_id=str(located.entry["sessionId"]), cwd=cwd, session_key=located.key
        )

    def lock(self, located: Located) -> PathLock:
        """The transcript's lock, not yet taken."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return PathLock(located.path, timeout=self.lock_timeout)

    def rows(self, sessions: Sessions | None = None) -> list[Located]:
        """All sessions, or those of an index that was loaded already, newest first.

        Entries whose pointer leads elsewhere are left out, see `left_out`.
        """
        rows = []
        for key, entry in (self.index.load().sessions if sessions is None else sessions).items():
            try:
                path = self.index.transcript_path(entry)
            except (SessionError, ValueError):
                continue
            rows.append(Located(key, entry, path, path.is_file()))
        return sorted(rows, key=lambda r: count_of(r.entry, "updatedAt"), reverse=True)

    def left_out(self, sessions: Sessions) -> dict[str, str]:
        """The keys whose entry leads to no transcript of this folder, with the reason."""
        found = {}
        for key, entry in sessions.items():
            try:
                self.index.transcript_path(entry)
            except (SessionError, ValueError) as error:
                found[key] = str(error)
        return found


def new_entry(key: SessionKey, carried: JsonObject | None = None) -> JsonObject:
    """The entry of a session that begins now, with an id of its own. `carried`: what it has of an earlier one."""
    session_id, now = str(uuid.uuid4()), unix_ms()
    return {
        **(carried or {}),
        "sessionId": session_id,
        "sessionFile": f"{session_id}.jsonl",
        "updatedAt": now,
        "sessionStartedAt": now,
        "lastInteractionAt": now,
        "chatType": key.chat_type,
    }


@frozen(slots=True)
class StoredRecord:
    """A session's entry in sessions.json, as a running session uses it."""

    index: SessionIndex
    key: str
    session_id: str

    def read(self) -> JsonObject:
        return self.index.get(self.key) or {}

    def patch(self, fields: JsonObject) -> None:
        """Set fields without counting it as activity; None removes one."""
        self.index.patch(self.key, fields, touch=False)

    def enqueue(self, text: str) -> None:
        """Queue a text for the next prompt.

        Blank ones and those that wait already are passed over. Of more than `MAX_PENDING_EVENTS` the
        oldest go.
        """

        def add(entry: dict[str, Any] | None) -> dict[str, Any] | None:
            waiting = strings_of(entry or {}, "pendingEvents")
            if not text.strip() or text in waiting:
                return entry
            return {**(entry or {}), "pendingEvents": [*waiting, text][-MAX_PENDING_EVENTS:]}

        self.index.update(self.key, add)

    def dequeue(self, texts: Collection[str]) -> None:
        """Take these texts out of the queue."""

        def cut(entry: dict[str, Any] | None) -> dict[str, Any] | None:
            if entry is None:
                return None
            left = [text for text in strings_of(entry, "pendingEvents") if text not in texts]
            kept = {k: v for k, v in entry.items() if k != "pendingEvents"}
            return {**kept, "pendingEvents": left} if left else kept

        self.index.update(self.key, cut)

    def finish(self, fields: JsonObject, usage: Usage, *, compactions: int, entries: int) -> None:
        """Store a turn's fields and add its usage, compactions and new entries to the totals.

        Nothing is stored when the key has been removed, or given to another session, meanwhile.
        """

        def change(entry: dict[str, Any] | None) -> dict[str, Any] | None:
            if entry is None or entry.get("sessionId") != self.session_id:
                return entry
            merged = {k: v for k, v in {**entry, **fields}.items() if v is not None}
            merged["lifetimeUsage"] = _added(merged, usage)
            merged["compactionCount"] = count_of(merged, "compactionCount") + compactions
            known = integer_of(merged, "transcriptEntries")
            merged["transcriptEntries"] = self._count(merged) if known is None else known + entries
            merged["updatedAt"] = unix_ms()
            return merged

        self.index.update(self.key, change)

    def spend(self, usage: Usage) -> None:
        """Add a model call outside the conversation to the totals, as `finish` does with a turn's."""
        if usage == Usage():
            return

        def change(entry: dict[str, Any] | None) -> dict[str, Any] | None:
            if entry is None or entry.get("sessionId") != self.session_id:
                return entry
            return {**entry, "lifetimeUsage": _added(entry, usage)}

        self.index.update(self.key, change)

    def _count(self, entry: JsonObject) -> int | None:
        """How many entries the transcript of an entry has that nobody has counted yet."""
        try:
            return max(count_lines(self.index.transcript_path(entry)) - 1, 0)  # the first line is the header
        except OSError:
            return None


def _added(entry: JsonObject, usage: Usage) -> dict[str, Any]:
    """The totals of an entry with this usage."""
    totals = dict(mapping_of(entry, "lifetimeUsage"))
    for name, value in (
        ("input", usage.input),
        ("output", usage.output),
        ("cacheRead", usage.cache_read),
        ("cacheWrite", usage.cache_write),
        ("cost", usage.cost.total),
    ):
        totals[name] = (number_of(totals, name) or 0) + value
    return totals
