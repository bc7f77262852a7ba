"""The host that plugins are handed: bounded ways to act on the running session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from attrs import frozen

from lamella.errors import MemoryUnavailable, ModelError, UsageError
from lamella.memory.writer import MemoryWriter
from lamella.sessions.transcript import SessionFile
from lamella.types.entries import Entry
from lamella.types.events import Notice
from lamella.types.host import SilentTurn, TurnInfo, WriteMode
from lamella.types.memory import MemoryWrite, Provenance
from lamella.types.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ModelMessage,
    Usage,
    UserMessage,
)
from lamella.types.model import Done, Model, ModelRequest, ThinkingLevel, ToolSpec
from lamella.types.tools import Tool

NOTHING_STORED = "nothing can be stored while a request is only shown"


class SessionRecord(Protocol):
    """The session's entry in sessions.json, as far as plugins may touch it."""

    def read(self) -> JsonObject: ...

    def patch(self, fields: JsonObject) -> None: ...

    def enqueue(self, text: str) -> None: ...

    def dequeue(self, texts: Collection[str]) -> None:
        """Take these texts out of the queue; they are stored elsewhere."""

    def finish(self, fields: JsonObject, usage: Usage, *, compactions: int, entries: int) -> None:
        """Store a turn's fields and add its numbers to the session's totals."""

    def spend(self, usage: Usage) -> None:
        """Add a model call outside the conversation to the session's totals."""


@frozen(slots=True)
class SilentRequest:
    """A silent turn as a plugin wants it, see `lamella.types.host.Host.run_silent_turn`."""

    prompt: str
    tools: Sequence[str | Tool] = ()
    system_prompt: str = ""
    history: Sequence[Message] | None = None
    max_calls: int = 0


SilentRunner: TypeAlias = Callable[[SilentRequest], Awaitable[SilentTurn]]


class SessionHost:
    """`lamella.types.host.Host` for one session."""

    def __init__(
        self,
        info: TurnInfo,
        file: SessionFile,
        model: Model,
        record: SessionRecord,
        *,
        emit: Callable[[Any], None],
        tools: Sequence[ToolSpec] = (),
        writer: MemoryWriter | None = None,
        silent: SilentRunner | None = None,
    ) -> None:
        self._info = info
        self._file = file
        self._model = model
        self._record = record
        self._emit = emit
        self._tools = tuple(tools)
        self._writer = writer
        self._silent = silent

    @property
    def turn(self) -> TurnInfo:
        return self._info

    async def complete(
        self,
        prompt: str | Sequence[ModelMessage],
        *,
        system_prompt: str = "",
        max_tokens: int | None = None,
        thinking: ThinkingLevel = "off",
        timeout: float | None = None,
    ) -> AssistantMessage:
        messages = [UserMessage(prompt)] if isinstance(prompt, str) else list(prompt)
        request = ModelRequest(messages, system_prompt, max_tokens=max_tokens, thinking=thinking)
        reply = await asyncio.wait_for(complete(self._model, request), timeout)
        self._record.spend(reply.usage or Usage())
        return reply

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
        if self._silent is None:
            return SilentTurn("", False, "no turn can be run from here")
        wanted = SilentRequest(prompt, tools, system_prompt, history, max_calls)
        try:
            return await asyncio.wait_for(self._silent(wanted), timeout)
        except TimeoutError:
            return SilentTurn("", False, f"no answer within {timeout:g} s")

    def append_entry(self, custom_type: str, data: Any) -> str:
        return self._file.append_custom(custom_type, data).id

    def latest_entry(self, custom_type: str) -> Any:
        return self._file.latest_custom(custom_type)

    def entries(self) -> Sequence[Entry]:
        return self._file.branch_entries()

    def replace_messages(self, replacements: Mapping[str, Message]) -> None:
        self._file.replace_messages(replacements)

    def branch(self, entry_id: str) -> None:
        self._file.branch(entry_id)

    def messages(self) -> Sequence[Message]:
        return self._file.context().messages

    def patch_session_entry(self, **fields: Any) -> None:
        self._record.patch(fields)

    def session_entry(self) -> JsonObject:
        return self._record.read()

    def enqueue_event(self, text: str) -> None:
        self._record.enqueue(text)

    async def write_memory(self, path: str, text: str, *, mode: WriteMode = "append") -> MemoryWrite:
        if self._writer is None or not self._info.workspace_writable:
            raise MemoryUnavailable(f"{path}: the workspace may not be written in this turn")
        provenance = Provenance(
            "plugin", self._info.session_key, self._info.session_id, self._file.leaf_id or "", self._info.trigger
        )
        return await asyncio.to_thread(self._write, self._writer, path, text, mode, provenance)

    @staticmethod
    def _write(writer: MemoryWriter, path: str, text: str, mode: WriteMode, provenance: Provenance) -> MemoryWrite:
        if mode == "append":
            return writer.append(path, text, provenance)
        known = None if mode == "create" else writer.hash_of(path)
        return writer.replace(path, text, known, provenance)

    def emit(self, notice: Notice) -> None:
        self._emit(notice)

    def available_tools(self) -> Sequence[ToolSpec]:
        return self._tools


class OnlyShown(SessionHost):
    """A host for requests that are made to be looked at: reading works, everything else is refused."""

    def __init__(self, info: TurnInfo, file: SessionFile, model: Model) -> None:
        super().__init__(info, file, model, _NoRecord(), emit=lambda _notice: None)

    def append_entry(self, custom_type: str, data: Any) -> str:
        raise UsageError(NOTHING_STORED)

    def replace_messages(self, replacements: Mapping[str, Message]) -> None:
        raise UsageError(NOTHING_STORED)

    def branch(self, entry_id: str) -> None:
        raise UsageError(NOTHING_STORED)

    async def complete(self, prompt: str | Sequence[ModelMessage], **_options: Any) -> AssistantMessage:
        raise UsageError("no model is called while a request is only shown")


class _NoRecord:
    """No entry in sessions.json."""

    def read(self) -> JsonObject:
        return {}

    def patch(self, fields: JsonObject) -> None:
        raise UsageError(NOTHING_STORED)

    def enqueue(self, text: str) -> None:
        raise UsageError(NOTHING_STORED)

    def dequeue(self, texts: Collection[str]) -> None:
        raise UsageError(NOTHING_STORED)

    def finish(self, fields: JsonObject, usage: Usage, *, compactions: int, entries: int) -> None:
        raise UsageError(NOTHING_STORED)

    def spend(self, usage: Usage) -> None:
        raise UsageError(NOTHING_STORED)


async def complete(model: Model, request: ModelRequest) -> AssistantMessage:
    """One whole reply. Raises `ModelError` when the call failed."""
    async for event in model.stream(request):
        if isinstance(event, Done):
            if event.error is not None:
                raise event.error
            return event.message
    raise ModelError("the stream ended without a reply")
