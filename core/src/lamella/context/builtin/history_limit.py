"""History limit: how many user turns of a session the model sees, by the kind of chat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import Attribute, frozen

from lamella.config.schema import between, setting
from lamella.plugins import hookimpl
from lamella.types.hooks import BeforeModelCall, ContextEdit, ContextNote
from lamella.types.host import Host
from lamella.types.messages import CompactionSummaryMessage, Message, UserMessage

RULE = "history_limit"
_DIRECT = frozenset({"direct", "dm"})
_KINDS = _DIRECT | {"group", "channel"}
_NO_CHATS = frozenset({"subagent", "cron"})
_THREAD = re.compile(r":(?:thread|topic):\d+\Z")


def _turns(_instance: Any, _attribute: Attribute[Any], value: int | Mapping[str, int] | None) -> None:
    """A validator: numbers of turns."""
    numbers = value.values() if isinstance(value, Mapping) else (value or 0,)
    if any(number < 0 for number in numbers):
        raise ValueError("expected 0 or more")


@frozen(slots=True)
class ChannelLimits:
    """Limits of one messaging channel, in user turns. 0: no limit; unset: as for all channels."""

    direct: int | None = setting(None, "Direct chats on this channel.", check=_turns)
    group: int | None = setting(None, "Groups and channels on it.", check=_turns)
    users: Mapping[str, int] = setting({}, "Direct chats with single people, by user id in any case.", check=_turns)


@frozen(slots=True)
class HistoryLimitConfig:
    """Settings of the plugin, with their defaults. Limits are in user turns; 0: no limit."""

    direct: int = setting(0, "User turns that direct chats show the model; 0: all.", check=between(0))
    group: int = setting(50, "User turns that groups and channels show the model; 0: all.", check=between(0))
    channels: Mapping[str, ChannelLimits] = setting({}, "Limits by messaging channel: direct, group, users.")


class HistoryLimit:
    """Leaves the oldest turns out of a request. The transcript keeps them."""

    name = "history-limit"
    priority = 100  # before plugins that shrink what is left
    Config = HistoryLimitConfig

    def __init__(self, config: HistoryLimitConfig) -> None:
        self.config = config

    @hookimpl
    def context(self, event: BeforeModelCall, host: Host) -> ContextEdit | None:
        limit = limit_for(host.turn.session_key, self.config)
        messages = limit_turns(event.messages, limit)
        if messages is event.messages:
            return None
        dropped = len(event.messages) - len(messages)
        first = 1 if is_summary(event.messages[0]) else 0
        notes = tuple(ContextNote(RULE, "dropped", i) for i in range(first, first + dropped))
        return ContextEdit(tuple(messages), notes)


def limit_turns(messages: Sequence[Message], limit: int) -> Sequence[Message]:
    """The messages from the `limit`-th last user message on; the same object when that is all.

    A leading compaction summary stays. Results whose calls were cut off are left to the repair,
    which follows every cut.
    """
    if limit <= 0:
        return messages
    left = limit
    for start in range(len(messages) - 1, -1, -1):
        if isinstance(messages[start], UserMessage):
            left -= 1
            if not left:
                break
    else:
        return messages
    summary = tuple(messages[:1]) if is_summary(messages[0]) else ()
    if start == len(summary):
        return messages
    return (*summary, *messages[start:])


def is_summary(message: Message) -> bool:
    """Whether a message stands for history that was compacted."""
    return isinstance(message, CompactionSummaryMessage)


def limit_for(key: str, config: HistoryLimitConfig) -> int:
    """The limit of a session key, with or without `agent:<id>:`; 0 for no limit.

    The key tells the channel, the kind of chat and who it is with: `telegram:direct:123`,
    `telegram:work:direct:123` (with an account), `direct:123` (any channel). Chats that say none of
    these, such as an agent's main session, have no limit. A thread counts as the chat it is in.
    """
    parts = key.lower().split(":")
    parts = parts[2:] if parts[0] == "agent" else parts
    at = next((i for i, part in enumerate(parts[:3]) if part in _KINDS), None)
    if at is None or parts[0] in _NO_CHATS:
        return 0
    channels = {name.lower(): limits for name, limits in config.channels.items()}
    own = channels.get(parts[0], ChannelLimits()) if at else ChannelLimits()
    if parts[at] not in _DIRECT:
        return config.group if own.group is None else own.group
    user = _THREAD.sub("", ":".join(parts[at + 1 :]))
    users = {name.lower(): limit for name, limit in own.users.items()}
    return users.get(user, config.direct if own.direct is None else own.direct)
