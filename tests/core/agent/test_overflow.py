"""What follows an overflow: compactions, then plugins, then a clear error; and a run that goes on from where it was.

Edge cases E6, E10 to E16, and cases K49, K53 and K57.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import scripted
from builders import CASES, assistant, call, result, user
from compacting import OVERFLOW, WINDOW, agent, is_summary, place, rows, talk, words
from legal import check_pairing

from lamella import hookimpl
from lamella.errors import ContextOverflow
from lamella.models.classify import classify_error
from lamella.sessions.transcript import SessionFile
from lamella.types import hooks as h
from lamella.types.messages import UserMessage, text_of
from lamella.types.model import ModelRequest
from lamella.types.tools import Tool


class Frees:
    """Answers `on_overflow`."""

    name = "frees"

    def __init__(self, tokens: int = 100) -> None:
        self.asked: list[h.Overflow] = []
        self.tokens = tokens

    @hookimpl
    def on_overflow(self, event: h.Overflow) -> h.Freed:
        self.asked.append(event)
        return h.Freed(self.tokens)


# --- after an overflow -----------------------------------------------------------------------------------------


async def test_e06_e15_e16_three_compactions_for_all_causes_then_plugins_once_then_an_error(tmp_path: Path) -> None:
    """The turn begins above the threshold; after that every request is refused."""

    def step(request: ModelRequest) -> Any:
        return "SUMMARY" if is_summary(request) else OVERFLOW

    model, frees = scripted([step] * 30, context_window=WINDOW), Frees()
    settings = {"compaction.keep_recent_tokens": 400}
    async with agent(tmp_path, model, settings, plugins=[frees]) as runtime:
        place(runtime, talk(*"abcdefgh"))
        failed = await runtime.ask("x")
        causes = [c["details"]["cause"] for c in rows(runtime, "compaction")]
    assert isinstance(failed.error, ContextOverflow)
    assert causes == ["threshold", "overflow", "overflow"]
    assert failed.compactions == 3
    assert len(frees.asked) == 1
    talks = [r for r in model.requests if not is_summary(r)]
    assert len(talks) == 4  # after each compaction, and after the plugin
    assert text_of(talks[-1].messages[-1].content) == "x"


async def test_e13_plugins_hear_the_size_that_the_server_told(tmp_path: Path) -> None:
    frees = Frees(0)
    async with agent(tmp_path, scripted([OVERFLOW], context_window=WINDOW), plugins=[frees]) as runtime:
        failed = await runtime.ask("x")
    assert failed.error is not None
    assert [event.tokens for event in frees.asked] == [1_200]


TEXTS = json.loads((CASES / "K57" / "errors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", TEXTS, ids=lambda c: c["text"][:40])
async def test_k57_e10_e11_e12_e14_overflows_compact_and_other_errors_do_not(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    def step(request: ModelRequest) -> Any:
        return "SUMMARY" if is_summary(request) else {"error": case["text"]}

    model = scripted([step] * 30, context_window=WINDOW)
    async with agent(tmp_path, model, {"retry.enabled": False}) as runtime:
        place(runtime, talk(*"abcd"))
        failed = await runtime.ask("x")
        done = len(rows(runtime, "compaction"))
    assert isinstance(failed.error, ContextOverflow) is case["overflow"]
    error = classify_error(case["text"])
    assert (done >= 1) is case["overflow"]
    if isinstance(error, ContextOverflow) and not error.certain:
        assert done == 1


async def test_k53_after_recovery_the_run_goes_on_from_where_it_was(tmp_path: Path) -> None:
    script = json.loads((CASES / "K53" / "script.json").read_text())
    ran: list[str] = []

    def tool(name: str, text: str) -> Tool:
        def run(_arguments: Any, _context: Any) -> str:
            ran.append(name)
            return text

        return Tool(name, "Does it.", {"type": "object", "properties": {}}, run)

    steps: list[Any] = []
    tools = []
    for step in script["steps"]:
        if "call" in step:
            call_id, name, arguments = step["call"]
            block = {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
            steps.append({"content": [block]})
            tools.append(tool(name, step["result"]))
        else:
            steps.append({"error": step["overflow"]} if "overflow" in step else step["reply"])
    calls = iter(steps)

    def play(request: ModelRequest) -> Any:
        return "SUMMARY" if is_summary(request) else next(calls)

    model = scripted([play] * 12, context_window=script["window"])
    settings = {"compaction.keep_recent_tokens": 600, "compaction.reserve_tokens": 200}
    async with agent(tmp_path, model, settings, tools=tools) as runtime:
        place(runtime, talk("a", "b"))
        answer = await runtime.ask(script["user"])
        stored = [r for r in rows(runtime, "message") if r["message"]["role"] == "user"]
        assert len(rows(runtime, "compaction")) == 1
    assert ran == ["post_notice", "file_form"]
    assert answer.text == "Both done."
    texts = [b["text"] for r in stored for b in r["message"]["content"]]
    assert texts.count(script["user"]) == 1
    said = [text_of(m.content) for m in model.requests[-1].messages if isinstance(m, UserMessage)]
    assert sum(script["user"] in text for text in said) <= 1


async def test_k49_the_newest_request_comes_through_word_for_word(tmp_path: Path) -> None:
    """Its own tool result fills the window; even the engine's summary, which folds the request, quotes it."""
    newest = "先不写指南了。请改为：把温室的三个风扇都改成晚上九点关闭，并且不要动二号风扇的转速。"
    history = SessionFile.open(CASES / "K49" / "switch.jsonl").context().messages
    at = next(i for i, m in enumerate(history) if isinstance(m, UserMessage) and text_of(m.content) == newest)
    look = {"content": [{"type": "toolCall", "id": "f1", "name": "look", "arguments": {}}]}
    calls = iter([look, OVERFLOW, "done"])

    def play(request: ModelRequest) -> Any:
        return "## Pending user asks\n- continue with chapter 10" if is_summary(request) else next(calls)

    model = scripted([play] * 8, context_window=6_000)
    tool = Tool("look", "Looks.", {"type": "object", "properties": {}}, lambda _a, _c: words("fan", 2_000))
    settings = {"compaction.keep_recent_tokens": 800, "compaction.reserve_tokens": 1_500}
    async with agent(tmp_path, model, settings, tools=[tool]) as runtime:
        place(runtime, history[:at])
        answer = await runtime.ask(newest)
    assert answer.text == "done"
    whole = "\n".join(text_of(m.content) for m in model.requests[-1].messages)
    assert whole.count(newest) == 1
    assert "chapter 10" not in whole.partition(newest)[2]
    check_pairing(model.requests[-1].messages)


async def test_results_of_tools_stay_with_their_calls_after_an_overflow(tmp_path: Path) -> None:
    calls = iter([OVERFLOW, "done"])

    def play(request: ModelRequest) -> Any:
        return "SUMMARY" if is_summary(request) else next(calls)

    history = [user("go"), assistant("", call("c1")), result("c1", words("r", 300)), assistant(words("s", 300))]
    model = scripted([play] * 6, context_window=WINDOW)
    async with agent(tmp_path, model) as runtime:
        place(runtime, [*talk("a"), *history])
        assert (await runtime.ask("x")).text == "done"
    check_pairing(model.requests[-1].messages)
