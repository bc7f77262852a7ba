"""The prefix of each turn: what changes its hash, where two turns first differ and what that costs, and the
record on disk: small, bounded, and of use after a kill at any byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, open_agent, scripted
from hypothesis import given
from hypothesis import strategies as st
from inside import lamella

from lamella import hookimpl
from lamella.agent import prefix_log
from lamella.agent.prefix import BLOCK_BYTES, Part, Prefix, compare, message_part, text_part
from lamella.agent.prefix_log import PrefixHistory, PrefixLog, read_prefixes
from lamella.runtime import Runtime
from lamella.types import hooks as h
from lamella.types.events import Notice
from lamella.types.messages import AssistantMessage, TextBlock, ToolResultMessage, Usage, UserMessage
from lamella.types.model import ModelRequest, ToolSpec

TEXTS: dict[str, str] = {}


def section(name: str, text: str) -> Part:
    part = text_part("section", name, text)
    TEXTS[part.digest] = text
    return part


def message(text: str, tokens: int = 10) -> Part:
    return message_part(UserMessage(text), tokens)


def prefix(*parts: Part) -> Prefix:
    return Prefix(parts)


def text_of(part: Part) -> str | None:
    return TEXTS.get(part.digest)


# --- comparing -----------------------------------------------------------------------------------------------

RULES = section("rules", "r" * 400)


def test_a_history_that_goes_on_changes_nothing() -> None:
    one = prefix(RULES, message("a"))
    found = compare(one, prefix(RULES, message("a"), message("b", 25)), text_of)
    assert (found.change, found.kept_tokens, found.repaid_tokens, found.new_tokens) == (None, 110, 0, 25)
    assert compare(one, one).new_tokens == 0


def test_the_byte_and_the_cost_of_a_change_in_a_section() -> None:
    one = prefix(RULES, section("files", "é" * 50 + "old" + "z" * 297), message("a"))
    other = prefix(RULES, section("files", "é" * 50 + "new" + "z" * 297), message("a"), message("b", 25))
    found = compare(one, other, text_of)
    change = found.change
    assert change is not None
    assert (change.byte, change.part_byte, change.exact) == (500, 100, True)
    assert change.after is not None
    assert (change.before.name, change.after.name) == ("files", "files")
    # Two halves of files and everything behind it are read anew; b would have been new anyway.
    assert found.kept_tokens + found.repaid_tokens + found.new_tokens == other.tokens
    assert found.repaid_tokens == one.tokens - found.kept_tokens
    assert found.new_tokens == 25


def test_a_change_in_a_message_is_known_to_the_block() -> None:
    text = "a" * (3 * BLOCK_BYTES)
    one, other = prefix(RULES, message(text + "x")), prefix(RULES, message(text + "y"))
    change = compare(one, other, text_of).change
    assert change is not None
    assert not change.exact
    assert change.part_byte <= 3 * BLOCK_BYTES + len('{"role":"user","content":"') < change.part_byte + BLOCK_BYTES


def test_a_shorter_history_costs_nothing() -> None:
    found = compare(prefix(RULES, message("a"), message("b")), prefix(RULES, message("a")))
    assert found.change is not None
    assert found.change.after is None
    assert (found.kept_tokens, found.repaid_tokens, found.new_tokens) == (110, 0, 0)


def test_a_summary_in_place_of_a_long_history() -> None:
    one = prefix(RULES, *(message(f"m{n}", 1000) for n in range(20)))
    found = compare(one, prefix(RULES, message("summary", 300), message("m19", 1000)))
    assert (found.kept_tokens, found.repaid_tokens, found.new_tokens) == (100, 1300, 0)


def test_only_what_a_provider_sees_counts() -> None:
    def reply(**more: Any) -> AssistantMessage:
        return AssistantMessage((TextBlock("hi"),), api="x", provider="x", model="m", **more)

    assert message_part(UserMessage("a", 1), 1) == message_part(UserMessage("a", 2), 1)
    assert message_part(reply(usage=Usage(input=5)), 1) == message_part(reply(), 1)
    one = ToolResultMessage("c", "read", (TextBlock("t"),), False)
    assert message_part(ToolResultMessage("c", "read", (TextBlock("t"),), False, details={"x": 1}), 1) == message_part(
        one, 1
    )
    assert message_part(ToolResultMessage("d", "read", (TextBlock("t"),), False), 1) != message_part(one, 1)


PARTS = st.lists(
    st.one_of(
        st.builds(section, st.sampled_from("abc"), st.text(max_size=40)),
        st.builds(message, st.text(max_size=3000), st.integers(0, 500)),
    ),
    max_size=6,
).map(lambda parts: Prefix(tuple(parts)))


@given(PARTS, PARTS)
def test_any_two_prefixes(one: Prefix, other: Prefix) -> None:
    found = compare(one, other, text_of)
    assert found.kept_tokens + found.repaid_tokens + found.new_tokens == other.tokens
    assert min(found.kept_tokens, found.repaid_tokens, found.new_tokens) >= 0
    assert (one.hash == other.hash) == (found.change is None and len(one.parts) == len(other.parts))
    if found.change is not None:
        assert found.change.byte <= one.size
        assert found.repaid_tokens <= one.tokens


# --- the record ------------------------------------------------------------------------------------------------

TOOL = ToolSpec("read", "Reads.", {"type": "object"})


def sections(*texts: str) -> list[h.PromptSection]:
    return [h.PromptSection(f"s{n}", t) for n, t in enumerate(texts)]


def request(*texts: str) -> ModelRequest:
    return ModelRequest([UserMessage(t) for t in texts], tools=[TOOL])


def log(path: Path) -> PrefixLog:
    return PrefixLog(path, lambda _message: 7)


def hashes(history: PrefixHistory) -> list[str]:
    return [t.prefix.hash for t in history.turns]


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "prompts" / "x.turns.jsonl"
    log(path).add(sections("one", "two"), request("a"))
    log(path).add(sections("one", "two"), request("a", "b"))  # another process
    log(path).add(sections("one", "other"), request("a", "b", "c"))
    found = read_prefixes(path)
    assert [t.turn for t in found.turns] == [1, 2, 3]
    last = found.turns[-1].prefix
    assert [(p.kind, p.name) for p in last.parts] == [
        ("tool", "read"),
        ("section", "s0"),
        ("section", "s1"),
        *[("message", "user")] * 3,
    ]
    assert [found.text_of(p) for p in last.parts[1:3]] == ["one", "\n\nother"]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [r["hash"] for r in rows if "hash" in r] == hashes(found)


def test_half_characters_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "x.turns.jsonl"
    odd = "a\ud800b"
    tool = ToolSpec("odd", odd, {"type": "object"})
    log(path).add(sections(odd), ModelRequest([UserMessage(odd)], tools=[tool]))
    found = read_prefixes(path)
    assert [found.text_of(p) is not None for p in found.turns[0].prefix.parts] == [True, True, False]


def test_a_turn_that_only_goes_on_costs_a_short_line(tmp_path: Path) -> None:
    path = tmp_path / "x.turns.jsonl"
    writer = log(path)
    texts = [f"message {n}" for n in range(200)]
    writer.add(sections("x" * 5000), request(*texts))
    before = path.stat().st_size
    writer.add(sections("x" * 5000), request(*texts, "one more"))
    assert path.stat().st_size - before < 500


def test_the_record_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_log, "MAX_BYTES", 20_000)
    path = tmp_path / "x.turns.jsonl"
    writer = log(path)
    for number in range(60):  # the worst case: nothing stays the same
        writer.add(sections(f"{number} " + "x" * 500), request(*(f"{number}.{m}" for m in range(10))))
        assert path.stat().st_size < 24_000
    found = read_prefixes(path)
    assert found.turns[-1].turn == 60
    assert len(found.turns) >= 2
    assert all(found.text_of(p) is not None for t in found.turns for p in t.prefix.parts if p.kind != "message")
    again = log(path)
    again.add(sections("y"), request("z"))
    assert read_prefixes(path).turns[-1].turn == 61


def test_a_kill_at_any_byte_loses_only_the_last_turn(tmp_path: Path) -> None:
    path = tmp_path / "x.turns.jsonl"
    log(path).add(sections("one"), request("a"))
    whole = path.read_bytes()
    log(path).add(sections("one", "two"), request("a", "b"))
    both = path.read_bytes()
    whole_history, both_history = hashes(read_prefixes(path))[:1], hashes(read_prefixes(path))
    expected = tmp_path / "expected.jsonl"
    for cut in range(len(whole), len(both)):
        path.write_bytes(both[:cut])
        assert hashes(read_prefixes(path)) in (whole_history, both_history)
        log(path).add(sections("one", "two"), request("a", "b", "c"))
        expected.write_bytes(whole)
        log(expected).add(sections("one", "two"), request("a", "b", "c"))
        assert hashes(read_prefixes(path))[-1] == hashes(read_prefixes(expected))[-1]


# --- in turns ----------------------------------------------------------------------------------------------------


def record_of(runtime: Runtime) -> PrefixHistory:
    (path,) = (runtime.state_dir / "prompts").glob("*.turns.jsonl")
    return read_prefixes(path)


async def test_turns_of_a_session_have_one_prefix(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["one", "two", "three"])) as runtime:
        for text in ("a", "b", "c"):
            await runtime.ask(text)
        first, second, third = record_of(runtime).turns
    for earlier, later in ((first, second), (second, third), (first, third)):
        assert compare(earlier.prefix, later.prefix).change is None
    assert [p.name for p in third.prefix.parts] == ["system_prompt", "user", "assistant", "user", "assistant", "user"]


async def test_context_that_is_not_stored_shows_where_it_was(tmp_path: Path) -> None:
    class Recalls:
        name = "recalls"

        @hookimpl
        def before_prompt_build(self, event: h.BeforePromptBuild) -> h.PromptAddition:
            return h.PromptAddition(prepend_context=f"recalled for {event.prompt}", append_system="And so on.")

    async with open_agent(tmp_path, scripted(["one", "two"]), plugins=[Recalls()]) as runtime:
        await runtime.ask("a")
        await runtime.ask("b")
        first, second = record_of(runtime).turns
    assert [p.name for p in first.prefix.parts] == ["system_prompt", "appended", "user"]
    change = compare(first.prefix, second.prefix).change
    assert change is not None
    assert change.position == 2


async def test_a_record_that_cannot_be_written_is_told_and_fails_nothing(tmp_path: Path) -> None:
    async with open_agent(tmp_path, scripted(["one"])) as runtime:
        runtime.state_dir.mkdir(parents=True)
        (runtime.state_dir / "prompts").write_text("in the way")
        recorder = Recorder()
        runtime.listeners.append(recorder)
        result = await runtime.ask("a")
    assert (result.text, result.error) == ("one", None)
    assert "prefix_not_recorded" in [n.code for n in recorder.of(Notice)]


# --- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def asked(tmp_path: Path) -> Any:
    """Two turns; before the second one the agent's settings give the prompt another limit."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "AGENTS.md").write_text("Be brief.\n" + "x" * 3000)

    def run(*arguments: str) -> Any:
        alone = ("--no-plugin", "memory-core", "--no-plugin", "embedders")
        return lamella(*arguments, *alone, "--workspace", tmp_path / "ws", home=tmp_path / "state", check=True)

    run("ask", "hi", "--model", "offline")
    lamella("config", "set", "plugins.config.workspace-files.file_max_chars", "1000", home=tmp_path / "state")
    run("ask", "hi again", "--model", "offline")
    return run


def test_the_command_names_byte_part_and_cost(asked: Any) -> None:
    found = asked("context", "--diff", "1", "2", "--json").json
    change = found["change"]
    assert (found["from"]["turn"], found["to"]["turn"]) == (1, 2)
    assert found["from"]["hash"] != found["to"]["hash"]
    assert (change["part"], change["was"], change["exact"]) == ("section AGENTS.md", "section AGENTS.md", True)
    assert change["after"].startswith("[...truncated")
    assert set(change["before"]) == {"x"}
    assert found["repaidTokens"] > 0
    assert found["keptTokens"] + found["repaidTokens"] + found["newTokens"] == found["to"]["tokens"]
    shown = asked("context", "--diff", "-2", "-1").out
    assert f"byte {change['byte']} of" in shown
    assert "section AGENTS.md" in shown
    assert f"{found['repaidTokens']} paid again" in shown
    overview = asked("context", "--model", "offline", "--json").json
    assert overview["prefix"]["hash"] == found["to"]["hash"]


def test_the_command_shows_each_part_with_its_cause(asked: Any) -> None:
    found = asked("context", "--model", "offline", "--json").json
    parts = {s["name"]: s for s in found["sections"]}
    assert parts["AGENTS.md"]["owner"] == "workspace-files"
    details = parts["AGENTS.md"]["details"]
    assert (details["rawCharacters"], details["causes"], details["missing"]) == (3010, ["per-file-limit"], False)
    assert details["injectedCharacters"] < details["rawCharacters"]
    assert parts["SOUL.md"]["details"]["missing"] is True
    shown = asked("context", "--model", "offline").out
    assert "3010 raw" in shown
    assert "max/file" in shown


def test_a_turn_that_is_not_on_record_is_said(asked: Any, tmp_path: Path) -> None:
    for turns in (("1", "3"), ("0", "1"), ("-3", "-1")):
        ran = lamella("context", "--diff", *turns, "--workspace", tmp_path / "ws", home=tmp_path / "state")
        assert ran.code == 2
        assert "1 to 2 are on record" in ran.err


def test_showing_the_context_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    lamella("context", "--model", "offline", "--workspace", tmp_path / "ws", home=tmp_path / "state", check=True)
    assert not list((tmp_path / "state").glob("agents/*/prompts"))
