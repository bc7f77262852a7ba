"""History limit: parity with OpenClaw's recorded limits, rows B49 to B57 of the edge cases, case K21,
and whole turns. Where lamella does otherwise on purpose, docs/decisions/0021 has the reason.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from builders import CASES, assistant, call, result, user
from hypothesis import given
from hypothesis import strategies as st
from openclaw_vectors import messages, recorded

from lamella.config.structure import structure
from lamella.context.builtin.history_limit import HistoryLimitConfig, limit_for, limit_turns
from lamella.context.profiles import PROFILES
from lamella.context.repair import repair
from lamella.text.conversation import convert_to_model_messages
from lamella.types.messages import CompactionSummaryMessage, Message, ToolResultMessage, UserMessage, text_of

ROWS = recorded("limit.json")
# An account in the key: OpenClaw finds no limit then.
OWN = {"agent:main:telegram:default:direct:123": 5}


@pytest.mark.parametrize("row", [r for r in ROWS if r["group"] == "history.limit"], ids=lambda row: row["name"])
def test_turns_are_counted_as_in_openclaw(row: dict[str, Any]) -> None:
    given_ = messages(row["input"]["messages"])
    kept = limit_turns(given_, row["input"]["limit"] or 0)
    assert list(kept) == given_[len(given_) - row["output"] :]


def settings(section: Mapping[str, Any]) -> HistoryLimitConfig:
    """OpenClaw's `channels` as lamella's settings."""
    channels = {
        name: {
            ours: ({user: u["historyLimit"] for user, u in value.items()} if ours == "users" else value)
            for theirs, ours in (("dmHistoryLimit", "direct"), ("historyLimit", "group"), ("dms", "users"))
            if (value := channel.get(theirs)) is not None
        }
        for name, channel in section["channels"].items()
    }
    found, problems = structure(HistoryLimitConfig, {"group": 0, "channels": channels})
    assert not problems
    assert found is not None
    return found


@pytest.mark.parametrize("row", [r for r in ROWS if r["group"] == "history.limitFromKey"], ids=lambda row: row["name"])
def test_limits_of_keys_are_those_of_openclaw(row: dict[str, Any]) -> None:
    key = row["input"]["sessionKey"]
    expected = OWN.get(key, row["output"])
    assert limit_for(key, settings(row["input"]["config"])) == (expected or 0)


CHANNELS = settings(
    {"channels": {"telegram": {"dmHistoryLimit": 15, "dms": {"123": {"historyLimit": 5}, "Zero": {"historyLimit": 0}}}}}
)


@pytest.mark.parametrize(
    ("key", "limit"),
    [
        pytest.param("agent:main:telegram:dm:123:thread:99", 5, id="B52"),
        pytest.param("agent:main:telegram:dm:123:thread:abc", 15, id="B53"),
        pytest.param("agent:main:telegram:dm:zero", 0, id="B54"),
        pytest.param("agent:main:telegram:default:direct:123", 5, id="B55"),
        pytest.param("agent:main:main", 0, id="B56"),
        pytest.param("agent:main:direct:123", 7, id="any-channel"),
        pytest.param("agent:main:irc:group:x", 50, id="group-by-default"),
        pytest.param("agent:main:irc:work:channel:x:thread:1", 50, id="channel-by-default"),
        pytest.param("agent:main:subagent:direct", 0, id="subagent"),
    ],
)
def test_b52_to_b56_limits_by_key(key: str, limit: int) -> None:
    config = HistoryLimitConfig(direct=7, channels=CHANNELS.channels)
    assert limit_for(key, config) == limit


HISTORY: list[Message] = [user("1"), assistant("a"), user("2"), assistant("b"), user("3"), assistant("c")]


def test_b49_the_last_turns_stay() -> None:
    assert list(limit_turns(HISTORY, 2)) == HISTORY[2:]


@pytest.mark.parametrize("limit", [0, -1, 3, 9])
def test_b50_no_limit_and_few_turns_are_the_same_object(limit: int) -> None:
    assert limit_turns(HISTORY, limit) is HISTORY


def test_b51_a_leading_summary_stays() -> None:
    summary = CompactionSummaryMessage("before")
    assert limit_turns([summary, *HISTORY], 1) == (summary, *HISTORY[4:])
    whole = [summary, *HISTORY]
    assert limit_turns(whole, 3) is whole


def test_b57_a_result_whose_call_was_cut_off_goes() -> None:
    history = [user("1"), assistant("", call("c")), user("2"), result("c"), user("3")]
    sent = sent_messages(limit_turns(history, 2))
    assert not [m for m in sent if isinstance(m, ToolResultMessage)]


@given(st.lists(st.sampled_from(["user", "assistant", "result"]), max_size=30), st.integers(0, 6), st.booleans())
def test_what_is_kept_is_the_end_with_the_newest_user_message(kinds: list[str], limit: int, summary: bool) -> None:
    made: dict[str, Message] = {"user": user("u"), "assistant": assistant("a"), "result": result("r")}
    history = [*([CompactionSummaryMessage("s")] if summary else []), *(made[k] for k in kinds)]
    before = list(history)
    kept = list(limit_turns(history, limit))
    assert history == before
    assert kept[:1] == history[:1] if summary else True
    body = kept[summary:]
    assert body == history[len(history) - len(body) :]
    users = sum(isinstance(m, UserMessage) for m in history)
    assert sum(isinstance(m, UserMessage) for m in kept) == (min(users, limit) if limit else users)


# --- case K21 ------------------------------------------------------------------------------------------------


def sent_messages(history: Any) -> tuple[Any, ...]:
    return tuple(repair(convert_to_model_messages(history), PROFILES["lenient"], same_model=lambda _message: False))


@pytest.mark.parametrize("limit", range(7))
def test_k21_after_the_cut_every_result_follows_its_call(limit: int) -> None:
    history = messages(json.loads((CASES / "K21" / "messages.json").read_text(encoding="utf-8")))
    before = list(history)
    sent = sent_messages(limit_turns(history, limit))
    open_calls: list[str] = []
    for message in sent:
        if isinstance(message, ToolResultMessage):
            assert message.tool_call_id == open_calls.pop(0)
        else:
            assert not open_calls
            open_calls = [c.id for c in getattr(message, "tool_calls", ())]
    assert text_of(sent[-1].content) == "fourth question"
    texts = " ".join(text_of(m.content) for m in sent)
    assert ("slow finished" in texts) == (limit in (0, 4, 5, 6))
    assert history == before


# --- whole turns ---------------------------------------------------------------------------------------------


def test_a_group_shows_its_limit_and_a_direct_chat_everything(tmp_path: Path) -> None:
    steps = [{"text": f"answer {i}"} for i in range(8)]
    model = scripted(steps)
    agent = open_agent(tmp_path, model, settings={"plugins.config.history-limit.group": 2})

    async def talk(key: str) -> list[str]:
        async with agent.session(key) as session:
            for i in range(4):
                await session.prompt(f"question {i}")
        return [text_of(m.content) for m in model.requests[-1].messages]

    group = asyncio.run(talk("agent:main:irc:group:garden"))
    direct = asyncio.run(talk("agent:main:irc:direct:ada"))
    assert group == ["question 2", "answer 2", "question 3"]
    assert direct[0] == "question 0"
    assert len(direct) == 7


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    agent = open_agent(tmp_path, scripted([]), settings={"plugins.deny": ["history-limit"]})
    (record,) = [r for r in agent.catalog.records if r.name == "history-limit"]
    assert (record.state, record.builtin) == ("off", True)


def test_wrong_limits_are_said_with_their_key() -> None:
    _, problems = structure(HistoryLimitConfig, {"group": -1, "channels": {"irc": {"users": {"ada": -2}}}}, path="p")
    assert [p.path for p in problems] == ["p.group", "p.channels.irc.users"]
    assert all("expected 0 or more" in p.message for p in problems)
