"""Which session a message belongs to: keys of chats, threads, sub-agents and scheduled runs. Pure.

The grammar is in `lamella.sessions.keys`; forms and rules are those of OpenClaw 2026.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from attrs import frozen

from lamella.sessions.keys import DEFAULT_AGENT, SessionKey, parse_key, slug_agent_id

ChatKind: TypeAlias = Literal["direct", "group", "channel"]
# Who shares a session: all direct chats, or those of one person, of one on a channel, of one on an account.
DmScope: TypeAlias = Literal["main", "per-peer", "per-channel-peer", "per-account-channel-peer"]

_UNKNOWN = "unknown"
_DEFAULT_ACCOUNT = "default"


@frozen(slots=True)
class Chat:
    """Where a message comes from. `peer` is a person's id in a direct chat, else the id of the group or channel.

    `thread` and `topic` are ids of a conversation within it.
    """

    channel: str = ""
    peer: str = ""
    kind: ChatKind = "direct"
    account: str = ""
    thread: str = ""
    topic: str = ""


def chat_key(
    chat: Chat,
    agent_id: str = DEFAULT_AGENT,
    *,
    dm_scope: DmScope = "main",
    identity_links: Mapping[str, Iterable[str]] | None = None,
) -> SessionKey:
    """The key of a chat. `agent_id` may be any text, such as a name.

    `identity_links`: names of people, with their ids (`42`, or `telegram:42`); whoever is named has one session
    over all channels that `dm_scope` does not tell apart. Raises `UsageError` for ids that cannot be in a key.
    """
    base = ":".join(("agent", slug_agent_id(agent_id), *_parts(chat, dm_scope, identity_links or {})))
    for marker, part in (("topic", chat.topic), ("thread", chat.thread)):
        if part.strip():
            base += f":{marker}:{part.strip()}"
    return parse_key(base)


def subagent_key(parent: SessionKey, run_id: str) -> SessionKey:
    """The key of a sub-agent that `parent` starts; one of a sub-agent is nested in its key."""
    base = parent.text if parent.kind == "subagent" else f"agent:{parent.agent_id}"
    return parse_key(f"{base}:subagent:{run_id}")


def cron_key(agent_id: str, job_id: str, run_id: str = "") -> SessionKey:
    """The key of a scheduled job, or of one run of it."""
    run = f":run:{run_id}" if run_id else ""
    return parse_key(f"agent:{slug_agent_id(agent_id)}:cron:{job_id}{run}")


def _parts(chat: Chat, dm_scope: DmScope, links: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """What follows the agent id."""
    channel = chat.channel.strip() or _UNKNOWN
    if chat.kind != "direct":
        return channel, chat.kind, chat.peer.strip() or _UNKNOWN
    peer = chat.peer.strip()
    if dm_scope == "main" or not peer:
        return ("main",)
    person = _linked_name(chat.channel, peer, links) or peer
    if dm_scope == "per-peer":
        return "direct", person
    if dm_scope == "per-channel-peer":
        return channel, "direct", person
    account = slug_agent_id(chat.account) if chat.account.strip() else _DEFAULT_ACCOUNT
    return channel, account, "direct", person


def _linked_name(channel: str, peer: str, links: Mapping[str, Iterable[str]]) -> str:
    """The name of the person with this id; empty when nobody is linked with it."""
    ids = {peer.lower(), f"{channel.strip()}:{peer}".lower()}
    return next((name for name, known in links.items() if ids & {i.strip().lower() for i in known}), "").strip()
