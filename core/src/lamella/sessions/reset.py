"""When a key gets a new session, and what of the old one it keeps. Pure.

A reset is asked for (`/new`, `/reset`), or due by a policy: daily at an hour, or after a time without a message.
Rules are those of OpenClaw 2026.3; docs/decisions/0027 lists where not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Literal, TypeAlias

from attrs import asdict, evolve, frozen

from lamella.config.schema import ResetSection, SessionSection
from lamella.sessions.index_file import SessionEntry
from lamella.sessions.keys import normalize_key
from lamella.text.days import zone
from lamella.types.messages import JsonObject

ResetType: TypeAlias = Literal["direct", "group", "thread"]
Overdue: TypeAlias = Literal["idle", "daily"]

DEFAULT_HOUR = 4
DEFAULT_IDLE_MINUTES = 60

# What belongs to the key rather than to one of its sessions: where it is, who it is with, where it comes from.
# fmt: off
_OF_THE_KEY = (
    "channel", "displayName", "groupId", "subject", "groupChannel", "space", "origin",
    "deliveryContext", "lastChannel", "lastTo", "lastAccountId", "lastThreadId",
    "spawnedBy", "spawnedWorkspaceDir", "spawnDepth", "subagentRole", "forkedFromParent",
)
# What somebody has chosen, and need not choose again because they asked for a new session.
_CHOSEN = (
    "label", "thinkingLevel", "verboseLevel", "reasoningLevel", "ttsAuto", "providerOverride", "modelOverride",
)
# fmt: on

_STAMP = re.compile(r"\[[^\]\n]*\]\s*")
_SENDER = re.compile(r"[^\W_][^:/\n]{0,63}:\s+")


# --- asked for -----------------------------------------------------------------------------------------


@frozen(slots=True)
class ResetRequest:
    """That a message asks for a new session: the word it did so with, and the new session's first message."""

    command: str
    first: str = ""

    @property
    def bare(self) -> bool:
        return not self.first


def reset_request(
    text: str,
    *,
    triggers: Sequence[str] = ("/new", "/reset"),
    authorized: bool = True,
    group: bool = False,
    names: Collection[str] = (),
) -> ResetRequest | None:
    """The request in a message; None for any other text, and when its sender is not `authorized`.

    A trigger is the whole message, or stands before a blank and the first message; case does not count. In
    a `group`, what stands before it is passed over: stamps in brackets, a sender's name with a colon, and mentions
    of the agent by one of its `names`.
    """
    if not authorized:
        return None
    words = _addressed(text, names) if group else text.strip()
    mention = rf"(?:@(?:{_any_of(names)}))?" if names else ""
    for trigger in triggers:
        word = trigger.strip()
        found = re.match(rf"{re.escape(word)}{mention}:?(?:\s+|\Z)", words, re.IGNORECASE)
        if word and found:
            return ResetRequest(word.lower(), words[found.end() :].strip())
    return None


def _addressed(text: str, names: Collection[str]) -> str:
    """A group's message without what stands before its own words."""
    patterns = [_STAMP, _SENDER]
    if names:
        patterns.append(re.compile(rf"@(?:{_any_of(names)})(?![\w-])[,:]?\s*", re.IGNORECASE))
    words = text.strip()
    while found := next((m for p in patterns if (m := p.match(words))), None):
        words = words[found.end() :]
    return words


def _any_of(names: Collection[str]) -> str:
    """A pattern for one of these names; of two that begin alike, the longer one."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


# --- due by a policy -----------------------------------------------------------------------------------


@frozen(slots=True)
class ResetPolicy:
    """When a session is over: after the hour of a day, after minutes without a message, or what comes first."""

    hour: int | None = None
    idle_minutes: int | None = None


def reset_type(key: str, *, is_group: bool = False, is_thread: bool = False) -> ResetType:
    """What a key counts as for policies; the flags are for callers that know more than the key tells."""
    marked = f":{normalize_key(key)}:"
    if is_thread or ":thread:" in marked or ":topic:" in marked:
        return "thread"
    return "group" if is_group or ":group:" in marked or ":channel:" in marked else "direct"


def policy_for(section: SessionSection, kind: ResetType, channel: str = "") -> ResetPolicy:
    """The policy of a chat. One for its channel replaces all others; one for its type goes before the general one,
    key by key."""
    by_channel = {name.strip().lower(): rule for name, rule in section.reset_by_channel.items()}
    rule = by_channel.get(channel.strip().lower())
    if rule is not None:
        return _policy(rule)
    by_type = section.reset_by_type
    own = by_type.get(kind) or (by_type.get("dm") if kind == "direct" else None)
    return _policy(section.reset if own is None else _over(section.reset, own))


def _over(general: ResetSection, own: ResetSection) -> ResetSection:
    return evolve(general, **{name: value for name, value in asdict(own).items() if value is not None})


def _policy(rule: ResetSection) -> ResetPolicy:
    hour = DEFAULT_HOUR if rule.at_hour is None else rule.at_hour
    match rule.mode:
        case "daily":
            return ResetPolicy(hour, rule.idle_minutes)
        case "idle":
            return ResetPolicy(None, DEFAULT_IDLE_MINUTES if rule.idle_minutes is None else rule.idle_minutes)
        case _:
            return ResetPolicy()


def overdue(policy: ResetPolicy, last_ms: float, now_ms: float, timezone: str = "") -> Overdue | None:
    """Whether a session is over whose last message came at `last_ms`, and by what. Times in Unix ms; the hour
    is one of the user's zone (empty: the system's). Raises `UsageError` for an unknown zone."""
    if policy.hour is not None and last_ms < _last_hour(policy.hour, now_ms, timezone):
        return "daily"
    if policy.idle_minutes is not None and now_ms > last_ms + policy.idle_minutes * 60_000:
        return "idle"
    return None


def _last_hour(hour: int, now_ms: float, timezone: str) -> float:
    """When it last was that hour in a zone, in Unix ms."""
    where = zone(timezone)
    now = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(where)
    for days in (0, 1):
        wall = datetime.combine(now.date() - timedelta(days=days), time(hour))
        moment = wall.astimezone() if where is None else wall.replace(tzinfo=where)
        if moment.timestamp() * 1000 <= now_ms:
            break
    return moment.timestamp() * 1000


def last_interaction(entry: Mapping[str, object]) -> float | None:
    """When a person last used a session, in Unix ms; None when its entry does not tell.

    Entries of other programs tell only when they were last written.
    """
    for name in ("lastInteractionAt", "updatedAt"):
        value = entry.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
    return None


# --- what the new session keeps ------------------------------------------------------------------------


def carried_over(entry: JsonObject, *, asked_for: bool) -> SessionEntry:
    """The fields of an old session's entry that the key's new one has too.

    Counters, marks and queued texts go with the old session. What was chosen for it stays only when somebody
    asked for the reset.
    """
    names = (*_OF_THE_KEY, *_CHOSEN) if asked_for else _OF_THE_KEY
    return {name: entry[name] for name in names if name in entry}
