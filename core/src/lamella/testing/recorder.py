"""A plugin that notes which hooks were called, with what."""

from __future__ import annotations

import threading
from typing import Any

from attrs import field, frozen

from lamella.plugins.hookspecs import hookimpl


@frozen(slots=True)
class HookCall:
    """One call of a hook: its name, and its event."""

    hook: str
    event: Any = field(repr=False)


class HookRecorder:
    """Notes every call of a run-time hook, in order, and changes nothing.

    It is called before all other plugins, so it sees what arrives and not what others make of it.
    """

    name = "hook-recorder"
    priority = 1_000_000

    def __init__(self) -> None:
        self.calls: list[HookCall] = []
        self._lock = threading.Lock()

    @property
    def names(self) -> list[str]:
        """The hooks that were called, in order."""
        return [call.hook for call in self.calls]

    def events(self, hook: str) -> list[Any]:
        """The events that a hook was given, in order."""
        return [call.event for call in self.calls if call.hook == hook]

    def last(self, hook: str) -> Any:
        """The newest event of a hook. Raises `AssertionError` when it was never called."""
        found = self.events(hook)
        assert found, f"{hook} was not called; called were: {', '.join(dict.fromkeys(self.names)) or 'none'}"
        return found[-1]

    def _note(self, hook: str, event: Any) -> None:
        with self._lock:
            self.calls.append(HookCall(hook, event))

    @hookimpl(tryfirst=True)
    async def session_start(self, event: Any) -> None:
        self._note("session_start", event)

    @hookimpl(tryfirst=True)
    async def session_end(self, event: Any) -> None:
        self._note("session_end", event)

    @hookimpl(tryfirst=True)
    async def input(self, event: Any) -> None:
        self._note("input", event)

    @hookimpl(tryfirst=True)
    async def before_turn(self, event: Any) -> None:
        self._note("before_turn", event)

    @hookimpl(tryfirst=True)
    async def before_prompt_build(self, event: Any) -> None:
        self._note("before_prompt_build", event)

    @hookimpl(tryfirst=True)
    async def before_agent_start(self, event: Any) -> None:
        self._note("before_agent_start", event)

    @hookimpl(tryfirst=True)
    async def context(self, event: Any) -> None:
        self._note("context", event)

    @hookimpl(tryfirst=True)
    async def before_tool_call(self, event: Any) -> None:
        self._note("before_tool_call", event)

    @hookimpl(tryfirst=True)
    async def after_tool_call(self, event: Any) -> None:
        self._note("after_tool_call", event)

    @hookimpl(tryfirst=True)
    async def tool_result_persist(self, event: Any) -> None:
        self._note("tool_result_persist", event)

    @hookimpl(tryfirst=True)
    async def on_overflow(self, event: Any) -> None:
        self._note("on_overflow", event)

    @hookimpl(tryfirst=True)
    async def agent_end(self, event: Any) -> None:
        self._note("agent_end", event)

    @hookimpl(tryfirst=True)
    async def before_compaction(self, event: Any) -> None:
        self._note("before_compaction", event)

    @hookimpl(tryfirst=True)
    async def on_compaction(self, event: Any) -> None:
        self._note("on_compaction", event)

    @hookimpl(tryfirst=True)
    async def after_compaction(self, event: Any) -> None:
        self._note("after_compaction", event)
