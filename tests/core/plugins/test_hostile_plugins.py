"""Plugins that do what no plugin should: they are reported, and everything else goes on."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from attrs import frozen

from lamella.config.schema import PluginsSection
from lamella.plugins import hookimpl
from lamella.plugins.catalog import load_plugins
from lamella.plugins.hooks import Hooks
from lamella.types import hooks as h
from lamella.types.events import PluginFault

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
