"""Taking entries over: doing it twice is doing it once, and no entry of ours is ever lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lamella.moving.entries import ORIGIN, Incoming, agent_key, merged

_keys = st.sampled_from(["agent:main:main", "agent:main:a", "agent:main:b"])
_entries = st.fixed_dictionaries(
    {"sessionId": st.sampled_from(["s1", "s2", "s3"]), "updatedAt": st.integers(0, 3)},
    optional={"label": st.text(max_size=2), ORIGIN: st.sampled_from(["here", "there"])},
).map(lambda entry: {**entry, "sessionFile": f"{entry['sessionId']}.jsonl"})
_sessions = st.dictionaries(_keys, _entries, max_size=3)


def incoming(theirs: dict[str, Any]) -> list[Incoming]:
    return [Incoming(key, {k: v for k, v in entry.items() if k != ORIGIN}) for key, entry in theirs.items()]


@given(_sessions, _sessions, st.sets(st.sampled_from(["s1.jsonl", "s2.jsonl"])))
def test_the_second_time_changes_nothing(ours: Any, theirs: Any, went_on: set[str]) -> None:
    before = {key: dict(entry) for key, entry in ours.items()}
    once, _ = merged(ours, incoming(theirs), origin="there", label="x", went_on=went_on)
    twice, items = merged(once, incoming(theirs), origin="there", label="x", went_on=went_on)
    assert ours == before
    assert twice == once
    assert {item.action for item in items} <= {"same", "kept"}


@given(_sessions, _sessions, st.sets(st.sampled_from(["s1.jsonl", "s2.jsonl"])))
def test_ours_stay_and_theirs_are_all_there(ours: Any, theirs: Any, went_on: set[str]) -> None:
    result, items = merged(ours, incoming(theirs), origin="there", label="x", went_on=went_on)
    assert result.keys() >= ours.keys()
    for key, entry in ours.items():
        followed = entry.get(ORIGIN) == "there" and entry["sessionFile"] not in went_on
        assert result[key]["sessionId"] == entry["sessionId"] or followed
        assert result[key]["updatedAt"] >= entry["updatedAt"]
    for key, item in zip(theirs, items, strict=True):
        assert result[item.target]["sessionId"] == theirs[key]["sessionId"] or item.action == "kept"


def test_keys_of_other_programs() -> None:
    assert agent_key("main", "main").text == "agent:main:main"
    assert agent_key("main", " Agent:Work Bot:Telegram:group:-1 ").text == "agent:work-bot:telegram:group:-1"
    assert agent_key("main", "subagent:x").text == "agent:main:subagent:x"
