"""Taking entries over into sessions.json: pure, and the same whenever it is done again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from lamella.moving.report import Item
from lamella.sessions.index_file import SessionEntry, Sessions
from lamella.sessions.keys import SessionKey, normalize_key, parse_key, slug_agent_id

# lamella's own field: the folder that an entry comes from.
ORIGIN = "importedFrom"


@frozen(slots=True)
class Incoming:
    """An entry to take over: the key it shall have here, and the entry with a pointer that is right here."""

    key: str
    entry: SessionEntry


def merged(
    ours: Sessions, incoming: Collection[Incoming], *, origin: str, label: str, went_on: Collection[str] = ()
) -> tuple[Sessions, list[Item]]:
    """`ours` with what is incoming, and what became of each entry.

    The newer of two states of a session counts. A key follows its session's successor in the other
    program, unless its transcript went on here (`went_on`, names of files). Where a key belongs to another
    session here, the incoming one gets a key of its own. No entry is ever removed.
    """
    sessions, items = dict(ours), []
    for new in incoming:
        entry = {**new.entry, ORIGIN: origin}
        key, item = _place(sessions, new.key, entry, label, went_on)
        items.append(item)
        if item.action in ("add", "grow"):
            sessions[key] = {**(sessions.get(key) or {}), **entry} if _same_session(sessions, key, entry) else entry
    return sessions, items


def _place(
    sessions: Mapping[str, SessionEntry], key: str, entry: SessionEntry, label: str, went_on: Collection[str]
) -> tuple[str, Item]:
    mine = sessions.get(key)
    if mine is None:
        return key, Item("session", key, key, "add")
    newer = _time(entry) > _time(mine)
    if mine.get("sessionId") == entry.get("sessionId"):
        if newer:
            return key, Item("session", key, key, "grow")
        if _time(entry) == _time(mine):
            return key, Item("session", key, key, "same")
        return key, Item("session", key, key, "kept", "it went on here")
    if newer and mine.get(ORIGIN) == entry[ORIGIN] and mine.get("sessionFile") not in went_on:
        return key, Item("session", key, key, "grow", "its key has a new session there")
    own = own_key(key, label, str(entry.get("sessionId")))
    if own == key:
        return key, Item("session", key, key, "kept", "the key belongs to another session here")
    _, item = _place(sessions, own, entry, label, went_on)
    return own, Item("session", key, own, item.action, "the key belongs to another session here")


def own_key(key: str, label: str, session_id: str) -> str:
    """A key that no other session has, for the agent of `key`."""
    return normalize_key(f"agent:{parse_key(key).agent_id}:{label}-{session_id}")


def agent_key(agent_id: str, key: str) -> SessionKey:
    """A key of another program as one of lamella: `main` becomes `agent:<agent_id>:main`, and one that
    names its agent stays with it. Raises `UsageError` for one that can be none."""
    parts = normalize_key(key).split(":")
    if parts[0] == "agent":
        agent_id, parts = slug_agent_id(parts[1] if len(parts) > 1 else ""), parts[2:]
    return parse_key(":".join(("agent", agent_id, *parts)))


def _same_session(sessions: Mapping[str, SessionEntry], key: str, entry: SessionEntry) -> bool:
    return key in sessions and sessions[key].get("sessionId") == entry.get("sessionId")


def _time(entry: Mapping[str, object]) -> float:
    value = entry.get("updatedAt")
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
