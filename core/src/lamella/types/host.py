"""The host: the only door through which a plugin acts on a running session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from attrs import frozen

if TYPE_CHECKING:
    from lamella.types.entries import Entry
    from lamella.types.events import Notice
    from lamella.types.memory import MemoryWrite
    from lamella.types.messages import AssistantMessage, JsonObject, Message, ModelMessage
    from lamella.types.model import ThinkingLevel, ToolSpec
    from lamella.types.tools import Tool

WriteMode: TypeAlias = Literal["append", "replace", "create"]
Trigger: TypeAlias = Literal["user", "heartbeat", "cron", "memory"]
ChatType: TypeAlias = Literal["direct", "group", "channel", "unknown"]
SessionKind: TypeAlias = Literal["main", "subagent", "cron"]
# Chats that others read too: what is private to the user stays out of them.
SHARED_CHATS: tuple[ChatType, ...] = ("group", "channel")
PRIVATE_CHATS: tuple[ChatType, ...] = ("direct", "unknown")


@frozen(slots=True)
class TurnInfo:
    """What a turn is: whose session, what set it off, and whether files may be written.

    `timezone` is the user's, as configured; empty for the system's.
    """

    session_key: str
    session_id: str
    agent_id: str
    workspace: Path
    trigger: Trigger = "user"
    chat_type: ChatType = "direct"
    workspace_writable: bool = True
    provider: str = ""
    model: str = ""
    context_window: int = 0
    timezone: str = ""


@frozen(slots=True)
class SilentTurn:
    """The outcome of a turn that nobody sees: the last reply's text, and whether it succeeded."""

    text: str
    success: bool
    error: str = ""


class Host(Protocol):
    """What every run-time hook is handed beside its event."""

    @property
    def turn(self) -> TurnInfo:
        """The turn that the hook runs in."""

    async def complete(
        self,
        prompt: str | Sequence[ModelMessage],
        *,
        system_prompt: str = "",
        max_tokens: int | None = None,
        thinking: ThinkingLevel = "off",
        timeout: float | None = None,
    ) -> AssistantMessage:
        """One model call outside the conversation: no tools, nothing stored.

        Raises `ModelError`, or `TimeoutError` after `timeout` seconds.
        """
        ...

    async def run_silent_turn(
        self,
        prompt: str,
        *,
        tools: Sequence[str | Tool] = (),
        system_prompt: str = "",
        timeout: float = 120.0,
        history: Sequence[Message] | None = None,
        max_calls: int = 0,
    ) -> SilentTurn:
        """Run a bounded turn on the session's history that is neither shown nor stored.

        `tools`: what is on offer, by name or as tools of its own. `system_prompt` is added to the
        session's. `history`: other messages than the session's. At most `max_calls` model calls (0: no
        limit) within `timeout` seconds. Tools and hooks see the trigger `memory`.
        """
        ...

    def append_entry(self, custom_type: str, data: Any) -> str:
        """Store plugin state in the transcript (never sent to a model); returns the entry id."""
        ...

    def latest_entry(self, custom_type: str) -> Any:
        """What `append_entry` stored last under this type on the current branch; None without one.

        Only as far back as the branch is loaded: at least what the context is made of.
        """
        ...

    def entries(self) -> Sequence[Entry]:
        """The entries of the current branch, root first, only as far back as it is loaded."""
        ...

    def replace_messages(self, replacements: Mapping[str, Message]) -> None:
        """Continue on a copy of the branch in which these entries (by id) hold other messages.

        The old entries stay in the file. Raises `EntryNotFound` or `TranscriptError`; nothing has
        changed then.
        """
        ...

    def branch(self, entry_id: str) -> None:
        """Continue from an earlier entry; raises `EntryNotFound`."""
        ...

    def messages(self) -> Sequence[Message]:
        """The session's current context."""
        ...

    def patch_session_entry(self, **fields: Any) -> None:
        """Change fields of the session's entry in sessions.json (camelCase names)."""
        ...

    def session_entry(self) -> JsonObject:
        """The session's entry in sessions.json."""
        ...

    def enqueue_event(self, text: str) -> None:
        """Queue a line for the model's next prompt of this session; survives a restart."""
        ...

    async def write_memory(self, path: str, text: str, *, mode: WriteMode = "append") -> MemoryWrite:
        """Write a memory file through the writer: contained, atomic, journalled.

        `create` raises `MemoryConflict` when the file is there already.
        """
        ...

    def emit(self, notice: Notice) -> None:
        """Tell whoever watches the run."""
        ...

    def available_tools(self) -> Sequence[ToolSpec]:
        """The tools on offer in this turn."""
        ...
