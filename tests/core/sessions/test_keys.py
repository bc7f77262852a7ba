"""The grammar of session keys, agent ids and session ids."""

from __future__ import annotations

import pytest

from lamella.errors import UsageError
from lamella.sessions.keys import check_agent_id, check_session_id, normalize_key, parse_key, slug_agent_id


@pytest.mark.parametrize(
    ("text", "chat_type", "kind"),
    [
        ("agent:main:main", "direct", "main"),
        ("agent:main:direct:7", "direct", "main"),
        ("agent:main:telegram:dm:7", "direct", "main"),
        ("agent:main:telegram:acc:direct:7", "direct", "main"),
        ("agent:main:slack:channel:c1", "channel", "main"),
        ("agent:main:slack:group:g1:topic:9", "group", "main"),
        ("agent:main:subagent:u1", "unknown", "subagent"),
        ("agent:main:cron:job:run:u1", "unknown", "cron"),
    ],
)
def test_chat_types_and_kinds(text: str, chat_type: str, kind: str) -> None:
    key = parse_key(text)
    assert (key.chat_type, key.kind) == (chat_type, kind)


def test_keys_are_trimmed_lower_case_and_without_empty_parts() -> None:
    key = parse_key("  Agent:Main::Telegram:Direct:42 ")
    assert key.text == normalize_key("agent:main:telegram:direct:42") == "agent:main:telegram:direct:42"
    assert (key.agent_id, key.rest) == ("main", "telegram:direct:42")


def test_threads_have_a_parent_and_subagents_a_depth() -> None:
    thread = parse_key("agent:main:slack:channel:c:thread:1:thread:2")
    assert thread.thread_parent == "agent:main:slack:channel:c:thread:1"
    assert parse_key("agent:main:main").thread_parent is None
    assert parse_key("agent:main:subagent:a:subagent:b").subagent_depth == 2
    assert parse_key("agent:main:main").subagent_depth == 0


@pytest.mark.parametrize("text", ["", "main", "agent", "agent:main", "agent::", "user:main:main", "agent:no good:x"])
def test_wrong_keys_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_key(text)


@pytest.mark.parametrize("text", ["", "A", "-a", "a" * 65, "ä", "a b", "../x"])
def test_wrong_agent_ids_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="agent id"):
        check_agent_id(text)


@pytest.mark.parametrize("text", ["", "../x", "a/b", ".hidden", "a" * 129, "a\n"])
def test_wrong_session_ids_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="session id"):
        check_session_id(text)


@pytest.mark.parametrize(
    ("text", "slug"),
    [("Ada Lovelace", "ada-lovelace"), ("  ", "main"), ("数据", "main"), ("-x-", "x"), ("a" * 99, "a" * 64)],
)
def test_agent_ids_from_any_text(text: str, slug: str) -> None:
    assert slug_agent_id(text) == slug
    check_agent_id(slug_agent_id(text))
