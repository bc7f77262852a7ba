"""Sessions with a history, for tests that begin in the middle of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lamella.paths import Paths
from lamella.sessions.keys import parse_key
from lamella.sessions.store import SessionStore
from lamella.sessions.transcript import SessionFile
from lamella.types.messages import AssistantMessage, TextBlock, ToolCall, ToolResultMessage, Usage, UserMessage

# 2026-03-01T09:00:00Z, and a minute more for each message.
_BEGIN, _STEP = 1_772_355_600_000, 60_000


class TranscriptBuilder:
    """Writes messages to a session through the same code as the engine; every method returns the builder.

    The session is made when the builder is, under a key; `path` is its transcript.
    """

    def __init__(self, home: Path, workspace: Path, key: str = "agent:main:main") -> None:
        """`home` is the state folder. Raises `UsageError` for a wrong key."""
        parsed = parse_key(key)
        store = SessionStore(Paths(home).sessions_dir(parsed.agent_id))
        self.key = parsed.text
        located, _ = store.begin(parsed)
        self.path = located.path
        self._file: SessionFile = store.open(located, cwd=str(workspace))
        self._calls = 0
        self._messages = 0
        self.entry_ids: list[str] = []

    def user(self, text: str) -> TranscriptBuilder:
        """What the user said."""
        return self._append(UserMessage((TextBlock(text),), self._now()))

    def assistant(self, text: str = "", *calls: ToolCall, tokens: int = 0) -> TranscriptBuilder:
        """A reply, with calls of tools; `tokens`: the size of the context that the provider reported."""
        content = ((TextBlock(text),) if text else ()) + calls
        return self._append(
            AssistantMessage(
                content,
                "scripted",
                "script",
                "scripted",
                usage=Usage(input=tokens, total_tokens=tokens),
                stop_reason="toolUse" if calls else "stop",
                timestamp=self._now(),
            )
        )

    def tool(self, name: str, result: str, /, *, is_error: bool = False, **arguments: Any) -> TranscriptBuilder:
        """A call of a tool, and its result."""
        self._calls += 1
        call = ToolCall(f"call-{self._calls}", name, arguments)
        self.assistant("", call)
        return self._append(ToolResultMessage(call.id, name, (TextBlock(result),), is_error, timestamp=self._now()))

    def compaction(self, summary: str, *, keep: int = 0, tokens_before: int = 0) -> TranscriptBuilder:
        """Fold everything but the newest `keep` entries into a summary. Raises `ValueError` when there are fewer."""
        if not 0 <= keep <= len(self.entry_ids):
            raise ValueError(f"keep is {keep}, expected 0 to {len(self.entry_ids)}, the number of entries so far")
        kept = self.entry_ids[-keep] if keep else None
        entry = self._file.append_compaction(summary, kept, tokens_before)
        self.entry_ids.append(entry.id)
        return self

    def custom(self, custom_type: str, data: Any = None) -> TranscriptBuilder:
        """State of a plugin, as `host.append_entry` stores it."""
        self.entry_ids.append(self._file.append_custom(custom_type, data).id)
        return self

    def close(self) -> None:
        """Close the transcript; more can be appended afterwards."""
        self._file.close()

    def _append(self, message: Any) -> TranscriptBuilder:
        self.entry_ids.append(self._file.append_message(message).id)
        return self

    def _now(self) -> float:
        self._messages += 1
        return _BEGIN + self._messages * _STEP
