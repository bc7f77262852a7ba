"""Plugins and hooks at their edges: the cases J of the list, each under its number."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from lamella import Tool, hookimpl
from lamella.config.schema import PluginsSection, SlotsSection
from lamella.models.scripted import ScriptedModel
from lamella.plugins.catalog import Catalog, load_plugins
from lamella.plugins.hooks import Hooks
from lamella.types import hooks as h
from lamella.types.events import PluginFault
from lamella.types.messages import TextBlock, UserMessage, text_of

HOST: Any = None
BUILD = h.BeforePromptBuild("p", (), "base")
REGISTRATION = h.RegistrationContext("main", Path(), Path())


@frozen
class Entry:
    name: str
    target: Any
    error: BaseException | None = None

    def load(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.target


class Quiet:
    """A plugin that says nothing."""

    @hookimpl
    def agent_end(self) -> None: ...


def plugin(name: str, priority: int = 0, **functions: Any) -> Any:
    """A plugin with these hooks; each is called with its event alone."""
    members: dict[str, Any] = {"name": name, "priority": priority}
    for hook, function in functions.items():
        members[hook] = hookimpl(_method(function))
    return type(name, (), members)()


def _method(function: Any) -> Any:
    async def implementation(self: Any, event: Any) -> Any:
        return function(event)

    return implementation


def hooks_of(*plugins: Any, faults: list[PluginFault] | None = None, **section: Any) -> Hooks:
    catalog = load_plugins(PluginsSection(**section), extra=plugins, sources=(), slot_chosen=False)
    return Hooks(catalog, on_fault=([] if faults is None else faults).append, timeouts={"input": 0.1})


def says(**fields: str) -> Any:
    return lambda _event: h.PromptAddition(**fields)


# --- what plugins add to prompts: J1 to J7 ------------------------------------------------------------------


async def test_j1_contexts_are_joined_by_priority() -> None:
    hooks = hooks_of(
        plugin("a", 0, before_prompt_build=says(prepend_context="zero")),
        plugin("b", 10, before_prompt_build=says(prepend_context="ten")),
    )
    assert (await hooks.before_prompt_build(BUILD, HOST)).prepend_context == "ten\n\nzero"


async def test_j2_the_last_system_prompt_wins() -> None:
    hooks = hooks_of(
        plugin("a", 10, before_prompt_build=says(system_prompt="ten")),
        plugin("b", 0, before_prompt_build=says(system_prompt="zero")),
    )
    assert (await hooks.before_prompt_build(BUILD, HOST)).system_prompt == "zero"


async def test_j3_the_first_model_wins() -> None:
    hooks = hooks_of(
        plugin("a", 0, before_agent_start=says(model="x/zero")),
        plugin("b", 10, before_agent_start=says(model="x/ten")),
        plugin("c", 5, before_agent_start=says(model="x/five")),
    )
    assert (await hooks.before_agent_start(BUILD, HOST)).model == "x/ten"


async def test_j4_j5_a_failure_and_an_empty_answer_hinder_nobody() -> None:
    def raises(_event: Any) -> None:
        raise RuntimeError("boom")

    faults: list[PluginFault] = []
    hooks = hooks_of(
        plugin("a", 2, before_prompt_build=raises),
        plugin("b", 1, before_prompt_build=lambda _event: None),
        plugin("c", 0, before_prompt_build=says(append_system="there")),
        faults=faults,
    )
    assert await hooks.before_prompt_build(BUILD, HOST) == h.PromptAddition(append_system="there")
    assert [(f.plugin, f.error) for f in faults] == [("a", "RuntimeError: boom")]


async def test_j6_texts_of_the_prompt_come_before_those_of_the_start(lamella_runtime: Any) -> None:
    model = ScriptedModel(["Yes."])
    both = plugin(
        "both",
        before_agent_start=says(prepend_context="SECOND", prepend_system="SYS-2"),
        before_prompt_build=says(prepend_context="FIRST", prepend_system="SYS-1"),
    )
    await lamella_runtime(both, model=model).ask("Well?")
    last = text_of(model.requests[0].messages[-1].content)
    assert last.index("FIRST") < last.index("SECOND") < last.index("Well?")
    system = str(model.requests[0].system_prompt)
    assert system.index("SYS-1") < system.index("SYS-2")


async def test_j7_a_plugin_without_prompt_text_chooses_a_model_all_the_same() -> None:
    every = dict.fromkeys(("system_prompt", "prepend_system", "append_system", "prepend_context"), "no")
    quiet = plugin("quiet", before_prompt_build=says(**every), before_agent_start=says(**every, model="x/y"))
    other = plugin("other", before_prompt_build=says(append_system="yes"))
    hooks = hooks_of(quiet, other, without_prompt_text=("quiet",))
    assert await hooks.before_prompt_build(BUILD, HOST) == h.PromptAddition(append_system="yes")
    assert await hooks.before_agent_start(BUILD, HOST) == h.PromptAddition(model="x/y")


def test_j7_nor_has_it_sections() -> None:
    class Quiet:
        name = "quiet"

        @hookimpl
        def prompt_sections(self) -> list[h.PromptSection]:
            return [h.PromptSection("mine", "text")]

    context = h.PromptContext("main", Path(), Path())
    assert [s.name for _, s in hooks_of(Quiet()).prompt_sections(context)] == ["mine"]
    assert hooks_of(Quiet(), without_prompt_text=("quiet",)).prompt_sections(context) == []


# --- tools: J9, J17, J18 --------------------------------------------------------------------------------------


async def test_j9_a_block_cannot_be_undone() -> None:
    hooks = hooks_of(
        plugin("a", 1, before_tool_call=lambda _e: h.ToolCallVerdict(block=True, reason="no")),
        plugin("b", 0, before_tool_call=lambda _e: h.ToolCallVerdict(block=False)),
    )
    assert (await hooks.before_tool_call(h.BeforeToolCall("t", "1", {}), HOST)).block


class Tools:
    def __init__(self, name: str, *tools: Tool) -> None:
        self.name = name
        self._tools = tools

    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        return self._tools


def tool(name: str, **fields: Any) -> Tool:
    return Tool(name, "A tool.", {"type": "object"}, lambda _a, _c: "done", **fields)


def test_j17_a_tool_with_a_taken_name_is_skipped_and_reported(lamella_runtime: Any) -> None:
    runtime = lamella_runtime(Tools("mine", tool("read"), tool("fetch"), tool("no such name!")))
    assert runtime.tools["read"].owner == "core"
    assert runtime.tools["fetch"].owner == "mine"
    told = [n.message for n in runtime.notices if n.code == "tool_skipped"]
    assert told == [
        "tool 'read' of mine was skipped: the name is taken by core",
        "tool 'no such name!' of mine was skipped: a name has 1 to 64 letters, digits, _ or -",
    ]


@pytest.mark.parametrize(("optional", "offered"), [((), []), (("fetch",), ["fetch"]), (("mine",), ["fetch", "send"])])
def test_j18_optional_tools_are_offered_where_they_are_named(
    lamella_runtime: Any, optional: tuple[str, ...], offered: list[str]
) -> None:
    mine = Tools("mine", tool("fetch", optional=True), tool("send", optional=True), tool("plain"))
    runtime = lamella_runtime(mine, settings={"tools.optional": list(optional)})
    assert sorted(runtime.tools.keys() & {"fetch", "send", "plain"}) == sorted([*offered, "plain"])


# --- choosing: J10 to J15, J24 -------------------------------------------------------------------------------


class Slot:
    slot = "memory"


def catalog_of(*entries: Entry, memory: str = "memory-core", **section: Any) -> Catalog:
    return load_plugins(PluginsSection(slots=SlotsSection(memory), **section), sources=entries)


def states(catalog: Catalog) -> dict[str, str]:
    return {r.name: r.state for r in catalog.records}


TWO = (Entry("memory-core", Slot), Entry("memory-lancedb", Slot))


def test_j10_j11_the_slot_decides_which_memory_there_is() -> None:
    assert states(catalog_of(*TWO, memory="none")) == {"memory-core": "off", "memory-lancedb": "off"}
    assert states(catalog_of(*TWO, memory="memory-lancedb")) == {"memory-core": "off", "memory-lancedb": "on"}


def test_j12_an_unknown_slot_is_told_and_the_rest_runs() -> None:
    catalog = catalog_of(*TWO, Entry("other", Quiet), memory="memory-lance")
    assert states(catalog) == {"memory-core": "off", "memory-lancedb": "off", "other": "on"}
    (problem,) = catalog.problems
    assert "did you mean memory-lancedb?" in problem.message and "pip install lamella-memory-lance" in problem.message


def test_j13_j14_a_slot_selects_its_plugin_and_deny_takes_it_out() -> None:
    assert states(catalog_of(*TWO, allow=("other",)))["memory-core"] == "on"
    assert states(catalog_of(*TWO, deny=("memory-core",)))["memory-core"] == "off"


@pytest.mark.parametrize(
    "error",
    [
        ImportError("DLL load failed while importing _native"),
        OSError("libfoo.so.1: cannot open shared object file"),
        SyntaxError("invalid syntax"),
        RecursionError("too deep"),
        MemoryError(),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        type("Odd", (BaseException,), {})("odd"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_j15_whatever_an_import_raises_the_others_load(error: BaseException) -> None:
    catalog = catalog_of(Entry("bad", None, error), Entry("good", Quiet), memory="none")
    assert states(catalog) == {"bad": "failed", "good": "on"}
    (problem,) = catalog.problems
    assert problem.path == "plugin bad"
    assert type(error).__name__ in problem.message


def test_j15_an_import_that_hangs_is_left_behind() -> None:
    released: list[str] = []

    class Hangs:
        name = "hangs"

        def load(self) -> Any:
            while not released:
                time.sleep(0.01)
            return Quiet

    sources = [Entry("a", Quiet), Hangs(), Entry("z", Quiet)]
    try:
        section = PluginsSection(slots=SlotsSection("none"), load_timeout_seconds=0.1)
        catalog = load_plugins(section, sources=sources)
    finally:
        released.append("now")
    assert states(catalog) == {"a": "on", "hangs": "failed", "z": "on"}
    (problem,) = catalog.problems
    assert str(problem) == (
        "plugin hangs: cannot be loaded: it was not ready within 0.1 s (plugins.load_timeout_seconds); "
        "plugins.deny leaves it out at once"
    )


def test_j16_a_wrong_config_leaves_the_plugin_out_and_nothing_of_it_runs() -> None:
    made: list[Any] = []

    @frozen
    class Config:
        size: int = 1

    class Sized:
        def __init__(self, config: Config) -> None:
            made.append(config)

    Sized.Config = Config  # type: ignore[attr-defined]
    config = {"sized": {"size": "big"}}
    catalog = catalog_of(Entry("sized", Sized), Entry("other", Quiet), memory="none", config=config)
    assert states(catalog) == {"sized": "failed", "other": "on"}
    assert "plugins.config.sized.size" in str(catalog.problems[0])
    assert made == []


def test_j24_the_first_of_a_name_is_kept() -> None:
    catalog = catalog_of(Entry("a", Slot), Entry("a", Quiet), memory="a")
    assert states(catalog) == {"a": "on"}
    assert catalog.records[0].slot == "memory"
    assert "the name is taken" in catalog.problems[0].message


# --- running: J8, J22, J23 -----------------------------------------------------------------------------------


async def test_j8_a_plain_function_may_return_an_awaitable() -> None:
    async def later() -> h.InputResult:
        return h.InputResult("awaited")

    class Lazy:
        name = "lazy"

        @hookimpl
        def input(self, event: h.Input) -> Any:
            return later()

    assert (await hooks_of(Lazy()).input(h.Input("x"), HOST)).text == "awaited"


async def test_j22_a_hook_that_hangs_is_cut_and_the_turn_goes_on(lamella_runtime: Any) -> None:
    class Hangs:
        name = "hangs"

        @hookimpl
        async def before_turn(self, event: h.BeforeTurn) -> None:
            await asyncio.Event().wait()

    runtime = lamella_runtime(
        Hangs, model=ScriptedModel(["Done."]), settings={"hooks.timeouts.before_turn": 0.1}, allow_faults=True
    )
    heard: list[Any] = []
    runtime.listeners.append(heard.append)
    assert (await runtime.ask("Go.")).text == "Done."
    faults = [e for e in heard if isinstance(e, PluginFault)]
    assert [(f.plugin, f.hook, f.error) for f in faults] == [("hangs", "before_turn", "gave no answer within 0.1 s")]


async def test_j23_what_a_hook_changes_in_its_event_changes_nothing() -> None:
    seen: list[Any] = []

    def change(event: h.BeforeModelCall) -> None:
        with pytest.raises(AttributeError):
            event.messages = ()  # type: ignore[misc]
        with pytest.raises(AttributeError):
            event.messages.append(1)  # type: ignore[attr-defined]

    messages = (UserMessage((TextBlock("hello"),)),)
    faults: list[PluginFault] = []
    hooks = hooks_of(
        plugin("a", 1, context=change), plugin("b", 0, context=lambda e: seen.append(e.messages)), faults=faults
    )
    assert await hooks.context(h.BeforeModelCall(messages, 1, 100, 0.0), HOST) == messages
    assert seen == [messages] and faults == []


# --- names that are taken --------------------------------------------------------------------------------------


def test_taken_names_are_told_by_plugin_and_the_first_keeps_them(lamella_runtime: Any) -> None:
    from lamella.types.memory import BackendRegistration, EmbedderRegistration

    def never(*_: Any) -> Any:
        raise AssertionError("opened")

    class Greedy:
        def __init__(self, name: str) -> None:
            self.name = name

        @hookimpl
        def register_memory_backends(self) -> list[BackendRegistration]:
            return [BackendRegistration("plain", never, self.name)]

        @hookimpl
        def register_embedders(self) -> list[EmbedderRegistration]:
            return [EmbedderRegistration("vec", never, self.name)]

        @hookimpl
        def register_commands(self) -> list[h.Command]:
            return [h.Command("roll", self.name, never), h.Command("status", "another status", never)]

        @hookimpl
        def register_token_estimators(self) -> list[h.TokenEstimator]:
            return [h.TokenEstimator("count", never), h.TokenEstimator("pi", never)]

    runtime = lamella_runtime(Greedy("a"), Greedy("b"), settings={"context.estimator": "lamella"})
    assert runtime.memory_backends["plain"].summary == "a"
    assert runtime.embedders["vec"].summary == "a"
    assert {n: c.summary for n, c in runtime.commands.items()} == {"roll": "a"}
    assert callable(runtime.estimate)
    told = {n.message for n in runtime.notices if n.code == "name_taken"}
    assert told == {
        "memory backend 'plain' of b: the name is taken",
        "embedder 'vec' of b: the name is taken",
        "command 'roll' of b: the name is taken",
        "command 'status' of a: the name is taken",
        "command 'status' of b: the name is taken",
        "token estimator 'count' of b: the name is taken",
        "token estimator 'pi' of a: the name is taken",
        "token estimator 'pi' of b: the name is taken",
    }


def test_chat_has_the_commands_that_no_plugin_may_take() -> None:
    from lamella.cli.commands import BUILT_IN

    assert BUILT_IN.keys() == h.OWN_COMMANDS
