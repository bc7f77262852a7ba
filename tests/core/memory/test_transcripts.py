"""What of a session transcript becomes memory: what people and agents said, without secrets, and where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.memory.transcripts import Talk, is_transcript, read_talk

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-05-10T08:00:00.000Z", "cwd": "/w"}


def message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "id": "m", "parentId": None, "message": {"role": role, "content": content}, **more}


def talk(*entries: Any) -> Talk:
    return read_talk(e if isinstance(e, bytes) else json.dumps(e).encode() + b"\n" for e in entries)


def test_what_was_said_is_one_line_a_message_with_its_place() -> None:
    found = talk(
        HEADER,
        message("user", "When is\n\n the  boiler serviced?"),
        message("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "In May."},
                              {"type": "toolCall", "id": "1", "name": "read", "arguments": {}}]),
        message("toolResult", [{"type": "text", "text": "a long file"}], toolCallId="1"),
        {"type": "compaction", "id": "c", "summary": "They spoke of boilers."},
        {"type": "custom_message", "id": "x", "content": "by a plugin"},
        message("user", [{"type": "text", "text": "And"}, {"type": "text", "text": "the roof?"}]),
    )  # fmt: skip
    assert found.text == "User: When is the boiler serviced?\nAssistant: In May.\nUser: And the roof?\n"
    assert found.lines == (2, 3, 7)


def test_lines_that_cannot_be_read_are_counted_and_say_nothing() -> None:
    found = talk(HEADER, b"{torn\n", b"\n", b"[1]\n", message("user", "hello"), message("user", None), b'{"type":"mess')
    assert (found.text, found.lines) == ("User: hello\n", (5,))


@pytest.mark.parametrize(
    "entry",
    [
        message("assistant", "NO_REPLY"),
        message("assistant", [{"type": "text", "text": " HEARTBEAT_OK\n"}]),
        message("user", "Pre-compaction memory flush. Store durable memories now."),
        message("user", "<relevant-memories>\nthe okapi likes figs\n</relevant-memories>"),
        message("user", [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]),
        message("system", "be nice"),
    ],
    ids=lambda e: str(e["message"]["content"])[:30],
)
def test_what_is_no_talk_is_left_out(entry: dict[str, Any]) -> None:
    assert talk(HEADER, entry) == Talk("", ())


@pytest.mark.parametrize("tag", ["relevant-memories", "recalled-memory"])
def test_what_was_recalled_is_not_taken_for_what_was_said(tag: str) -> None:
    said = f"<{tag}>\n- the okapi likes figs\n</{tag}>\n\nWhat does it like?"
    assert talk(HEADER, message("user", said)).text == "User: What does it like?\n"
    assert "figs" not in talk(HEADER, message("user", f"<{tag} n='1'>the okapi likes figs")).text


def test_secrets_are_masked_before_anything_sees_them() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIFAKE\n-----END PRIVATE KEY-----"
    found = talk(
        HEADER, message("user", f"use sk-abcdefghijklmnop1234 and\n{key}"), message("user", "password: hunter2")
    )
    assert not any(secret in found.text for secret in ("abcdefgh", "MIIFAKE", "hunter2"))
    assert found.text.count("***") == 3


@pytest.mark.parametrize(
    ("key", "taken"),
    [("agent:main:main", True), ("agent:main:discord:group:7", True), ("odd", True), (7, True),
     ("agent:main:cron:job", False), ("agent:main:subagent:1", False), ("agent:main:heartbeat", False)],
)  # fmt: skip
def test_sessions_without_people_say_nothing(key: Any, taken: bool) -> None:
    assert bool(talk({**HEADER, "sessionKey": key}, message("user", "hello")).text) is taken


@pytest.mark.parametrize(
    ("name", "taken"),
    [("a.jsonl", True), ("a.jsonl.reset.2026-05-10T08-00-00.000Z", True), ("a.jsonl.deleted.2026", True),
     ("a.jsonl.bak.2026", False), ("sessions.json", False), ("a.jsonl.lock", False), (".jsonl", False)],
)  # fmt: skip
def test_which_files_are_transcripts(name: str, taken: bool) -> None:
    assert is_transcript(name) is taken


@settings(deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=30), st.text(max_size=30).map(lambda t: message("user", t))), max_size=12))
def test_every_line_of_the_talk_stands_where_it_says(entries: list[Any]) -> None:
    lines = [e.replace(b"\n", b" ") if isinstance(e, bytes) else json.dumps(e).encode() for e in entries]
    found = read_talk(line + b"\n" for line in lines)
    assert found.text.count("\n") == len(found.lines)
    assert list(found.lines) == sorted(set(found.lines))
    for shown, number in zip(found.text.splitlines(), found.lines, strict=False):
        entry = json.loads(lines[number - 1])
        assert shown.startswith("User: ") and entry["message"]["role"] == "user"
