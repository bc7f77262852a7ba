"""Whole requests with the plugin: cases K32, K35, K36, K37, K40 and K44, restarts, and what explains them."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from builders import CASES, write_lines
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from inside import lamella
from openclaw_vectors import messages
from pruning import NOTHING, conversation, draft, results, rows_of, settings

from lamella import Tool, hookimpl
from lamella.plugins.catalog import entry_points
from lamella.types import hooks as h
from lamella.types.host import Host
from lamella.types.messages import Message, ToolResultMessage, UserMessage, text_of
from lamella_context_pruning import ContextPruning
from lamella_context_pruning.fit import fit
from lamella_context_pruning.prune import again, prune, soft_trimmed
from lamella_context_pruning.sizes import UNITS_PER_TOKEN
from lamella_context_pruning.touch import MARKER, last_touch, pruned_of

LATER = "2026-05-04T00:00:00Z"


def case(name: str, file: str = "messages.json") -> list[Message]:
    return messages(json.loads((CASES / name / file).read_text(encoding="utf-8")))


def built(tmp_path: Path, file: Path, window: int, config: str = "", now: str = LATER) -> Any:
    """`lamella context build` of a transcript, as JSON."""
    options: list[str | Path] = ["--provider", "anthropic", "--model", "m", "--window", str(window), "--now", now]
    if config:
        (tmp_path / "config.toml").write_text(config)
        options += ["--config", tmp_path / "config.toml"]
    before = file.read_bytes()
    row = lamella("context", "build", file, *options, "--json", home=tmp_path / "home").json
    assert file.read_bytes() == before
    assert row["error"] is None
    return row


def texts(row: Any) -> dict[str, str]:
    """The texts of all results by call id."""
    return {
        m["toolCallId"]: "\n".join(b["text"] for b in m["content"])
        for m in row["messages"]
        if m["role"] == "toolResult"
    }


def changed(row: Any) -> dict[str, tuple[str, str]]:
    return {a["entryId"]: (a["action"], a["rule"]) for a in row["actions"] if a["action"] in ("trimmed", "cleared")}


# --- cases -----------------------------------------------------------------------------------------------------


def test_k32_the_running_loop_goes_last(tmp_path: Path) -> None:
    given_ = case("K32")
    file = write_lines(tmp_path / "s.jsonl", rows_of(given_))
    row = built(tmp_path, file, 16_000)
    found = texts(row)
    for name in ("4", "5"):
        assert f"BED{name}-START" in found[f"b{name}"]
        assert f"BED{name}-END" in found[f"b{name}"]
    assert [found[f"b{i}"] == NOTHING for i in range(4)] == [True] * 4
    assert len(row["messages"]) == len(given_)
    assert row["tokens"] < 0.75 * 16_000


def test_k32_a_newest_result_is_shortened(tmp_path: Path) -> None:
    row = built(tmp_path, write_lines(tmp_path / "s.jsonl", rows_of(case("K32"))), 6000)
    assert "BED5-START" in texts(row)["b5"]
    assert "characters left out" in texts(row)["b5"]


@pytest.mark.parametrize("row", json.loads((CASES / "K35" / "table.json").read_text()), ids=str)
def test_k35_the_window_is_the_smaller_of_model_and_configuration(row: dict[str, Any], tmp_path: Path) -> None:
    seen: list[int] = []

    class Sees:
        """What pruning and limits of results reckon with."""

        name = "sees"

        @hookimpl
        def context(self, event: h.BeforeModelCall, host: Host) -> None:
            seen.extend((event.window, host.turn.context_window))

    window = row["modelWindow"] or row["contextTokens"] or 200_000
    model = scripted([{"text": "a"}], context_window=window, max_output=row["maxTokens"] or 8192)
    agent = open_agent(tmp_path, model, plugins=[Sees()], settings={"context.window": row["contextTokens"] or 0})
    asyncio.run(agent.ask("go"))
    assert seen == [row["effective"]] * 2


def test_k36_the_diagnostic_tail_stays(tmp_path: Path) -> None:
    row = built(tmp_path, write_lines(tmp_path / "s.jsonl", rows_of(case("K36"))), 8000)
    text = texts(row)["e1"]
    for part in ("BUILD BEGIN", "FATAL: gasket.c:88", "exit code 2", "characters left out"):
        assert part in text
    assert len(text) <= 8000
    assert row["messages"][2]["isError"] is True


@pytest.mark.parametrize("row", json.loads((CASES / "K37" / "strings.json").read_text(encoding="utf-8")), ids=str)
def test_k37_trimming_splits_no_character(row: dict[str, str]) -> None:
    text = row["text"] * 5
    message = ToolResultMessage("c", "exec", text)
    trimmed = soft_trimmed(message, settings())
    shown = text_of(trimmed.content)
    if trimmed is message:
        return
    head, _, rest = shown.partition("\n...\n")
    tail = rest.rpartition("\n\n[Tool result trimmed")[0]
    assert text.startswith(head)
    assert text.endswith(tail)
    shown.encode()
    assert soft_trimmed(trimmed, settings()) is trimmed


def test_k40_pruning_acts_in_a_new_process(tmp_path: Path) -> None:
    file = Path(shutil.copy(CASES / "K40" / "old.jsonl", tmp_path / "old.jsonl"))
    first = built(tmp_path, file, 50_000)
    second = built(tmp_path, file, 50_000, now="2026-05-04T00:00:10Z")
    for call_id, text in texts(first).items():
        assert re.search(r"\n\.\.\.\n.*kept first 1500 chars and last 1500 chars of 30013 chars\.\]\Z", text, re.DOTALL)
        assert text.startswith(f"MANUAL{call_id[1]}")
    assert {rule for _, rule in changed(first).values()} == {"soft_trim"}
    assert first["messages"] == second["messages"]
    warm = built(tmp_path, file, 50_000, now="2026-05-01T08:00:00Z")
    assert warm["messages"] == first["messages"]  # its replies tell no time: they are old


def test_k44_head_tail_and_said_things_stay(tmp_path: Path) -> None:
    given_ = case("K44")
    file = write_lines(tmp_path / "s.jsonl", rows_of(given_))
    row = built(tmp_path, file, 40_000, '[plugins.config.context-pruning]\ntools = { deny = ["memory_*"] }\n')
    found, before = texts(row), {r.tool_call_id: text_of(r.content) for r in results(given_)}
    for kept in ("h0", "z0", "k2"):
        assert found[kept] == before[kept]
    for pruned in ("k0", "k1", "k3"):
        assert found[pruned] == NOTHING or "kept first 1500 chars" in found[pruned]
    rules = {a["entryId"]: a["rule"] for a in row["actions"]}
    assert (rules["m1"], rules["m8"], rules["m14"]) == ("before_first_user", "tool_not_prunable", "protected_tail")


def test_k44_two_replies_are_too_few() -> None:
    given_ = [m for m in case("K44") if m.role != "assistant"] + [m for m in case("K44") if m.role == "assistant"][-2:]
    made = draft(given_)
    assert prune(made, 40_000, settings()) == {}
    assert made.messages is given_


# --- a restart -------------------------------------------------------------------------------------------------


def age(path: Path, hours: float) -> None:
    """Make a transcript older: the times of its replies and of its markers."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        for place in (row.get("message"), row.get("data")):
            if isinstance(place, dict) and "timestamp" in place and place.get("role") != "toolResult":
                place["timestamp"] -= int(hours * 3_600_000)
    write_lines(path, rows)


def test_what_was_pruned_stays_so_after_a_restart(tmp_path: Path) -> None:
    call = {"type": "toolCall", "id": "c1", "name": "long", "arguments": {}}
    tool = Tool("long", "Long.", {"type": "object", "properties": {}}, lambda _arguments, _context: "x" * 30_000)

    def run(*steps: Any, prompts: Sequence[str]) -> Any:
        """A process of its own: prompts answered by steps; the requests that were made."""
        model = scripted(steps, provider="anthropic", context_window=20_000)
        agent = open_agent(tmp_path, model, plugins=[ContextPruning()], tools=[tool])

        async def talk() -> None:
            async with agent.session() as session:
                for prompt in prompts:
                    await session.prompt(prompt)

        asyncio.run(talk())
        located = agent.store.locate(agent.key())
        assert located is not None
        return [text_of(results(r.messages)[0].content) for r in model.requests if results(r.messages)], located.path

    answers = [{"text": f"a{i}"} for i in range(4)]
    shown, path = run({"content": [call]}, *answers, prompts=["go", "b", "c", "d"])
    assert "characters left out" in shown[0]  # shortened to its share of the window
    assert not any("Tool result trimmed" in text for text in shown)
    age(path, hours=1)
    (cold,), _ = run({"text": "e"}, prompts=["e"])
    assert "Tool result trimmed" in cold
    (warm,), _ = run({"text": "f"}, prompts=["f"])
    assert warm == cold
    marker = [r["data"] for r in map(json.loads, path.read_text().splitlines()) if r.get("customType") == MARKER][-1]
    assert [row[0::2] for row in marker["pruned"]] == [["c1", "trimmed"]]


@pytest.mark.parametrize(
    "data",
    [None, 7, [], {}, {"timestamp": "late"}, {"pruned": 3}, {"pruned": [1, ["a"], ["a", "b", "c"], ["a", 1, "gone"]]}],
)
def test_a_marker_that_is_not_understood_says_nothing(data: Any) -> None:
    assert pruned_of(data) == {}
    assert last_touch([], data) is None


# --- properties ------------------------------------------------------------------------------------------------


@examples(deadline=None)
@given(st.lists(st.integers(10, 9000), max_size=12), st.integers(200, 20_000), st.integers(0, 5), st.booleans())
def test_only_results_change_and_a_second_time_changes_nothing(
    lengths: list[int], window: int, after: int, images: bool
) -> None:
    config = settings(min_prunable_tool_chars=3000, images="replace" if images else "skip")
    given_ = conversation(*lengths, after=after)
    before = list(given_)
    made = draft(given_)
    replaced = prune(made, window, config)
    once = list(made.messages)
    fit(made, window, config)
    assert given_ == before
    for old, new in zip(given_, made.messages, strict=True):
        assert new is old or (isinstance(old, ToolResultMessage) and isinstance(new, ToolResultMessage))
        if isinstance(old, ToolResultMessage) and isinstance(new, ToolResultMessage):
            assert (new.tool_call_id, new.tool_name, new.is_error) == (old.tool_call_id, old.tool_name, old.is_error)
    if replaced:
        repeated = draft(given_)
        again(repeated, replaced, config)
        assert list(repeated.messages) == once
    fixed = draft(list(made.messages))
    fit(fixed, window, config)
    assert fixed.messages is fixed.original
    said = sum(s for m, s in zip(made.messages, made.sizes, strict=True) if not isinstance(m, ToolResultMessage))
    assert (
        sum(made.sizes) <= window * UNITS_PER_TOKEN + 1024 or said + 40 * len(lengths) > window * UNITS_PER_TOKEN - 1024
    )
    assert any(isinstance(m, UserMessage) for m in made.messages)


# --- explaining ------------------------------------------------------------------------------------------------


def test_the_plugin_is_announced() -> None:
    (found,) = [p for p in entry_points() if p.name == "context-pruning"]
    assert found.load() is ContextPruning


def test_plugins_list_shows_it_with_its_settings(tmp_path: Path) -> None:
    listed = {r["name"]: r for r in lamella("plugins", "list", "--json", home=tmp_path).json["plugins"]}
    assert listed["context-pruning"]["state"] == "on"
    assert listed["context-pruning"]["config"]["soft_trim"]["max_chars"] == 4000
    assert listed["history-limit"]["builtin"]


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A state folder whose main session has one turn, and a workspace."""
    (tmp_path / "ws").mkdir()
    lamella("ask", "hello", "--model", "offline", "--workspace", tmp_path / "ws", home=tmp_path / "home", check=True)
    return tmp_path


def test_explain_tells_what_becomes_of_each_message(asked: Path) -> None:
    options = ["--model", "offline", "--workspace", asked / "ws"]
    shown = lamella("context", "--explain", *options, home=asked / "home", check=True).out
    assert re.search(r"^0 +user +kept", shown, re.MULTILINE)
    assert re.search(r"^context-pruning: offline/\S* is not in providers \(pruning_provider\)$", shown, re.MULTILINE)
    found = lamella("context", "--explain", *options, "--json", home=asked / "home", check=True).json
    assert [a["role"] for a in found["actions"]][:2] == ["user", "assistant"]
    assert [r["rule"] for r in found["remarks"]] == ["pruning_provider"]


def test_explain_of_a_session_that_has_not_begun(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    found = lamella(
        "context", "--explain", "--json", "--model", "offline", "--workspace", tmp_path / "ws", home=tmp_path / "home"
    ).json
    assert (found["actions"], found["remarks"]) == ([], [])


def test_a_limited_history_is_explained(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "s.jsonl", rows_of(conversation(100, after=2)))
    config = tmp_path / "config.toml"
    config.write_text("[plugins.config.history-limit]\ngroup = 1\n")
    row = lamella(
        *("context", "build", file, "--provider", "anthropic", "--model", "m", "--window", "9000", "--json"),
        *("--key", "agent:main:irc:group:x", "--config", config),
        home=tmp_path,
    ).json
    dropped = [a["index"] for a in row["actions"] if a["rule"] == "history_limit"]
    assert dropped == list(range(6))
    assert [m["role"] for m in row["messages"]] == ["user"]
