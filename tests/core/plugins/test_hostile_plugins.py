"""Plugins that do what no plugin should: they are reported, and everything else goes on."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from lamella.cli.commands import run_command
from lamella.config.schema import PluginsSection, SlotsSection
from lamella.errors import LamellaError
from lamella.plugins import hookimpl
from lamella.plugins.catalog import entry_points, load_plugins
from lamella.plugins.hooks import Hooks
from lamella.types import hooks as h
from lamella.types.events import PluginFault
from lamella.types.memory import BackendRegistration, EmbedderRegistration
from lamella.types.messages import AssistantMessage, TextBlock, UserMessage
from lamella.types.model import ModelProvider
from lamella.types.tools import Tool

HOST: Any = None


@frozen
class Entry:
    name: str
    target: Any

    def load(self) -> Any:
        return self.target() if self.name == "at-import" else self.target


def leave(*_: Any, **__: Any) -> Any:
    sys.exit(3)


async def leave_async(*_: Any, **__: Any) -> Any:
    sys.exit(3)


async def cancel_async(*_: Any, **__: Any) -> Any:
    raise asyncio.CancelledError


def stop_iteration(*_: Any, **__: Any) -> Any:
    raise StopIteration


def interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


async def ignores_cancellation(*_: Any, **__: Any) -> Any:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        await asyncio.sleep(3600)


def hooks_with(hook: str, function: Any, faults: list[PluginFault]) -> Hooks:
    def implementation(self: Any, event: Any) -> Any:
        return function()

    async def implementation_async(self: Any, event: Any) -> Any:
        return await function()

    chosen = implementation_async if asyncio.iscoroutinefunction(function) else implementation
    plugin = type("Bad", (), {"name": "bad", hook: hookimpl(chosen)})()
    catalog = load_plugins(PluginsSection(), extra=[plugin], sources=(), slot_chosen=False)
    return Hooks(catalog, timeouts={hook: 0.1}, on_fault=faults.append)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (leave, "SystemExit"),
        (leave_async, "SystemExit"),
        (cancel_async, "CancelledError"),
        (stop_iteration, "StopIteration"),
        (interrupt, "KeyboardInterrupt"),
        (ignores_cancellation, "no answer within 0.1 s"),
    ],
)
def test_what_a_hook_raises_ends_nothing(function: Any, said: str) -> None:
    faults: list[PluginFault] = []
    hooks = hooks_with("input", function, faults)
    result = asyncio.run(hooks.input(h.Input("hello", "user"), HOST))
    assert result.text == "hello"
    assert [f.plugin for f in faults] == ["bad"]
    assert said in faults[0].error


def test_a_timeout_of_the_plugins_own_is_told_as_such() -> None:
    def refuse() -> None:
        raise TimeoutError("the server is slow")

    faults: list[PluginFault] = []
    asyncio.run(hooks_with("input", refuse, faults).input(h.Input("hello", "user"), HOST))
    assert faults[0].error == "TimeoutError: the server is slow"


def test_a_cancelled_caller_stays_cancelled() -> None:
    async def main() -> None:
        hooks = hooks_with("input", slow, faults)
        hooks._timeouts["input"] = 3600
        await asyncio.wait_for(hooks.input(h.Input("hello", "user"), HOST), 0.05)

    async def slow() -> None:
        await asyncio.sleep(3600)

    faults: list[PluginFault] = []
    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert faults == []


def test_a_start_up_hook_that_gives_no_list_is_reported() -> None:
    class Five:
        name = "five"

        @hookimpl
        def register_tools(self) -> Any:
            return 5

    faults: list[PluginFault] = []
    catalog = load_plugins(PluginsSection(), extra=[Five()], sources=(), slot_chosen=False)
    context: Any = None
    assert Hooks(catalog, on_fault=faults.append).register_tools(context) == []
    assert "expected a list of Tool" in faults[0].error


class Plain:
    pass


class NotAttrs:
    Config = dict


class Number:
    Config = 5


class LeavesAtStart:
    def __init__(self) -> None:
        sys.exit(4)


class OddPriority:
    priority = "high"


class BrokenProperty:
    @property
    def slot(self) -> str:
        sys.exit(9)


@pytest.mark.parametrize(
    "target", [NotAttrs, Number, LeavesAtStart, OddPriority, BrokenProperty()], ids=lambda t: str(t)[:40]
)
def test_a_plugin_that_cannot_be_loaded_takes_nothing_down(target: Any) -> None:
    sources = [Entry("bad", target), Entry("good", Plain)]
    catalog = load_plugins(PluginsSection(), sources=sources, slot_chosen=False)
    assert {r.name: r.state for r in catalog.records} == {"bad": "failed", "good": "on"}
    assert any(p.path == "plugin bad" for p in catalog.problems)


def test_a_plugin_that_leaves_at_import_takes_nothing_down() -> None:
    catalog = load_plugins(PluginsSection(), sources=[Entry("at-import", leave)], slot_chosen=False)
    assert catalog.records[0].state == "failed"
    assert "SystemExit: 3" in catalog.records[0].reason


# --- answers that are wrong ----------------------------------------------------------------------------

ASKED = (UserMessage("hello"),)


def hooks_that(hook: str, function: Any, faults: list[PluginFault], limit: float = 10.0) -> Hooks:
    """One plugin with one hook, which calls the function with the event."""
    plugin = type("Bad", (), {"name": "bad", hook: hookimpl(lambda self, event: function(event))})()
    catalog = load_plugins(PluginsSection(), extra=[plugin], sources=(), slot_chosen=False)
    return Hooks(catalog, timeouts={hook: limit}, on_fault=faults.append)


def and_then(last: Any) -> Any:
    def lazily(event: h.BeforeModelCall) -> Any:
        yield from event.messages
        last()

    return lazily


def fail() -> None:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (and_then(fail), "RuntimeError: boom"),
        (and_then(leave), "SystemExit"),
        (and_then(lambda: time.sleep(2)), "no answer within 0.2 s"),
        (lambda e: h.ContextEdit(m for m in and_then(fail)(e)), "RuntimeError: boom"),
        (lambda _: h.ContextEdit(5), "messages as int"),
        (lambda _: h.ContextEdit(None, 5), "notes as int"),
        (lambda _: "hello", "messages as str"),
        (lambda _: {"messages": []}, "messages as dict"),
        (lambda _: ["hello"], "str among the messages"),
        (lambda _: [UserMessage(None)], "UserMessage with content=None, expected a string or a tuple"),
        (lambda _: [UserMessage((5,))], "UserMessage with a block that is int"),
        (lambda _: [UserMessage((TextBlock(None),))], "UserMessage with text=None, expected a string"),
        (lambda _: [AssistantMessage("text")], "AssistantMessage with content='text', expected a tuple of blocks"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_wrong_answer_about_the_context_leaves_it_as_it_was(answer: Any, said: str, is_async: bool) -> None:
    async def later(event: h.BeforeModelCall) -> Any:
        return answer(event)

    faults: list[PluginFault] = []
    hooks = hooks_that("context", later if is_async else answer, faults, limit=0.2)
    assert await hooks.context(h.BeforeModelCall(ASKED, 1, 1000, 0), HOST) == ASKED
    assert [f.plugin for f in faults] == ["bad"]
    assert said in faults[0].error


async def test_a_lazy_answer_about_the_context_is_as_good_as_a_list() -> None:
    def shout(event: h.BeforeModelCall) -> Any:
        yield from event.messages
        yield UserMessage("HELLO")

    hooks = hooks_that("context", shout, faults := [])
    assert await hooks.context(h.BeforeModelCall(ASKED, 1, 1000, 0), HOST) == (*ASKED, UserMessage("HELLO"))
    assert faults == []


async def test_fields_of_the_wrong_type_are_told_and_change_nothing() -> None:
    faults: list[PluginFault] = []
    hooks = hooks_that("input", lambda _: h.InputResult(text=5), faults)
    assert (await hooks.input(h.Input("hello"), HOST)).text == "hello"
    hooks = hooks_that("on_overflow", lambda _: h.Freed(tokens="many"), faults)
    assert await hooks.on_overflow(h.Overflow((), 1, 1, ""), HOST) is None
    hooks = hooks_that("before_tool_call", lambda _: h.ToolCallVerdict([1]), faults)
    assert (await hooks.before_tool_call(h.BeforeToolCall("t", "1", {"a": 1}), HOST)).arguments == {"a": 1}
    assert [f.error for f in faults] == [
        "returned text=5, expected a string",
        "returned tokens='many', expected a whole number",
        "returned arguments=[1], expected a mapping",
    ]


async def test_what_blocks_still_blocks_when_its_reason_is_no_text() -> None:
    faults: list[PluginFault] = []
    hooks = hooks_that("before_tool_call", lambda _: h.ToolCallVerdict(block=True, reason=OSError("no")), faults)
    assert (await hooks.before_tool_call(h.BeforeToolCall("t", "1", {}), HOST)).block
    preparation = h.Preparation("", (), (), False, 1, None, (), ())
    hooks = hooks_that("on_compaction", lambda _: h.CompactionResult(cancel=True, reason=5), faults)
    result = await hooks.on_compaction(h.Compacting(preparation, (), "manual"), HOST)
    assert result is not None and result.cancel
    assert [f.error for f in faults] == [
        "returned reason=OSError('no'), expected a string",
        "returned reason=5, expected a string",
    ]


async def test_an_async_generator_is_told_that_nobody_runs_it() -> None:
    async def yields(self: Any, event: Any) -> Any:
        yield 1

    faults: list[PluginFault] = []
    plugin = type("Bad", (), {"name": "bad", "agent_end": hookimpl(yields)})()
    catalog = load_plugins(PluginsSection(), extra=[plugin], sources=(), slot_chosen=False)
    await Hooks(catalog, on_fault=faults.append).agent_end(h.AgentEnded((), True), HOST)
    assert "return instead of yield" in faults[0].error


async def test_parameters_with_a_default_are_given_too() -> None:
    seen: list[Any] = []

    class Defaults:
        name = "defaults"

        @hookimpl
        def agent_end(self, event: Any, host: Any = None, own: int = 3) -> None:
            seen.append((host, own))

        @hookimpl
        def before_turn(self, *, event: Any = None, host: Any) -> None:
            seen.append((event, host))

    catalog = load_plugins(PluginsSection(), extra=[Defaults()], sources=(), slot_chosen=False)
    hooks = Hooks(catalog, on_fault=lambda fault: pytest.fail(fault.error))
    turn, host = h.BeforeTurn("p", 1, 1, 1, 0), Any
    await hooks.agent_end(h.AgentEnded((), True), host)
    await hooks.before_turn(turn, host)
    assert seen == [(host, 3), (turn, host)]


# --- plugins as a beginner writes them -----------------------------------------------------------------


def told(*plugins: Any, **config: Any) -> list[str]:
    """What is said about plugins that a program gives."""
    section = PluginsSection(slots=SlotsSection("none"), config=config)
    catalog = load_plugins(section, sources=(), extra=plugins)
    return [f"{problem.level}: {problem}" for problem in (*catalog.problems, *Hooks(catalog).problems)]


def given(**members: Any) -> Any:
    return type("Given", (), {"name": "given", **members})


async def nothing_async(self: Any) -> None: ...


def nothing(self: Any) -> None: ...


def unmarked(self: Any) -> None: ...


def misnamed(self: Any, evnt: Any, host: Any) -> None: ...


def wraps(self: Any) -> Any:
    yield


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (given(agent_end=unmarked), "warning: plugin given: implements no hooks, so it does nothing; methods"),
        (
            nothing,
            "warning: plugin nothing: implements no hooks, so it does nothing (it is a function, expected a class",
        ),
        ("given", "warning: plugin str: implements no hooks, so it does nothing (it is a str, expected a class"),
        (None, "warning: plugin NoneType: implements no hooks"),
        (
            given(agent_end=hookimpl(misnamed)),
            "agent_end has a parameter 'evnt' (did you mean event?); there are: event",
        ),
        (given(agent_end=hookimpl(wraps, wrapper=True)), "error: plugin given: agent_end is a hook wrapper"),
        (given(agent_end=hookimpl(wraps, hookwrapper=True)), "error: plugin given: agent_end is a hook wrapper"),
        (given(register_tools=hookimpl(nothing_async)), "register_tools is async; this hook is called without"),
        (given(Config=dict, agent_end=hookimpl(nothing)), "its Config is <class 'dict'>, expected an attrs class"),
        (given(priority="high", agent_end=hookimpl(nothing)), "has the priority 'high', expected a whole number"),
        (given(priority=0.5, agent_end=hookimpl(nothing)), "has the priority 0.5, expected a whole number"),
    ],
)
def test_what_a_beginner_gets_wrong_is_told_in_one_line(plugin: Any, said: str) -> None:
    (line,) = told(plugin)
    assert said in line
    assert "\n" not in line


def test_a_name_that_is_given_twice_stays_with_the_first() -> None:
    first, second = given(agent_end=hookimpl(nothing)), given(input=hookimpl(nothing))
    assert told(first, second) == [
        "error: plugin given: the name is taken; the plugin that the program gives is left out"
    ]
    catalog = load_plugins(PluginsSection(), sources=(), extra=[first, second], slot_chosen=False)
    assert [r.hooks for r in catalog.active] == [("agent_end",)]


def test_settings_of_a_plugin_that_is_made_already_are_told_to_do_nothing() -> None:
    @frozen
    class Config:
        sides: int = 6

    plugin = given(Config=Config, agent_end=hookimpl(nothing))
    assert told(plugin()) == []
    (line,) = told(plugin(), given={"sides": 3})
    assert line.startswith("warning: plugins.config.given: these settings do not reach the plugin")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def unspeakable(*_: Any, **__: Any) -> Any:
    raise Unspeakable


def verbose(*_: Any, **__: Any) -> Any:
    raise ValueError("first\n  second\n")


@pytest.mark.parametrize(
    ("raises", "said"), [(unspeakable, "Unspeakable: (it cannot be shown)"), (verbose, "ValueError: first second")]
)
def test_whatever_an_error_says_is_one_line(raises: Any, said: str) -> None:
    catalog = load_plugins(PluginsSection(), sources=[Entry("at-import", raises)], slot_chosen=False)
    assert catalog.records[0].reason == f"cannot be imported: {said}"
    faults: list[PluginFault] = []
    assert asyncio.run(hooks_with("input", raises, faults).input(h.Input("x"), HOST)).text == "x"
    assert faults[0].error == said


@pytest.mark.parametrize("owner", ["lamella-memory-core", "Lamella_Memory.Core"])
def test_of_two_plugins_of_one_name_its_namesake_is_taken(
    owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for distribution, value in (("aaa", "aaa:plugin"), (owner, "zzz:plugin")):
        folder = tmp_path / f"{distribution}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[lamella.plugins]\nmemory-core = {value}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert [entry.value for entry in entry_points()] == ["zzz:plugin", "aaa:plugin"]


WRONG_OBJECTS = [
    ("register_tools", Tool(5, "d", {}, leave), "Tool 5 with name=5, expected a string"),
    ("register_tools", Tool("t", None, {}, leave), "Tool 't' with description=None, expected a string"),
    ("register_tools", Tool("t", "d", "text", leave), "Tool 't' with parameters='text', expected a mapping"),
    ("register_tools", Tool("t", "d", {}, 5), "Tool 't' with run=5, expected a function"),
    ("register_memory_backends", BackendRegistration(5, leave), "BackendRegistration 5 with name=5"),
    ("register_memory_backends", BackendRegistration("b", 5), "BackendRegistration 'b' with factory=5"),
    ("register_embedders", EmbedderRegistration("e", 5), "EmbedderRegistration 'e' with factory=5"),
    ("register_models", ModelProvider("m", 5), "ModelProvider 'm' with factory=5, expected a function"),
    ("register_token_estimators", h.TokenEstimator("e", 5), "TokenEstimator 'e' with estimate=5, expected a function"),
    ("register_commands", h.Command("c", "s", 5), "Command 'c' with run=5, expected a function"),
    ("prompt_sections", h.PromptSection("s", None), "PromptSection 's' with text=None, expected a string"),
    (
        "prompt_sections",
        h.PromptSection("s", "t", order="first"),
        "PromptSection 's' with order='first', expected a whole",
    ),
]


@pytest.mark.parametrize(("hook", "item", "said"), WRONG_OBJECTS)
def test_an_object_with_a_wrong_field_is_left_out(hook: str, item: Any, said: str) -> None:
    faults: list[PluginFault] = []
    plugin = type("Bad", (), {"name": "bad", hook: hookimpl(lambda self: [item])})()
    catalog = load_plugins(PluginsSection(), extra=[plugin], sources=(), slot_chosen=False)
    assert getattr(Hooks(catalog, on_fault=faults.append), hook)(None) == []
    assert [f.plugin for f in faults] == ["bad"]
    assert said in faults[0].error and faults[0].error.endswith("; left out")


@pytest.mark.parametrize("name", ["", "a b", "/c", "CAP", "c:", "a\nb"])
def test_a_command_that_nobody_can_type_is_left_out(name: str) -> None:
    faults: list[PluginFault] = []
    plugin = type("Bad", (), {"name": "bad", "register_commands": hookimpl(lambda self: [h.Command(name, "s", leave)])})
    catalog = load_plugins(PluginsSection(), extra=[plugin], sources=(), slot_chosen=False)
    context: Any = None
    assert Hooks(catalog, on_fault=faults.append).register_commands(context) == []
    assert "cannot be typed" in faults[0].error


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda _: fail(), "command /try failed: RuntimeError: boom"),
        (leave, "command /try failed: SystemExit: 3"),
        (leave_async, "command /try failed: SystemExit: 3"),
        (lambda: "x", "command /try failed: TypeError"),
    ],
)
async def test_a_command_that_fails_leaves_the_chat_running(
    lamella_runtime: Any, run: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = type("Bad", (), {"name": "bad", "register_commands": hookimpl(lambda self: [h.Command("try", "s", run)])})
    runtime = lamella_runtime(plugin)
    assert await run_command(runtime, runtime.session(), "/try it")
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        (lambda _model, _settings: 5, "model provider 'mine' gave int, expected a Model"),
        (leave, "model provider 'mine' failed for 'x': SystemExit: 3"),
        (lambda: None, "model provider 'mine' failed for 'x': TypeError"),
    ],
)
def test_a_model_provider_that_fails_is_an_error_of_lamella(lamella_runtime: Any, factory: Any, said: str) -> None:
    plugin = given(register_models=hookimpl(lambda self: [ModelProvider("mine", factory)]))
    with pytest.raises(LamellaError, match=said):
        _ = lamella_runtime(plugin, model="mine/x").model


def test_a_memory_that_fails_at_closing_hides_nothing_that_was_done(lamella_runtime: Any) -> None:
    class Memory:
        search = read = append = sync = status = lambda self, *_, **__: {}

        def close(self) -> None:
            fail()

    plugin = given(slot="memory", open_memory=hookimpl(lambda self: Memory()))
    runtime = lamella_runtime(plugin, settings={"plugins.slots.memory": "given"}, allow_faults=True)
    assert runtime.require_memory().status() == {}
    heard: list[Any] = []
    runtime.listeners.append(heard.append)
    runtime.close()
    runtime.close()
    assert [(f.plugin, f.error) for f in heard] == [("given", "closing: RuntimeError: boom")]
