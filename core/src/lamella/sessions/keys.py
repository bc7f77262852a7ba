"""Session keys: which conversation a message belongs to.

    agent:<agentId>:<mainKey>                              main; direct chats by default
    agent:<agentId>:direct:<peer>                          one chat for each person
    agent:<agentId>:<channel>:direct:<peer>                ... for each person on a channel
    agent:<agentId>:<channel>:<account>:direct:<peer>      ... and account
    agent:<agentId>:<channel>:group|channel:<peer>         groups and channels
    <base>:thread:<id>, <base>:topic:<id>                  threads below a base key
    agent:<agentId>:subagent:<uuid>[:subagent:<uuid>...]   sub-agents; depth = their number
    agent:<agentId>:cron:<jobId>[:run:<uuid>]              scheduled runs

Keys are compared trimmed and in lower case; empty parts are dropped. `dm` is an older word for
`direct`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import frozen

from lamella.errors import UsageError

if TYPE_CHECKING:
    from lamella.types.host import ChatType, SessionKind

DEFAULT_AGENT = "main"
DEFAULT_KEY = "agent:main:main"
_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
_SESSION_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}\Z", re.IGNORECASE)
# Control characters would break listings; lone surrogates cannot be stored.
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CHAT_TOKENS = frozenset({"direct", "dm", "group", "channel"})
_THREAD_MARKERS = (":thread:", ":topic:")


@frozen(slots=True)
class SessionKey:
    """A parsed key. `rest` is everything after the agent id."""

    text: str
    agent_id: str
    rest: str

    @property
    def chat_type(self) -> ChatType:
        """group before channel before direct; `unknown` when no token says."""
        tokens = set(self.rest.split(":"))
        if "group" in tokens:
            return "group"
        if "channel" in tokens:
            return "channel"
        return "direct" if tokens & {"direct", "dm"} or ":" not in self.rest else "unknown"

    @property
    def channel(self) -> str:
        """The channel of a chat, such as telegram; empty for keys that name none."""
        first, *others = self.rest.split(":")
        return first if _CHAT_TOKENS & set(others[:2]) and first not in _CHAT_TOKENS else ""

    @property
    def kind(self) -> SessionKind:
        first = self.rest.split(":", 1)[0]
        if first == "subagent":
            return "subagent"
        return "cron" if first == "cron" else "main"

    @property
    def subagent_depth(self) -> int:
        return f":{self.rest}".count(":subagent:")

    @property
    def thread_parent(self) -> str | None:
        """The base key of a thread or topic key; None for other keys."""
        at = max(self.text.rfind(marker) for marker in _THREAD_MARKERS)
        return self.text[:at] if at > 0 else None


def normalize_key(text: str) -> str:
    """The canonical form of a key: trimmed, lower case, without empty parts."""
    return ":".join(part for part in text.strip().lower().split(":") if part)


def parse_key(text: str) -> SessionKey:
    """Parse `agent:<id>:<rest>`. Raises `UsageError` for anything else."""
    key = normalize_key(text)
    parts = key.split(":")
    if len(parts) < 3 or parts[0] != "agent":
        raise UsageError(
            f"session key {text!r}: expected agent:<agentId>:<name>, such as {DEFAULT_KEY}",
            hint="A bare word is not a key; use --agent to choose an agent.",
        )
    if _UNFIT.search(key):
        raise UsageError(f"session key {text!r}: expected no control characters, and valid Unicode")
    return SessionKey(key, check_agent_id(parts[1]), ":".join(parts[2:]))


def check_agent_id(text: str) -> str:
    """The agent id, if it is one: lower case, digits, `_` and `-`, at most 64 characters."""
    if not _AGENT_ID.match(text):
        raise UsageError(
            f"agent id {text!r}: expected lower-case letters, digits, '_' or '-', "
            "starting with a letter or digit, at most 64 characters"
        )
    return text


def slug_agent_id(text: str) -> str:
    """An agent id made from any text: other characters become `-`, nothing left becomes `main`."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", text.strip().lower()).strip("-_")[:64].strip("-_")
    return slug or DEFAULT_AGENT


def is_session_id(text: str) -> bool:
    """Whether a text may be a session id, which is part of a file name."""
    return _SESSION_ID.match(text) is not None


def check_session_id(text: str) -> str:
    """The session id, if it is one. Raises `UsageError`."""
    if not is_session_id(text):
        raise UsageError(
            f"session id {text!r}: expected letters, digits, '.', '_' or '-', "
            "starting with a letter or digit, at most 128 characters"
        )
    return text
