"""Edge cases of tool-result guards (C) and pruning (D): one test for each numbered row of the list.

C13 to C17 are in tests/core/text/test_shorten.py, C26 to C29 in test_overflow.py. Where lamella does
otherwise than OpenClaw on purpose, docs/decisions/0021 has the reason.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, open_agent, scripted
from attrs import evolve
from builders import assistant, call, result, user, write_lines
from inside import lamella
from pruning import NOTHING, conversation, draft, host, long_result, results, rows_of, settings

from lamella import Tool, hookimpl
from lamella.config.structure import structure
from lamella.errors import ContextOverflow
from lamella.types import events as e
from lamella.types import hooks as h
from lamella.types.messages import (
    CompactionSummaryMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultMessage,
    text_of,
)
from lamella.types.results import ToolResult
from lamella_context_pruning import Config, ContextPruning
from lamella_context_pruning.fit import fit
from lamella_context_pruning.globs import allowed
from lamella_context_pruning.persist import shortened, small_details, stored_limit
from lamella_context_pruning.prune import prune
from lamella_context_pruning.touch import MARKER

CALL = {"type": "toolCall", "id": "c1", "name": "huge", "arguments": {}}
MINUTE = 60_000


def huge(text: str = "", details: Any = None) -> Tool:
    def run(_arguments: Any, _context: Any) -> ToolResult:
        return ToolResult(text, details)

    return Tool("huge", "Gives much.", {"type": "object", "properties": {}}, run)


def one_call(tmp_path: Path, tool: Tool, *plugins: Any, window: int = 2_000_000) -> tuple[ToolResultMessage, Recorder]:
    """What of a tool's result was stored, after a turn that calls it once."""
    model = scripted([{"content": [CALL]}, {"text": "done"}], context_window=window)
    agent, seen = open_agent(tmp_path, model, plugins=plugins, tools=[tool]), Recorder()
    agent.listeners.append(seen)
    asyncio.run(agent.ask("go"))
    located = agent.store.locate(agent.key())
    assert located is not None
    (stored,) = results(agent.store.open(located, cwd="").context().messages)
    assert len(model.requests) == 2  # the engine makes no call of its own
    return stored, seen


def built(tmp_path: Path, rows: Sequence[dict[str, Any]], provider: str = "anthropic") -> list[dict[str, Any]]:
    """The next request of a transcript; the file is not changed by that."""
    file = write_lines(tmp_path / "s.jsonl", rows)
    before = file.read_bytes()
    ran = lamella(
        "context", "build", file, "--provider", provider, "--model", "m", "--window", "100000", "--json", home=tmp_path
    )
    assert file.read_bytes() == before
    return ran.json["messages"]  # type: ignore[no-any-return]


# --- C: storing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plugins", [(), (ContextPruning(),)], ids=["engine", "plugin"])
def test_c1_a_huge_result_is_stored_within_the_limit(tmp_path: Path, plugins: tuple[Any, ...]) -> None:
    stored, _ = one_call(tmp_path, huge("a" * 500_000 + "\nexit code 3"), *plugins)
    text = text_of(stored.content)
    assert 390_000 < len(text) <= 400_000
    assert text.endswith("exit code 3")
    assert "of 500012 characters left out" in text


def test_c2_texts_share_the_limit_and_an_image_stays() -> None:
    image = ImageBlock("x", "image/png")
    message = ToolResultMessage("c", "t", (TextBlock("a" * 300_000), image, TextBlock("b" * 300_000)))
    first, middle, last = shortened(message, 400_000, None).content
    assert middle is image
    assert [len(b.text) // 1000 for b in (first, last) if isinstance(b, TextBlock)] in ([199, 199], [200, 200])


def test_c3_a_result_for_an_unknown_call_is_left_out_of_the_request(tmp_path: Path) -> None:
    sent = built(tmp_path, rows_of([user("a"), result("nobody"), assistant("b"), user("c")]))
    assert [m["role"] for m in sent] == ["user", "assistant", "user"]


@pytest.mark.parametrize("provider", ["anthropic", "openai-chat"], ids=["C4", "C5"])
def test_c4_c5_an_open_call_is_answered_in_the_request_only(tmp_path: Path, provider: str) -> None:
    sent = built(tmp_path, rows_of([user("a"), assistant("", call("c")), user("b")]), provider)
    assert [m["role"] for m in sent] == ["user", "assistant", "toolResult", "user"]
    assert sent[2]["isError"]


def test_c6_a_call_of_a_failed_reply_gets_no_answer(tmp_path: Path) -> None:
    failed = evolve(assistant("", call("c")), stop_reason="error", error_message="overloaded")
    assert [m["role"] for m in built(tmp_path, rows_of([user("a"), failed]))] == ["user"]


def test_c7_a_reply_with_nothing_but_an_invalid_call_is_left_out(tmp_path: Path) -> None:
    sent = built(tmp_path, rows_of([user("a"), assistant("", call("x", "")), user("b")]))
    assert {m["role"] for m in sent} == {"user"}


def persisting(answer: Any) -> Any:
    class Persists:
        name = "persists"

        @hookimpl
        async def tool_result_persist(self, event: h.ToolResultPersist) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return evolve(event.message, content=answer)

    return Persists()


def test_c8_a_coroutine_is_awaited(tmp_path: Path) -> None:
    stored, _ = one_call(tmp_path, huge("long"), persisting("short"))
    assert text_of(stored.content) == "short"


def test_c10_a_hook_that_raises_is_passed_over(tmp_path: Path) -> None:
    stored, seen = one_call(tmp_path, huge("long"), persisting(RuntimeError("no")))
    assert text_of(stored.content) == "long"
    assert [f.plugin for f in seen.of(e.PluginFault)] == ["persists"]


@pytest.mark.parametrize(("window", "limit"), [(1000, 1200), (2_000_000, 400_000)], ids=["C11", "C12"])
def test_c11_c12_the_stored_limit(window: int, limit: int, tmp_path: Path) -> None:
    assert stored_limit(window, settings().results) == limit
    assert stored_limit(window, settings(results={"max_chars": 700}).results) == 700


def test_chinese_counts_by_its_tokens(tmp_path: Path) -> None:
    stored, _ = one_call(tmp_path, huge("水" * 100_000), ContextPruning(), window=100_000)
    assert 26_000 < len(text_of(stored.content)) < 28_000  # 4.4 units each; 120,000 units are the limit


def test_c30_details_are_capped_and_secrets_masked(tmp_path: Path) -> None:
    details = {"log": "x" * 1_000_000, "key": "sk-proj-abcd1234efgh5678ijkl9012", "code": 3, "big": list(range(9000))}
    stored, _ = one_call(tmp_path, huge("fine", details), ContextPruning())
    assert len(json.dumps(stored.details)) <= 8192
    assert stored.details["code"] == 3
    assert stored.details["omitted"] == ["big"]
    assert stored.details["log"].startswith("xxx")
    assert len(stored.details["log"]) < 2100
    assert "efgh5678" not in json.dumps(stored.details)


@pytest.mark.parametrize(
    "details",
    [None, {}, {"truncation": {"lines": 3}}, [1, "two"], "text", 7, "half \ud83d"],
    ids=["none", "empty", "small", "list", "text", "number", "surrogate"],
)
def test_small_details_are_the_same_object(details: Any) -> None:
    assert small_details(details, settings().results) is details


@pytest.mark.parametrize("details", [["x" * 3000] * 99, {"x" * 200 + str(i): "y" * 99 for i in range(500)}])
def test_details_of_any_shape_stay_within_the_limit(details: Any) -> None:
    assert len(json.dumps(small_details(details, settings().results))) <= 8192


# --- C: each request -------------------------------------------------------------------------------------------


def fitted(messages: Sequence[Message], window: int, **section: Any) -> list[Message]:
    before = list(messages)
    made = draft(messages)
    fit(made, window, settings(**section))
    assert list(messages) == before
    return list(made.messages)


def test_c18_what_fits_is_the_same_object() -> None:
    messages = conversation(100, 200)
    made = draft(messages)
    fit(made, 1000, settings())
    assert made.messages is messages
    assert not made.notes


def test_c19_a_long_result_gets_its_share() -> None:
    (short,) = fitted([result("c", "x" * 5000)], 1000)
    assert isinstance(short, ToolResultMessage)
    assert 900 < len(text_of(short.content)) <= 1024
    assert "of 5000 characters left out" in text_of(short.content)


def test_c20_the_oldest_goes_first() -> None:
    messages = [user("u" * 2000), *(result(name, name * 400) for name in "abc")]
    texts = [text_of(r.content) for r in results(fitted(messages, 1000))]
    assert texts == [NOTHING, NOTHING, "c" * 400]


def test_c21_what_a_user_said_is_untouched() -> None:
    messages = [user("u" * 9000)]
    assert fitted(messages, 1000) == messages


def test_c22_an_image_alone_becomes_a_note() -> None:
    (short,) = fitted([ToolResultMessage("c", "read", (ImageBlock("AA==", "image/png"),))], 1000)
    assert isinstance(short, ToolResultMessage)
    assert text_of(short.content) == "[1 image left out: too large for the context window]"


def test_c23_a_string_stays_a_string() -> None:
    (short,) = fitted([ToolResultMessage("c", "grep", "y" * 5000)], 1000)
    assert isinstance(short, ToolResultMessage)
    assert isinstance(short.content, str)
    assert len(short.content) <= 1024


@pytest.mark.parametrize("window", [500, 1000, 3000, 9000])
def test_c24_a_second_pass_changes_nothing(window: int) -> None:
    once = fitted(conversation(9000, 3000, 12_000, 500, 7000, after=1), window)
    again = draft(once)
    fit(again, window, settings())
    assert again.messages is once


def test_c25_what_does_not_fit_is_an_overflow_before_the_model_is_called(tmp_path: Path) -> None:
    model = scripted([{"text": "fine"}, {"text": "fine"}, {"text": "summary"}, {"text": "again"}], context_window=3000)
    agent, seen = open_agent(tmp_path, model, plugins=[ContextPruning()]), Recorder()
    agent.listeners.append(seen)

    async def talk() -> Any:
        async with agent.session() as session:
            await session.prompt("a" * 5000)
            return await session.prompt("b" * 8000)

    outcome = asyncio.run(talk())
    assert outcome.error is None or isinstance(outcome.error, ContextOverflow)
    assert all(sum(len(text_of(m.content)) for m in r.messages) < 12_000 for r in model.requests)
    assert seen.of(e.AutoCompactionStart)


def test_the_head_the_last_replies_and_denied_tools_stay_while_the_request_fits() -> None:
    head = [assistant("", call("h", "read")), long_result("h", 8000, "read")]
    messages = [*head, *conversation(8000, 8000, after=0), assistant("", call("m", "memory_get"))]
    messages += [long_result("m", 8000, "memory_get"), assistant("a"), user("?"), assistant("", call("t"))]
    messages += [long_result("t", 8000), assistant("b"), assistant("c")]
    kept = results(fitted(messages, 11_000, tools={"deny": ["memory_*"]}))
    assert [text_of(r.content) == NOTHING for r in kept] == [False, True, True, False, False]
    kept = results(fitted(messages, 5000, tools={"deny": ["memory_*"]}))
    assert kept[0] == head[1]
    assert text_of(kept[3].content) != text_of(results(messages)[3].content)
    assert text_of(kept[4].content) != NOTHING


def test_the_newest_result_is_shortened_and_never_removed() -> None:
    messages = [user("u" * 6000), assistant("", call("a"), call("b")), long_result("a", 6000), long_result("b", 6000)]
    a, b = results(fitted(messages, 2600))
    assert text_of(a.content) == NOTHING
    assert text_of(b.content).startswith("<b")
    assert "characters left out" in text_of(b.content)


def test_a_summary_counts_with_its_text() -> None:
    messages: list[Message] = [CompactionSummaryMessage("s" * 9000), *conversation(2000, 2000, after=3)]
    assert text_of(results(fitted(messages, 3000))[0].content) == NOTHING


# --- D: pruning ------------------------------------------------------------------------------------------------


def pruned(messages: Sequence[Message], window: int, **section: Any) -> Sequence[Message]:
    before = list(messages)
    made = draft(messages)
    prune(made, window, settings(**section))
    assert list(messages) == before
    return made.messages


TRIMMED = "kept first 1500 chars and last 1500 chars of 20000 chars."


@pytest.mark.parametrize(
    ("messages", "window", "section"),
    [
        pytest.param(conversation(20_000), 20_000, {}, id="D1"),
        pytest.param(conversation(20_000, after=1), 9000, {}, id="D2"),
        pytest.param([assistant(""), long_result("x", 9000), *[assistant("a")] * 3], 100, {}, id="D3"),
        pytest.param([long_result("x", 9000), user("a"), *[assistant("a")] * 3], 100, {}, id="D4"),
        pytest.param(conversation(9000, after=2), 100, {}, id="D5"),
        pytest.param(conversation(4000), 2000, {}, id="D8"),
        pytest.param(
            conversation(100), 80, {"soft_trim": {"max_chars": 50, "head_chars": 60, "tail_chars": 60}}, id="D9"
        ),
    ],
)
def test_d_what_is_left_alone_is_the_same_object(messages: list[Message], window: int, section: Any) -> None:
    assert pruned(messages, window, **section) is messages


def test_d6_without_protected_replies_every_result_may_be_pruned() -> None:
    kept = results(pruned(conversation(20_000, after=0), 9000, keep_last_assistants=0))
    assert TRIMMED in text_of(kept[0].content)


def test_d7_a_long_result_keeps_head_and_tail() -> None:
    text = text_of(results(pruned(conversation(20_000), 12_000))[0].content)
    whole = text_of(results(conversation(20_000))[0].content)
    assert text == f"{whole[:1500]}\n...\n{whole[-1500:]}\n\n[Tool result trimmed: {TRIMMED}]"


def test_d10_several_texts_become_one() -> None:
    message = ToolResultMessage("c", "exec", tuple(TextBlock(c * 2000) for c in "abc"))
    (kept,) = results(pruned([user("u"), message, *[assistant("a")] * 3], 2000))
    (block,) = kept.content
    assert isinstance(block, TextBlock)
    assert "of 6002 chars.]" in block.text


def with_image(text: str) -> list[Message]:
    message = ToolResultMessage("c", "read", (ImageBlock("AA==", "image/png"), TextBlock(text)))
    return [user("u"), message, *[assistant("a")] * 3]


def test_d11_an_image_in_an_old_result_becomes_a_note() -> None:
    (kept,) = results(pruned(with_image("short"), 2000))
    assert kept.content == (TextBlock("[image removed during context pruning]\nshort"),)


def test_results_with_images_can_be_left_alone() -> None:
    messages = with_image("x" * 9000)
    assert pruned(messages, 2000, images="skip") is messages


def test_d12_too_little_to_clear() -> None:
    made = draft(conversation(20_000, 20_000))
    prune(made, 5000, settings(soft_trim_ratio=0.1, hard_clear_ratio=0.2))
    assert {n.rule for n in made.notes.values()} == {"soft_trim"}
    assert [n.rule for n in made.remarks] == ["pruning_minimum"]


def test_the_minimum_can_be_counted_before_trimming() -> None:
    section = {"soft_trim_ratio": 0.1, "hard_clear_ratio": 0.1, "min_prunable_tool_chars": 30_000}
    kept = results(pruned(conversation(20_000, 20_000), 5000, count_before_trim=True, **section))
    assert text_of(kept[0].content) == NOTHING
    kept = results(pruned(conversation(20_000, 20_000), 5000, **section))
    assert text_of(kept[0].content) != NOTHING


def test_d13_clearing_stops_below_the_ratio() -> None:
    kept = results(pruned(conversation(*[3000] * 4), 4000, min_prunable_tool_chars=0))
    assert [text_of(r.content) == NOTHING for r in kept] == [True, True, False, False]


def test_d14_clearing_can_be_switched_off() -> None:
    made = draft(conversation(*[3000] * 4))
    prune(made, 2000, settings(min_prunable_tool_chars=0, hard_clear={"enabled": False}))
    assert made.messages is made.original
    assert [n.rule for n in made.remarks] == ["pruning_clear_off"]


def test_d15_a_blank_placeholder_is_the_default_one() -> None:
    section = {"min_prunable_tool_chars": 0, "hard_clear": {"placeholder": "  "}}
    assert text_of(results(pruned(conversation(3000), 1000, **section))[0].content) == NOTHING


@pytest.mark.parametrize(
    ("messages", "window", "rule"),
    [
        (conversation(20_000), 20_000, "pruning_ratio"),
        (conversation(20_000, after=1), 9000, "pruning_few_replies"),
        ([assistant(""), long_result("x", 9000), *[assistant("a")] * 3], 100, "pruning_no_user"),
        (conversation(after=3), 10, "pruning_nothing_old"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_why_nothing_was_pruned_is_said(messages: list[Message], window: int, rule: str) -> None:
    made = draft(messages)
    assert prune(made, window, settings()) == {}
    assert [n.rule for n in made.remarks] == [rule]
    assert all(n.text for n in made.remarks)


def test_why_a_result_was_kept_is_said() -> None:
    messages = [assistant("", call("h")), long_result("h", 9000), *conversation(9000, 100)]
    messages += [assistant("", call("t", "get")), long_result("t", 9000, "get")]
    made = draft(messages)
    prune(made, 9000, settings(tools={"deny": ["exec"]}, keep_last_assistants=1))
    assert [n.rule for n in made.notes.values()] == ["before_first_user", *["tool_not_prunable"] * 2, "protected_tail"]
    made = draft(messages)
    prune(made, 9000, settings(keep_last_assistants=1))
    assert [made.notes[i].rule for i in sorted(made.notes)][1:3] == ["soft_trim", "short_enough"]


@pytest.mark.parametrize(
    ("section", "path", "expected"),
    [
        pytest.param({"ttl": "bad"}, "ttl", "expected a duration", id="D16"),
        pytest.param({"soft_trim_ratio": 9}, "soft_trim_ratio", "expected 0 to 1", id="D28-soft"),
        pytest.param({"hard_clear_ratio": -1}, "hard_clear_ratio", "expected 0 to 1", id="D28-hard"),
        pytest.param({"mode": "sometimes"}, "mode", "expected one of cache-ttl, always, off", id="mode"),
    ],
)
def test_d16_d28_wrong_settings_are_said_with_their_key(section: Any, path: str, expected: str) -> None:
    _, (problem,) = structure(Config, section)
    assert problem.path == path
    assert expected in problem.message


# --- D: when it acts -------------------------------------------------------------------------------------------


def at(
    messages: Sequence[Message], idle: float, plugin: ContextPruning, where: Any, window: int = 9000
) -> h.ContextEdit:
    """The plugin's answer `idle` milliseconds after the last reply of `builders`."""
    event = h.BeforeModelCall(tuple(messages), 1, window, 1_772_355_600_000 + idle)
    return asyncio.run(plugin.context(event, where))


def only_pruning(**section: Any) -> ContextPruning:
    """The plugin without making requests fit."""
    return ContextPruning(settings(fit={"enabled": False}, **section))


def rules(edit: h.ContextEdit) -> set[str]:
    return {n.rule for n in edit.notes if n.index is None}


def test_d17_no_ttl_never_prunes(tmp_path: Path) -> None:
    edit = at(conversation(20_000), 99 * MINUTE, only_pruning(ttl="0m"), host(tmp_path), 12_000)
    assert edit.messages is None
    assert rules(edit) == {"pruning_ttl"}


def test_d18_nothing_is_pruned_before_the_first_reply(tmp_path: Path) -> None:
    messages = [user("u"), long_result("x", 9000)]
    plugin = only_pruning(keep_last_assistants=0)
    edit = at(messages, 99 * MINUTE, plugin, host(tmp_path), 100)
    assert edit.messages is None
    assert rules(edit) == {"pruning_first_run"}


def test_d19_nothing_is_pruned_while_the_cache_is_warm(tmp_path: Path) -> None:
    plugin, where = only_pruning(), host(tmp_path)
    assert at(conversation(20_000), 4 * MINUTE, plugin, where, 12_000).messages is None
    assert at(conversation(20_000), 5 * MINUTE, plugin, where, 12_000).messages is not None


def test_d20_what_was_pruned_stays_so(tmp_path: Path) -> None:
    plugin, where, messages = only_pruning(), host(tmp_path), conversation(20_000)
    first = at(messages, 6 * MINUTE, plugin, where, 12_000)
    assert first.messages is not None
    later = [*messages, evolve(assistant("more"), timestamp=1_772_355_600_000 + 6.0 * MINUTE)]
    second = at(later, 6 * MINUTE + 10, plugin, where, 12_000)
    assert second.messages is not None
    assert second.messages[: len(messages)] == first.messages
    assert second.messages[-1] is later[-1]


def test_d20_a_new_result_with_an_old_id_is_not_pruned(tmp_path: Path) -> None:
    plugin, where, messages = only_pruning(), host(tmp_path), conversation(20_000)
    assert at(messages, 6 * MINUTE, plugin, where, 12_000).messages is not None
    now = 1_772_355_600_000 + 6.0 * MINUTE
    fresh = evolve(long_result("c0", 20_000), timestamp=now)
    later = [*messages, evolve(assistant("", call("c0")), timestamp=now), fresh]
    edit = at(later, 6 * MINUTE + 10, plugin, where, 12_000)
    assert edit.messages is not None
    assert edit.messages[-1] is fresh


@pytest.mark.parametrize(
    ("allow", "deny", "name", "expected"),
    [
        pytest.param(["ex*"], ["exec"], "exec", False, id="D21-denied"),
        pytest.param(["ex*"], ["exec"], "EXEC", False, id="D21-case"),
        pytest.param(["ex*"], ["exec"], "Execute", True, id="D21-allowed"),
        pytest.param(["ex*"], ["exec"], "browser", False, id="D21-other"),
        pytest.param([" "], [], "anything", True, id="D22"),
        pytest.param(["a.b"], [], "axb", False, id="D23"),
        pytest.param(["read"], [], "", False, id="D24"),
        pytest.param([], [], "", True, id="no-name"),
    ],
)
def test_d21_to_d24_patterns(allow: list[str], deny: list[str], name: str, expected: bool) -> None:
    assert allowed(name, allow, deny) is expected
    messages = conversation(20_000, name=name)
    edit = pruned(messages, 12_000, tools={"allow": allow, "deny": deny})
    assert (edit is not messages) is expected


@pytest.mark.parametrize(
    ("provider", "model", "acts"),
    [
        pytest.param("openai", "gpt-5", False, id="D26"),
        pytest.param("openrouter", "anthropic/claude-x", True, id="D27"),
        pytest.param("openrouter", "openai/gpt-5", False, id="D27-other"),
        pytest.param("Anthropic", "claude-x", True, id="case"),
        pytest.param("zai", "glm", True, id="zai"),
    ],
)
def test_d26_d27_providers(provider: str, model: str, acts: bool, tmp_path: Path) -> None:
    where = host(tmp_path, provider=provider, model=model)
    edit = at(conversation(20_000), 6 * MINUTE, only_pruning(), where, 12_000)
    assert (edit.messages is not None) is acts
    assert ("pruning_provider" in rules(edit)) is not acts
    everywhere = at(conversation(20_000), 6 * MINUTE, only_pruning(providers=["*"]), where, 12_000)
    assert everywhere.messages is not None


def markers(
    tmp_path: Path, steps: list[Any], *, provider: str = "anthropic", window: int = 100_000, **config: Any
) -> Any:
    """The data of all cache entries after two prompts."""
    model = scripted(steps, provider=provider, context_window=window)
    keep = {"compaction.keep_recent_tokens": 100}
    agent = open_agent(tmp_path, model, settings=keep, plugins=[ContextPruning(settings(**config))])

    async def talk() -> None:
        async with agent.session() as session:
            await session.prompt("one " + "x" * 8000)
            await session.prompt("two " + "y" * 4000)

    asyncio.run(talk())
    located = agent.store.locate(agent.key())
    assert located is not None
    lines = agent.store.open(located, cwd="").lines()
    assert located.entry["transcriptEntries"] == len(lines)
    return [en.fields["data"] for en in lines.entries() if en.text("customType") == MARKER]


def test_each_run_notes_that_it_used_the_cache(tmp_path: Path) -> None:
    first, second = markers(tmp_path, [{"text": "a"}, {"text": "b"}])
    assert (first["provider"], first["modelId"]) == ("anthropic", "script")
    assert second["timestamp"] >= first["timestamp"] > 1_700_000_000_000


def test_d25_a_run_that_ended_with_a_compaction_leaves_no_entry(tmp_path: Path) -> None:
    full = {"text": "b", "usage": {"input": 95_000, "totalTokens": 95_000}}
    assert len(markers(tmp_path, [{"text": "a"}, full, {"text": "summary"}])) == 1


@pytest.mark.parametrize("config", [{"mode": "off"}, {"mode": "always"}, {"providers": ["zai"]}])
def test_where_the_cache_does_not_count_there_is_no_entry(tmp_path: Path, config: dict[str, Any]) -> None:
    assert markers(tmp_path, [{"text": "a"}, {"text": "b"}], **config) == []


def test_mode_always_prunes_whatever_the_cache_holds(tmp_path: Path) -> None:
    edit = at(conversation(20_000), 0, only_pruning(mode="always"), host(tmp_path), 12_000)
    assert edit.messages is not None


def test_mode_off_still_makes_requests_fit(tmp_path: Path) -> None:
    edit = at(conversation(20_000), 99 * MINUTE, ContextPruning(settings(mode="off")), host(tmp_path), 9000)
    assert rules(edit) == {"pruning_off"}
    assert [n.rule for n in edit.notes if n.index is not None] == ["result_over_limit"]
