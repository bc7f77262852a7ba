"""Giving a key its first session, or another one in the place of the one it has."""

from __future__ import annotations

import logging
from pathlib import Path

from lamella.errors import LamellaError
from lamella.sessions.index_file import SessionEntry
from lamella.sessions.keys import SessionKey, parse_key
from lamella.sessions.reset import carried_over
from lamella.sessions.store import Located, SessionStore, new_entry
from lamella.sessions.transcript import SessionFile
from lamella.sessions.upkeep import replace_session
from lamella.types.messages import JsonObject

# Marks a thread for which it was decided whether it begins as a copy: it is decided once.
FORKED = "forkedFromParent"

log = logging.getLogger(__name__)


def first_session(store: SessionStore, key: SessionKey, *, cwd: str, fork_max_tokens: int) -> tuple[Located, bool]:
    """The session of a key that had none when we looked, and whether it is ours (see `SessionStore.begin`).

    A thread begins as a copy of the branch that the session above it is on, unless that takes more than
    `fork_max_tokens` (0: no limit) or cannot be read; then it begins empty.
    """
    if key.thread_parent is None:
        return store.begin(key)
    entry = {**new_entry(key), FORKED: True}
    copy = store.folder / str(entry["sessionFile"])
    parent = store.locate(parse_key(key.thread_parent))
    if parent is not None and parent.exists and not 0 < fork_max_tokens < _tokens(parent.entry):
        _copy(parent.path, copy, cwd=cwd, session_id=str(entry["sessionId"]), session_key=key.text)
    located, ours = store.begin(key, entry)
    if not ours:
        copy.unlink(missing_ok=True)
    return located, ours


def another_session(store: SessionStore, key: SessionKey, old: Located, *, asked_for: bool) -> Located:
    """A new session for a key; the transcript of the `old` one, whose lock is held, is put aside.

    `asked_for`: by a person, so that what they chose stays. A transcript that cannot be renamed stays where it is.
    Raises `SessionError` when the key has another session by now, or sessions.json cannot be written.
    """

    def renewed(entry: SessionEntry) -> SessionEntry:
        return dict(new_entry(key, carried_over(entry, asked_for=asked_for)))

    try:
        replace_session(store, old, renewed)
    except OSError as error:
        if store.require(key).path == old.path:
            raise
        log.warning("%s was not put aside: %s", old.path.name, error)
    return store.require(key)


def _copy(source: Path, target: Path, *, cwd: str, session_id: str, session_key: str) -> None:
    try:
        SessionFile.open(source, whole=True).fork(
            target, cwd=cwd, session_id=session_id, session_key=session_key
        ).close()
    except LamellaError as error:
        target.unlink(missing_ok=True)
        log.warning("%s begins empty: %s cannot be copied (%s)", session_key, source.name, error)


def _tokens(entry: JsonObject) -> float:
    """How large a session is by its entry; 0 when that is not known."""
    value = entry.get("totalTokens") if entry.get("totalTokensFresh") is not False else None
    value = value or entry.get("usedTokens")
    return value if isinstance(value, (int, float)) else 0
