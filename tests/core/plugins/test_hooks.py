"""Plugins: found, chosen, configured, isolated from each other, merged by the rules."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from builders import result, user

from lamella.config.schema import PluginsSection, SlotsSection
from lamella.plugins import hookimpl
from lamella.plugins.catalog import Catalog, load_plugins
from lamella.plugins.hooks import Hooks
from lamella.types import hooks as h
from lamella.types.events import PluginFault
from lamella.types.messages import TextBlock, ToolResultMessage, text_of
from lamella.types.tools import Tool


@frozen
class EntryPoint:
    name: str
    target: Any
    error: Exception | None = None

    def load(self) -> Any:
        if self.error:
            raise self.error
        return self.target


def hooks_of(*plugins: Any, faults: list[PluginFault] | None = None, **options: Any) -> Hooks:
    catalog = load_plugins(PluginsSection(), extra=plugins, sources=(), slot_chosen=False)
    return Hooks(catalog, on_fault=(faults if faults is not None else []).append, **options)


HOST: Any = None


# --- choosing and loading ------------------------------------------------------------------------------


class Quiet:
    @hookimpl
    def agent_end(self) -> None: ...


class Memory(Quiet):
    name = "memory-core"
    slot = "memory"


def load(sources: list[EntryPoint], only: list[str] | None = None, **section: Any) -> Catalog:
    return load_plugins(PluginsSection(**section), sources=sources, only=only)


def states(catalog: Catalog) -> dict[str, str]:
    return {r.name: r.state for r in catalog.records}


def test_one_bad_plugin_does_not_hinder_the_others() -> None:
    class Good:
        @hookimpl
        def agent_end(self, event: h.AgentEnded) -> None: ...

    class Misspelt:
        @hookimpl
        def agent_ends(self, event: h.AgentEnded) -> None: ...

    class Breaks:
        def __init__(self) -> None:
            raise RuntimeError("no disk")

    class WrongSlot:
        slot = "brain"

    catalog = load(
        [
            EntryPoint("good", Good),
            EntryPoint("good", Breaks),
            EntryPoint("misspelt", Misspelt),
            EntryPoint("broken", None, ImportError("No module named 'x'")),
            EntryPoint("breaks", Breaks),
            EntryPoint("wrong-slot", WrongSlot),
        ],
        slots=SlotsSection("none"),
    )
    assert states(catalog) == {
        "good": "on",
        "misspelt": "failed",
        "broken": "failed",
        "breaks": "failed",
        "wrong-slot": "failed",
    }
    messages = "\n".join(str(p) for p in catalog.problems)
    for part in ("name is taken", "did you mean agent_end?", "No module named 'x'", "no disk", "unknown slot 'brain'"):
        assert part in messages


def test_deny_allow_exact_list_and_slots() -> None:
    class Plain(Quiet):
        pass

    class Other(Quiet):
        slot = "memory"

    plain = [EntryPoint("a", Plain), EntryPoint("b", Plain)]
    sources = [EntryPoint("memory-core", Memory), *plain, EntryPoint("c", Other)]
    catalog = load(sources, deny=("b",))
    assert states(catalog) == {"memory-core": "on", "a": "on", "b": "off", "c": "off"}
    assert next(r.reason for r in catalog.records if r.name == "c") == "slot memory is given to 'memory-core'"
    assert states(load(sources, allow=("a",))) == {"memory-core": "on", "a": "on", "b": "off", "c": "off"}
    assert states(load(sources, ["a"])) == {"memory-core": "off", "a": "on", "b": "off", "c": "off"}
    assert set(states(load(sources, [])).values()) == {"off"}
    assert set(states(load(sources, enabled=False)).values()) == {"off"}
    assert states(load(sources, slots=SlotsSection("c")))["c"] == "on"
    misspelt = load(sources, allow=("memory-cor",), deny=("x",)).problems
    assert [(p.path, p.level) for p in misspelt] == [("plugins.allow", "warning"), ("plugins.deny", "warning")]
    assert "did you mean memory-core?" in misspelt[0].message


def test_a_slot_without_its_plugin_says_what_to_install() -> None:
    catalog = load([], slots=SlotsSection("memory-cor"))
    (problem,) = catalog.problems
    assert problem.level == "error"
    assert "pip install lamella-memory-cor" in problem.message
    assert load([], slots=SlotsSection("none")).problems == ()
    assert load_plugins(PluginsSection(), sources=(), slot_chosen=False).problems[0].level == "warning"


def test_a_wrong_section_fails_only_its_plugin_and_names_the_key() -> None:
    def positive(_i: Any, _a: Any, value: int) -> None:
        if value < 1:
            raise ValueError("expected 1 or more")

    @frozen
    class Config:
        size: int = field(default=1, validator=positive)

    class Sized:
        def __init__(self, config: Config) -> None:
            self.config = config

    Sized.Config = Config  # type: ignore[attr-defined]
    sources = [EntryPoint("sized", Sized)]
    none = SlotsSection("none")
    catalog = load(sources, config={"sized": {"size": 0}}, slots=none)
    assert states(catalog) == {"sized": "failed"}
    assert str(catalog.problems[0]) == "plugins.config.sized.size: expected 1 or more, found 0"
    catalog = load(sources, config={"sized": {"size": 3, "sise": 1}}, slots=none)
    assert catalog.active[0].plugin.config.size == 3
    assert "did you mean size?" in str(catalog.problems[0])


# --- isolation -----------------------------------------------------------------------------------------


def named(name: str, hook: str, function: Any, priority: int = 0) -> Any:
    """A plugin with one hook."""
    function.__name__ = hook
    return type(name, (), {"name": name, "priority": priority, hook: hookimpl(function)})()


async def test_hanging_raising_and_lying_plugins_are_skipped_with_their_names() -> None:
    faults: list[PluginFault] = []

    async def hangs(self: Any, event: h.Input) -> None:
        await asyncio.sleep(60)

    def hangs_in_thread(self: Any, event: h.Input) -> h.InputResult:
        time.sleep(0.6)
        return h.InputResult("late")

    def raises(self: Any, event: h.Input) -> None:
        raise RuntimeError("boom")

    def lies(self: Any, event: h.Input) -> str:
        return "text"

    def good(self: Any, event: h.Input) -> h.InputResult:
        return h.InputResult(event.text + "!")

    hooks = hooks_of(
        named("a-hangs", "input", hangs),
        named("b-slow", "input", hangs_in_thread),
        named("c-raises", "input", raises),
        named("d-lies", "input", lies),
        named("e-good", "input", good),
        faults=faults,
        timeouts={"input": 0.2},
    )
    answer = await hooks.input(h.Input("hi"), HOST)
    assert answer.text == "hi!"
    assert [(f.plugin, f.hook) for f in faults] == [
        ("a-hangs", "input"),
        ("b-slow", "input"),
        ("c-raises", "input"),
        ("d-lies", "input"),
    ]
    assert "within 0.2 s" in faults[0].error
    assert "returned str, expected InputResult" in faults[3].error


async def test_order_is_priority_then_name_with_first_and_last() -> None:
    order: list[str] = []

    def note(name: str) -> Any:
        def agent_end(self: Any, event: h.AgentEnded) -> None:
            order.append(name)

        return agent_end

    first = type("z", (), {"name": "z", "agent_end": hookimpl(note("z"), tryfirst=True)})()
    last = type("0", (), {"name": "0", "priority": 99, "agent_end": hookimpl(note("0"), trylast=True)})()
    hooks = hooks_of(
        last,
        named("b", "agent_end", note("b")),
        named("c", "agent_end", note("c"), priority=5),
        named("a", "agent_end", note("a")),
        first,
    )
    await hooks.agent_end(h.AgentEnded((), True), HOST)
    assert order == ["z", "c", "a", "b", "0"]


# --- merging -------------------------------------------------------------------------------------------


async def test_prompt_additions_join_and_the_last_base_wins() -> None:
    def first(self: Any, event: h.BeforePromptBuild) -> h.PromptAddition:
        return h.PromptAddition(system_prompt="A", append_system="one", prepend_context=" c1 ", model="m1")

    async def second(self: Any, event: h.BeforePromptBuild) -> h.PromptAddition:
        return h.PromptAddition(system_prompt="B", append_system="two", prepend_context="c2", model="m2")

    hooks = hooks_of(named("a", "before_prompt_build", first), named("b", "before_prompt_build", second))
    merged = await hooks.before_prompt_build(h.BeforePromptBuild("p", (), "base"), HOST)
    assert merged == h.PromptAddition("B", "", "one\n\ntwo", "c1\n\nc2", "m1")


async def test_a_block_is_final_and_arguments_are_chained() -> None:
    seen: list[Any] = []

    def widen(self: Any, event: h.BeforeToolCall) -> h.ToolCallVerdict:
        return h.ToolCallVerdict({**event.arguments, "a": 1})

    def block(self: Any, event: h.BeforeToolCall) -> h.ToolCallVerdict:
        seen.append(event.arguments)
        return h.ToolCallVerdict(block=True, reason="no")

    def undo(self: Any, event: h.BeforeToolCall) -> h.ToolCallVerdict:
        raise AssertionError("not reached")

    hooks = hooks_of(
        named("a", "before_tool_call", widen),
        named("b", "before_tool_call", block),
        named("c", "before_tool_call", undo),
    )
    verdict = await hooks.before_tool_call(h.BeforeToolCall("t", "c", {"b": 2}), HOST)
    assert (verdict.block, verdict.reason) == (True, "no")
    assert seen == [{"b": 2, "a": 1}]


async def test_tool_results_are_chained_and_keep_their_call() -> None:
    def plus(self: Any, event: h.ToolResultPersist) -> ToolResultMessage:
        text = text_of(event.message.content) + "+"
        return ToolResultMessage("other", "other", (TextBlock(text),), is_error=True)

    hooks = hooks_of(named("a", "tool_result_persist", plus), named("b", "tool_result_persist", plus))
    stored = await hooks.tool_result_persist(h.ToolResultPersist(result("c1", "raw")), HOST)
    assert (stored.tool_call_id, stored.tool_name, text_of(stored.content)) == ("c1", "demo", "raw++")
    assert stored.is_error


async def test_context_results_must_be_messages() -> None:
    faults: list[PluginFault] = []

    def cut(self: Any, event: h.BeforeModelCall) -> list[Any]:
        return list(event.messages[-1:])

    def wrong(self: Any, event: h.BeforeModelCall) -> list[Any]:
        return ["text"]

    hooks = hooks_of(named("a", "context", cut), named("b", "context", wrong), faults=faults)
    messages = await hooks.context(h.BeforeModelCall((user("1"), user("2")), 1, 100, 0), HOST)
    assert [text_of(m.content) for m in messages if m.role == "user"] == ["2"]
    assert [f.plugin for f in faults] == ["b"]


async def test_the_first_summary_wins_and_overflow_goes_on_until_freed() -> None:
    def nothing(self: Any, event: Any) -> None: ...

    def summary(self: Any, event: Any) -> h.CompactionResult:
        return h.CompactionResult("S")

    def zero(self: Any, event: Any) -> h.Freed:
        return h.Freed(0)

    def some(self: Any, event: Any) -> h.Freed:
        return h.Freed(5)

    hooks = hooks_of(
        named("a", "on_compaction", nothing),
        named("b", "on_compaction", summary),
        named("c", "on_overflow", zero),
        named("d", "on_overflow", some),
    )
    answer = await hooks.on_compaction(object(), HOST)  # type: ignore[arg-type]
    freed = await hooks.on_overflow(object(), HOST)  # type: ignore[arg-type]
    assert answer == h.CompactionResult("S")
    assert freed == h.Freed(5)


def test_registrations_are_checked_one_by_one() -> None:
    faults: list[PluginFault] = []
    tool = Tool("t", "d", {"type": "object"}, lambda a, c: "x")

    def some(self: Any) -> list[Any]:
        return [tool, "no tool"]

    def raises(self: Any, context: h.RegistrationContext) -> list[Any]:
        raise ValueError("bad")

    hooks = hooks_of(named("a", "register_tools", some), named("b", "register_tools", raises), faults=faults)
    context = h.RegistrationContext("main", Path(), Path())
    assert hooks.register_tools(context) == [("a", tool)]
    assert [f.plugin for f in faults] == ["a", "b"]


def test_an_extra_parameter_is_reported() -> None:
    class Wrong:
        name = "wrong"

        @hookimpl
        def agent_end(self, event: Any, surprise: Any) -> None: ...

    catalog = load_plugins(PluginsSection(), extra=[Wrong], sources=(), slot_chosen=False)
    wrong = next(p for p in catalog.problems if p.level == "error")
    assert str(wrong) == "plugin wrong: agent_end has a parameter 'surprise'; there are: event, host"
    assert states(catalog) == {"wrong": "failed"}
    assert not Hooks(catalog).implemented("agent_end")


@pytest.mark.parametrize("name", sorted(Hooks.__dict__.keys() & {"input", "context", "agent_end"}))
async def test_hooks_without_plugins_change_nothing(name: str) -> None:
    hooks = hooks_of()
    assert not hooks.implemented(name)
    assert (await hooks.input(h.Input("x"), HOST)).text == "x"


def test_a_time_out_for_an_unknown_hook_is_reported() -> None:
    (problem,) = hooks_of(timeouts={"inputs": 3.0}).problems
    assert str(problem) == "hooks.timeouts.inputs: no hook has this name (did you mean input?)"
