"""Cases of hand-made plugins, each under its number."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamella import Tool, hookimpl
from lamella.types import hooks as h
from lamella.types.events import MessageEnd, PluginFault
from lamella.types.messages import AssistantMessage, text_of

CASES = Path(__file__).parents[2] / "data" / "cases"
LIMIT = 1.0
TIMEOUTS = {f"hooks.timeouts.{hook}": LIMIT for hook in ("before_prompt_build", "agent_end")}


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """What hooks that hang wait for; set at the end, so that no thread outlives the test."""
    event = threading.Event()
    yield event
    event.set()


def k126(released: threading.Event) -> list[Any]:
    """The case's plugins, each doing what the case says of it."""

    def fail() -> None:
        raise RuntimeError("boom")

    texts = {
        "return prependContext of 5,000,000 characters": "x" * 5_000_000,
        'return prependContext "GOOD-CONTEXT"': "GOOD-CONTEXT",
    }
    ways: dict[str, Callable[[], Any]] = {
        "sleep forever": released.wait,
        "raise RuntimeError": fail,
        "return 42": lambda: 42,
        **{way: lambda text=text: h.PromptAddition(prepend_context=text) for way, text in texts.items()},
    }
    case = json.loads((CASES / "K126" / "plugins.json").read_text("utf-8"))
    return [plugin(found["name"], "before_prompt_build", ways[found["before_prompt_build"]]) for found in case]


def plugin(name: str, hook: str, way: Callable[[], Any]) -> Any:
    """A plugin with one hook, which ends in some way."""
    return type(name, (), {"name": name, hook: hookimpl(lambda self: way())})()


async def test_k126_hooks_that_misbehave_cost_a_turn_nothing_but_their_time(
    lamella_runtime: Any, lamella_model: Any, released: threading.Event
) -> None:
    model = lamella_model("First.", "Second.")
    runtime = lamella_runtime(*k126(released), model=model, settings=TIMEOUTS, allow_faults=True)
    for turn, (said, reply) in enumerate((("What is new?", "First."), ("And now?", "Second."))):
        heard: list[Any] = []
        runtime.listeners[:] = [heard.append]
        answer = await runtime.ask(said)
        assert (answer.text, answer.error) == (reply, None)
        faults = {f.plugin: f.error for f in heard if isinstance(f, PluginFault)}
        assert set(faults) == {"hang", "boom", "wrong", "huge"}
        assert "within 1 s" in faults["hang"]
        assert faults["boom"] == "RuntimeError: boom"
        assert faults["wrong"] == "returned int, expected PromptAddition"
        assert "adds about 1250" in faults["huge"] and "the context window has room for" in faults["huge"]
        assert text_of(model.requests[turn].messages[-1].content) == f"GOOD-CONTEXT\n\n{said}"


async def test_k126_a_reply_does_not_wait_for_hooks_at_the_end(
    lamella_runtime: Any, lamella_model: Any, released: threading.Event
) -> None:
    delivered = threading.Event()
    seen: list[bool] = []

    def hang() -> None:
        seen.append(delivered.is_set())
        released.wait()

    def hear(event: Any) -> None:
        if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            delivered.set()

    runtime = lamella_runtime(
        plugin("hang", "agent_end", hang),
        model=lamella_model("First.", "Second."),
        settings=TIMEOUTS,
        allow_faults=True,
    )
    runtime.listeners.append(hear)
    for reply in ("First.", "Second."):
        delivered.clear()
        assert (await runtime.ask("Well?")).text == reply
    assert seen == [True, True]


async def test_additions_that_fit_alone_are_taken_until_the_window_is_full(
    lamella_runtime: Any, lamella_model: Any
) -> None:
    def adds(name: str) -> Any:
        return plugin(name, "before_prompt_build", lambda: h.PromptAddition(prepend_context=f"{name} " * 120_000))

    last = plugin("d", "before_agent_start", lambda: h.PromptAddition(append_system="SMALL"))
    model = lamella_model("Hi.")
    runtime = lamella_runtime(adds("a"), adds("b"), adds("c"), last, model=model, allow_faults=True)
    faults: list[Any] = []
    runtime.listeners.append(lambda event: faults.append(event) if isinstance(event, PluginFault) else None)
    assert (await runtime.ask("Hello")).text == "Hi."
    assert [f.plugin for f in faults] == ["c"]
    prompt = text_of(model.requests[0].messages[-1].content)
    assert "a a" in prompt and "b b" in prompt and "c c" not in prompt and prompt.endswith("Hello")
    assert "SMALL" in model.requests[0].system_prompt


async def test_what_no_request_has_room_for_is_named(lamella_runtime: Any, lamella_model: Any) -> None:
    text = "word " * 200_000
    section = plugin("wordy", "prompt_sections", lambda: [h.PromptSection("lore", text)])
    tool = plugin("toolbox", "register_tools", lambda: [Tool("hammer", text, {"type": "object"}, lambda _a, _c: "")])
    for made, named in ((section, "the prompt section 'lore' of wordy"), (tool, "the tool 'hammer'")):
        answer = await lamella_runtime(made, model=lamella_model("Never.")).ask("Hello")
        assert "the system prompt and the tools have about" in str(answer.error)
        assert named in answer.error.hint
