"""Calling hooks: the typed facade that the rest of lamella uses. Only this package touches pluggy.

Each implementation is called by itself: its failure, wrong answer or time-out concerns nobody else.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import attrs
import pluggy
from attrs import define, field, frozen

from lamella.config.structure import near_match
from lamella.errors import Problem
from lamella.plugins import hookspecs
from lamella.plugins.answers import (
    as_edit,
    command_flaw,
    edit_flaw,
    flaw,
    is_lazy,
    merge_additions,
    no_file,
    settled,
    what_stands,
)
from lamella.plugins.catalog import Catalog
from lamella.plugins.implementations import KNOWN_HOOKS
from lamella.plugins.threads import OutOfTime, describe, run_with_limit
from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.memory import BackendRegistration, EmbedderRegistration, MemoryService
from lamella.types.messages import Message, ToolResultMessage
from lamella.types.model import ModelProvider
from lamella.types.tools import Tool

if TYPE_CHECKING:
    from lamella.types.events import PluginFault

T = TypeVar("T")
ContextWatcher: TypeAlias = Callable[[str, Sequence[Message], h.ContextEdit], None]

DEFAULT_TIMEOUT = 15.0
TIMEOUTS: Mapping[str, float] = {
    "before_turn": 180.0,
    "before_compaction": 180.0,
    "on_compaction": 300.0,
    "session_end": 60.0,
    "agent_end": 60.0,
    "open_memory": 60.0,
}

log = logging.getLogger(__name__)


@frozen(slots=True)
class _Implementation:
    plugin: str
    function: Callable[..., Any] = field(repr=False)
    parameters: tuple[str, ...]


@define(slots=True)
class _Answer:
    """What a call gave; None until it has."""

    value: Any = None


class Hooks:
    """The hooks of a set of plugins. `on_fault` hears of every implementation that failed."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        timeouts: Mapping[str, float] | None = None,
        on_fault: Callable[[PluginFault], None] = lambda _fault: None,
        trace: bool | None = None,
    ) -> None:
        self.catalog = catalog
        self.problems: list[Problem] = [
            Problem(f"hooks.timeouts.{name}", f"no hook has this name{near_match(name, sorted(KNOWN_HOOKS))}")
            for name in timeouts or {}
            if name not in KNOWN_HOOKS
        ]
        self.on_fault = on_fault
        self._timeouts = {**TIMEOUTS, **(timeouts or {})}
        self._trace = os.environ.get("LAMELLA_TRACE_HOOKS") == "1" if trace is None else trace
        self._implementations: dict[str, list[_Implementation]] = {}
        self._without_prompt_text = frozenset(r.name for r in catalog.active if not r.prompts)
        self._register()

    def _register(self) -> None:
        manager = pluggy.PluginManager(hookspecs.PROJECT)
        manager.add_hookspecs(hookspecs)
        rank = {}
        for position, record in enumerate(self.catalog.active):
            try:
                manager.register(record.plugin, name=record.name)
            except (pluggy.PluginValidationError, ValueError) as error:
                self.problems.append(Problem(f"plugin {record.name}", " ".join(str(error).split())))
                continue
            rank[record.name] = position
        for name in sorted(KNOWN_HOOKS):
            found = getattr(manager.hook, name).get_hookimpls()
            found = sorted(found, key=lambda i: (i.trylast - i.tryfirst, rank[i.plugin_name]))
            if name in ("before_prompt_build", "prompt_sections"):
                found = [i for i in found if i.plugin_name not in self._without_prompt_text]
            self._implementations[name] = [
                _Implementation(i.plugin_name, i.function, tuple(inspect.signature(i.function).parameters))
                for i in found
            ]

    def implemented(self, hook: str) -> bool:
        """Whether any plugin implements the hook."""
        return bool(self._implementations[hook])

    # --- calling one implementation at a time --------------------------------------------------------

    async def _call(self, hook: str, implementation: _Implementation, expected: Any, **arguments: Any) -> Any:
        """The result of one implementation, or None when it has none or failed."""
        from lamella.plugins.tasks import await_with_limit, call_with_limit  # start-up needs no event loop

        limit = self._limit(hook)
        given = {k: v for k, v in arguments.items() if k in implementation.parameters}
        with self._contained(hook, implementation, given) as answer:
            if inspect.iscoroutinefunction(implementation.function):
                result = await await_with_limit(implementation.function(**given), limit)
            else:
                result = await call_with_limit(lambda: settled(implementation.function(**given)), limit)
                if inspect.isawaitable(result):
                    result = await await_with_limit(result, limit)
            if inspect.isasyncgen(result):
                raise TypeError("is an async generator, which nobody runs; return instead of yield")
            answer.value = await call_with_limit(lambda: settled(result), limit) if is_lazy(result) else result
        return self._checked(hook, implementation, answer.value, expected)

    def _limit(self, hook: str) -> float:
        return self._timeouts.get(hook, DEFAULT_TIMEOUT)

    @contextlib.contextmanager
    def _contained(self, hook: str, implementation: _Implementation, given: Mapping[str, Any]) -> Iterator[_Answer]:
        """A call whose failure concerns nobody else: it is told, and the answer stays None."""
        answer = _Answer()
        started = time.monotonic()
        try:
            yield answer
        except OutOfTime:
            self._fault(implementation, hook, f"gave no answer within {self._limit(hook):g} s")
        except Exception as error:
            log.warning("plugin %s failed in %s", implementation.plugin, hook, exc_info=True)
            self._fault(implementation, hook, describe(error))
        else:
            self._traced(hook, implementation, given, answer.value, started)

    def _checked(self, hook: str, implementation: _Implementation, result: Any, expected: Any) -> Any:
        if result is None or expected is None:
            return None
        if not isinstance(result, expected):
            kinds = expected if isinstance(expected, tuple) else (expected,)
            wanted = " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
            self._fault(implementation, hook, f"returned {type(result).__name__}, expected {wanted}")
            return None
        if wrong := flaw(result):
            self._fault(implementation, hook, f"returned {wrong}")
            return what_stands(result)
        return result

    def _fault(self, implementation: _Implementation, hook: str, error: str) -> None:
        from lamella.types.events import PluginFault

        log.warning("plugin %s, hook %s: %s; skipped", implementation.plugin, hook, error)
        self.on_fault(PluginFault(implementation.plugin, hook, error))

    def _traced(
        self, hook: str, implementation: _Implementation, given: Mapping[str, Any], result: Any, started: float
    ) -> None:
        if self._trace:
            took = (time.monotonic() - started) * 1000
            shown = ", ".join(f"{k}={repr(v)[:200]}" for k, v in given.items() if k != "host")
            log.warning("hook %s(%s) in %s -> %r (%.1f ms)", hook, shown, implementation.plugin, result, took)

    async def _results(self, hook: str, expected: Any, **arguments: Any) -> AsyncIterator[Any]:
        for implementation in self._implementations[hook]:
            result = await self._call(hook, implementation, expected, **arguments)
            if result is not None:
                yield result

    async def _all(self, hook: str, event: Any, host: Host) -> None:
        for implementation in self._implementations[hook]:
            await self._call(hook, implementation, None, event=event, host=host)

    # --- run-time hooks --------------------------------------------------------------------------------

    async def session_start(self, event: h.SessionStart, host: Host) -> None:
        await self._all("session_start", event, host)

    async def session_end(self, event: h.SessionEnd, host: Host) -> None:
        await self._all("session_end", event, host)

    async def input(self, event: h.Input, host: Host) -> h.InputResult:
        """The text after all plugins; `handled` stops the chain."""
        for implementation in self._implementations["input"]:
            result = await self._call("input", implementation, h.InputResult, event=event, host=host)
            if result is None:
                continue
            if result.text is not None:
                event = attrs.evolve(event, text=result.text)
            if result.handled:
                return h.InputResult(event.text, handled=True, reply=result.reply)
        return h.InputResult(event.text)

    async def before_turn(self, event: h.BeforeTurn, host: Host) -> None:
        await self._all("before_turn", event, host)

    async def before_prompt_build(
        self, event: h.BeforePromptBuild, host: Host, *, objection: Callable[[h.PromptAddition], str] = lambda _a: ""
    ) -> h.PromptAddition:
        """All additions in one. `objection` says why one of them is left out, or nothing."""
        return await self._added("before_prompt_build", event, host, objection)

    async def before_agent_start(
        self, event: h.BeforePromptBuild, host: Host, *, objection: Callable[[h.PromptAddition], str] = lambda _a: ""
    ) -> h.PromptAddition:
        """As `before_prompt_build`; a plugin that may add no text can still choose the model."""
        return await self._added("before_agent_start", event, host, objection)

    async def _added(
        self, hook: str, event: h.BeforePromptBuild, host: Host, objection: Callable[[h.PromptAddition], str]
    ) -> h.PromptAddition:
        additions = []
        for implementation in self._implementations[hook]:
            found = await self._call(hook, implementation, h.PromptAddition, event=event, host=host)
            if found is None:
                continue
            if implementation.plugin in self._without_prompt_text:
                found = h.PromptAddition(model=found.model)
            if wrong := objection(found):
                self._fault(implementation, hook, wrong)
            else:
                additions.append(found)
        return merge_additions(additions)

    async def context(
        self, event: h.BeforeModelCall, host: Host, *, watch: ContextWatcher = lambda _plugin, _given, _edit: None
    ) -> tuple[Message, ...]:
        """The messages of one model call after all plugins. `watch` hears of every plugin's edit:
        its name, the messages that it was given, and what it answered."""
        for implementation in self._implementations["context"]:
            result = await self._call("context", implementation, (h.ContextEdit, Iterable), event=event, host=host)
            if result is None:
                continue
            if wrong := edit_flaw(result, event.messages):
                self._fault(implementation, "context", f"returned {wrong}")
                continue
            edit = as_edit(result, event.messages)
            watch(implementation.plugin, event.messages, edit)
            if edit.messages is not None:
                event = attrs.evolve(event, messages=edit.messages)
        return event.messages

    async def before_tool_call(self, event: h.BeforeToolCall, host: Host) -> h.ToolCallVerdict:
        """Arguments after all plugins, or the first block."""
        for implementation in self._implementations["before_tool_call"]:
            verdict = await self._call("before_tool_call", implementation, h.ToolCallVerdict, event=event, host=host)
            if verdict is None:
                continue
            if verdict.block:
                return h.ToolCallVerdict(event.arguments, block=True, reason=verdict.reason)
            if verdict.arguments is not None:
                event = attrs.evolve(event, arguments=verdict.arguments)
        return h.ToolCallVerdict(event.arguments)

    async def after_tool_call(self, event: h.AfterToolCall, host: Host) -> None:
        await self._all("after_tool_call", event, host)

    async def tool_result_persist(self, event: h.ToolResultPersist, host: Host) -> ToolResultMessage:
        """The tool result to store; its call id and tool name cannot be changed."""
        original = event.message
        for implementation in self._implementations["tool_result_persist"]:
            result = await self._call("tool_result_persist", implementation, ToolResultMessage, event=event, host=host)
            if result is not None:
                kept = attrs.evolve(result, tool_call_id=original.tool_call_id, tool_name=original.tool_name)
                event = attrs.evolve(event, message=kept)
        return event.message

    async def on_overflow(self, event: h.Overflow, host: Host) -> h.Freed | None:
        """The first answer that freed something."""
        async for freed in self._results("on_overflow", h.Freed, event=event, host=host):
            if freed.tokens > 0:
                return freed  # type: ignore[no-any-return]
        return None

    async def agent_end(self, event: h.AgentEnded, host: Host) -> None:
        await self._all("agent_end", event, host)

    async def before_compaction(self, event: h.BeforeCompaction, host: Host) -> h.FlushReport | None:
        """The first report of what was saved to memory; all implementations are called."""
        reports = [r async for r in self._results("before_compaction", h.FlushReport, event=event, host=host)]
        return reports[0] if reports else None

    async def on_compaction(self, event: h.Compacting, host: Host) -> h.CompactionResult | None:
        """The first answer with a summary or a cancel."""
        async for result in self._results("on_compaction", h.CompactionResult, event=event, host=host):
            if result.cancel or result.summary.strip():
                return result  # type: ignore[no-any-return]
        return None

    async def after_compaction(self, event: h.AfterCompaction, host: Host) -> None:
        await self._all("after_compaction", event, host)

    # --- start-up --------------------------------------------------------------------------------------

    def _collect(
        self, hook: str, expected: type[T], context: Any, objection: Callable[[T], str] = flaw
    ) -> list[tuple[str, T]]:
        """(plugin, object) of everything that the implementations return and nothing is wrong with."""
        collected: list[tuple[str, T]] = []
        for implementation in self._implementations[hook]:
            result = self._start_up(hook, implementation, context)
            for item in self._listed(hook, implementation, result, expected) or ():
                if not isinstance(item, expected):
                    self._fault(implementation, hook, f"returned {type(item).__name__}, expected {expected.__name__}")
                elif wrong := objection(item):
                    name = getattr(item, "name", "")
                    self._fault(
                        implementation, hook, f"returned {expected.__name__} {name!r:.100} with {wrong}; left out"
                    )
                else:
                    collected.append((implementation.plugin, item))
        return collected

    def _listed(self, hook: str, implementation: _Implementation, result: Any, expected: type[Any]) -> list[Any] | None:
        """A result of `_start_up` that is a list; anything else but None is reported."""
        if result is None or isinstance(result, list):
            return result
        self._fault(implementation, hook, f"returned {type(result).__name__}, expected a list of {expected.__name__}")
        return None

    def _start_up(self, hook: str, implementation: _Implementation, context: Any) -> Any:
        """The result of one implementation, made a list where it is any kind of one."""
        given = {"context": context} if "context" in implementation.parameters else {}

        def call() -> Any:
            result = implementation.function(**given)
            many = isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping)
            return list(result) if many else result

        with self._contained(hook, implementation, given) as answer:
            answer.value = run_with_limit(call, self._limit(hook))
        return answer.value

    def register_tools(self, context: h.RegistrationContext) -> list[tuple[str, Tool]]:
        return self._collect("register_tools", Tool, context)

    def register_memory_backends(self, context: h.RegistrationContext) -> list[tuple[str, BackendRegistration]]:
        return self._collect("register_memory_backends", BackendRegistration, context)

    def register_embedders(self, context: h.RegistrationContext) -> list[tuple[str, EmbedderRegistration]]:
        return self._collect("register_embedders", EmbedderRegistration, context)

    def register_models(self, context: h.RegistrationContext) -> list[tuple[str, ModelProvider]]:
        return self._collect("register_models", ModelProvider, context)

    def register_token_estimators(self, context: h.RegistrationContext) -> list[tuple[str, h.TokenEstimator]]:
        return self._collect("register_token_estimators", h.TokenEstimator, context)

    def register_commands(self, context: h.RegistrationContext) -> list[tuple[str, h.Command]]:
        return self._collect("register_commands", h.Command, context, command_flaw)

    # --- the system prompt -----------------------------------------------------------------------------

    def prompt_files(self, context: h.PromptContext) -> tuple[h.PromptFile, ...]:
        """The files after all plugins; what is no file is left out, what is no list changes nothing."""
        for implementation in self._implementations["prompt_files"]:
            result = self._start_up("prompt_files", implementation, context)
            items = self._listed("prompt_files", implementation, result, h.PromptFile)
            if items is None:
                continue
            for objection in filter(None, map(no_file, items)):
                self._fault(implementation, "prompt_files", objection)
            context = attrs.evolve(context, files=tuple(i for i in items if not no_file(i)))
        return context.files

    def prompt_sections(self, context: h.PromptContext) -> list[tuple[str, h.PromptSection]]:
        return self._collect("prompt_sections", h.PromptSection, context)

    def open_memory(self, context: h.MemoryContext) -> MemoryService | None:
        """The memory service of the plugin in slot `memory`; None without one, or when it failed."""
        owner = self.catalog.slot("memory")
        for implementation in self._implementations["open_memory"]:
            if owner is None or implementation.plugin != owner.name:
                continue
            service = self._start_up("open_memory", implementation, context)
            if isinstance(service, MemoryService):
                return service
            if service is not None:
                self._fault(implementation, "open_memory", "returned something that is not a MemoryService")
        return None
