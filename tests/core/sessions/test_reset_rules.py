"""Keys, reset policies and merges as OpenClaw 2026.3.13 has them (recorded from its functions), and rows G28 to G49.

Departures are listed in docs/decisions/0027-resets-and-notes.md.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.config.schema import ResetSection, SessionSection
from lamella.config.structure import structure
from lamella.errors import UsageError
from lamella.sessions.index import merge_entry
from lamella.sessions.keys import parse_key
from lamella.sessions.reset import (
    ResetPolicy,
    ResetRequest,
    carried_over,
    last_interaction,
    overdue,
    policy_for,
    reset_request,
    reset_type,
)
from lamella.sessions.routing import Chat, chat_key, cron_key, subagent_key

ROWS = json.loads((Path(__file__).parents[2] / "data/context/sessions.json").read_text())
BERLIN = ZoneInfo("Europe/Berlin")


def recorded(group: str) -> list[Any]:
    return [pytest.param(row, id=row["name"]) for row in ROWS if row["group"] == group]


# --- keys ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", recorded("key.peer"))
def test_g45_to_g47_keys_of_chats(row: Any) -> None:
    given = row["input"]
    chat = Chat(given.get("channel", ""), given["peerId"], given["peerKind"], given.get("accountId", ""))
    options = {"dm_scope": given.get("dmScope", "main"), "identity_links": given.get("identityLinks")}
    assert chat_key(chat, given["agentId"], **options).text == row["output"]


@pytest.mark.parametrize("row", recorded("key.parse"))
def test_g48_g49_parts_of_keys(row: Any) -> None:
    text, expected = row["input"]["key"], row["output"]
    if expected["parsed"] is None:
        with pytest.raises(UsageError):
            parse_key(text)
        return
    key = parse_key(text)
    assert {"agentId": key.agent_id, "rest": key.rest} == expected["parsed"]
    assert (key.kind == "cron", key.kind == "subagent") == (expected["cron"], expected["subagent"])
    assert (key.subagent_depth, key.thread_parent) == (expected["depth"], expected["threadParent"])
    without_channel = "direct" if ":" not in key.rest else "unknown"  # the main key is somebody's own chat
    assert key.chat_type == (expected["chatType"] if expected["chatType"] != "unknown" else without_channel)


def test_keys_of_threads_topics_subagents_and_schedules() -> None:
    assert chat_key(Chat("slack", "C1", "channel", thread="1.2")).text == "agent:main:slack:channel:c1:thread:1.2"
    topic = chat_key(Chat("telegram", "-100", "group", topic="5"))
    assert (topic.text, topic.thread_parent) == (
        "agent:main:telegram:group:-100:topic:5",
        "agent:main:telegram:group:-100",
    )
    once = subagent_key(parse_key("agent:a:main"), "u1")
    assert (once.text, subagent_key(once, "u2").text) == ("agent:a:subagent:u1", "agent:a:subagent:u1:subagent:u2")
    assert cron_key("main", "job", "r").text == "agent:main:cron:job:run:r"


def test_an_identity_is_one_session_over_channels() -> None:
    links = {"Alice": ("telegram:123", "a@x")}
    for chat in (Chat("telegram", "123"), Chat("mail", "A@x")):
        assert chat_key(chat, dm_scope="per-peer", identity_links=links).text == "agent:main:direct:alice"
    assert chat_key(Chat("signal", "123"), dm_scope="per-peer", identity_links=links).text == "agent:main:direct:123"


@pytest.mark.parametrize(
    ("key", "channel"),
    [("main", ""), ("direct:7", ""), ("telegram:direct:7", "telegram"), ("telegram:acc:dm:7", "telegram")],
)
def test_channels_of_keys(key: str, channel: str) -> None:
    assert parse_key(f"agent:main:{key}").channel == channel


# --- policies --------------------------------------------------------------------------------------------


def section(config: Any) -> tuple[SessionSection | None, list[Any]]:
    """OpenClaw's settings as lamella's; its default, daily, is written out."""
    names = {"mode": "mode", "atHour": "at_hour", "idleMinutes": "idle_minutes"}
    rule = lambda given: {names[k]: v for k, v in given.items()}  # noqa: E731
    idle = {"mode": "idle", "idleMinutes": config.get("idleMinutes")} if "idleMinutes" in config else {}
    general = {"mode": "daily", **idle, **config.get("reset", {})}
    data = {"reset": rule(general), "reset_by_type": {k: rule(v) for k, v in config.get("resetByType", {}).items()}}
    if "override" in config:
        data["reset_by_channel"] = {"Telegram": rule(config["override"])}
    return structure(SessionSection, data)


@pytest.mark.parametrize("row", recorded("reset.policy"))
def test_g38_to_g41_policies(row: Any) -> None:
    given, expected = row["input"], row["output"]
    config = dict(given["sessionCfg"])
    if "resetOverride" in given:
        config["override"] = given["resetOverride"]
    found, problems = section(config)
    if row["name"] in ("hourClamp", "hourNeg", "dailyPlusIdle"):  # a number out of range is an error that names its key
        assert found is None
        assert "reset." in str(problems[0])
        return
    assert found is not None, problems
    policy = policy_for(found, given["resetType"], "telegram" if "override" in config else "")
    hour = expected["atHour"] if expected["mode"] == "daily" else None
    assert policy == ResetPolicy(hour, expected.get("idleMinutes"))


def test_by_default_no_session_ends_by_itself() -> None:
    for kind in ("direct", "group", "thread"):
        assert policy_for(SessionSection(), kind, "telegram") == ResetPolicy()  # type: ignore[arg-type]
    types, problems = structure(SessionSection, {"reset_by_type": {"room": {"mode": "daily"}}})
    assert types is None
    assert "room: expected one of direct, group, thread" in str(problems[0])


def test_a_type_goes_before_the_general_policy_key_by_key() -> None:
    found = SessionSection(reset=ResetSection("daily", 6, 30), reset_by_type={"group": ResetSection(idle_minutes=5)})
    assert policy_for(found, "group") == ResetPolicy(6, 5)
    assert policy_for(found, "direct") == ResetPolicy(6, 30)


@pytest.mark.parametrize("row", recorded("reset.fresh(TZ=UTC)"))
def test_g34_to_g38_freshness(row: Any) -> None:
    given = row["input"]
    rule = given["policy"]
    policy = ResetPolicy(rule["atHour"] if rule["mode"] == "daily" else None, rule.get("idleMinutes"))
    assert (overdue(policy, given["updatedAt"], given["now"], "UTC") is None) == row["output"]


@pytest.mark.parametrize("row", recorded("reset.type"))
def test_types(row: Any) -> None:
    given = row["input"]
    flags = {"is_group": given.get("isGroup", False), "is_thread": given.get("isThread", False)}
    assert reset_type(given["sessionKey"], **flags) == row["output"]


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp() * 1000


@pytest.mark.parametrize(
    ("last", "now", "over"),
    [
        ("2026-05-10T03:59", "2026-05-10T04:01", True),  # G34
        ("2026-05-10T04:00", "2026-05-10T04:01", False),  # G35
        ("2026-05-09T05:00", "2026-05-10T03:00", False),  # G36
        ("2026-03-29T03:59", "2026-03-29T04:00", True),  # the clock has just been put forward
        ("2026-10-25T03:59", "2026-10-25T04:00", True),  # ... and back
        ("2026-10-24T04:30", "2026-10-25T03:30", False),
    ],
)
def test_g34_to_g36_the_day_is_the_users(last: str, now: str, over: bool) -> None:
    assert (overdue(ResetPolicy(4), at(last), at(now), "Europe/Berlin") == "daily") is over


@given(st.integers(0, 4_000_000_000_000), st.integers(0, 10**9), st.integers(0, 23), st.integers(1, 10_000))
def test_a_session_that_is_over_stays_over(last: int, passed: int, hour: int, minutes: int) -> None:
    policy = ResetPolicy(hour, minutes)
    if overdue(policy, last, last + passed, "Europe/Berlin"):
        assert overdue(policy, last, last + passed + 3_600_000, "Europe/Berlin")
    assert overdue(policy, last, last, "Europe/Berlin") is None


def test_g52_the_last_message_of_a_person_counts() -> None:
    assert last_interaction({"updatedAt": 9, "lastInteractionAt": 5}) == 5
    assert last_interaction({"updatedAt": 9}) == 9
    assert last_interaction({"updatedAt": True}) is None


# --- requests --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/NEW", ResetRequest("/new")),  # G28
        ("/new tell me a joke", ResetRequest("/new", "tell me a joke")),  # G29
        ("/newer", None),  # G30
        ("/reset\nfirst\nline", ResetRequest("/reset", "first\nline")),
        ("/new: again", ResetRequest("/new", "again")),
        ("say /new", None),
        ("@bot /reset", None),  # not in a group
    ],
)
def test_g28_to_g30_requests(text: str, expected: ResetRequest | None) -> None:
    assert reset_request(text, names=("bot",)) == expected


def test_g31_others_cannot_reset() -> None:
    assert reset_request("/reset", authorized=False) is None


@pytest.mark.parametrize(
    "text",
    [
        "@bot /reset",
        "@Bot: /reset",
        "[10:30] Anna: @bot /RESET",
        "/reset@bot",
        "[Telegram] [x] /reset",
        "Anna B.: /reset",
    ],
)
def test_g32_what_stands_before_a_request_in_a_group(text: str) -> None:
    assert reset_request(text, group=True, names=("bo", "bot")) == ResetRequest("/reset")


@pytest.mark.parametrize("text", ["@other /reset", "@botanist /reset", "what does /reset do", "https://x /new"])
def test_g32_other_words_before_it_make_a_message_of_it(text: str) -> None:
    assert reset_request(text, group=True, names=("bot",)) is None


# --- entries ---------------------------------------------------------------------------------------------


def test_g33_what_a_new_session_keeps() -> None:
    old = {
        "label": "work",
        "thinkingLevel": "high",
        "modelOverride": "m",
        "channel": "telegram",
        "sessionId": "s",
        "compactionCount": 3,
        "memoryFlushAt": 1,
        "totalTokens": 9,
        "pendingEvents": ["x"],
    }
    kept = {"label": "work", "thinkingLevel": "high", "modelOverride": "m", "channel": "telegram"}
    assert carried_over(old, asked_for=True) == kept
    assert carried_over(old, asked_for=False) == {"channel": "telegram"}


@pytest.mark.parametrize("row", recorded("entry.merge"))
def test_g43_g44_merges(row: Any) -> None:
    given, expected = row["input"], dict(row["output"])
    merged = merge_entry(given["existing"], given["patch"], touch=False)
    if row["name"] == "preserveActivity":
        expected["updatedAt"] = given["patch"][
            "updatedAt"
        ]  # a time that is given counts; patches of metadata give none
    assert merged == expected
