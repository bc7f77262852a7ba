"""Quotes from all transcripts of an agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamella.errors import EntryNotFound, SessionError, SessionNotFound, UsageError
from lamella.mcp import recall
from lamella.mcp.recall import asked, read_in, recall_in
from lamella.sessions.keys import parse_key
from lamella.sessions.store import SessionStore
from lamella.types.messages import TextBlock, UserMessage

SECRET = "sk-proj-abcdefghij0123456789abcd"


def say(store: SessionStore, key: str, *texts: str) -> list[str]:
    """A session in which a user says something; the ids of the entries."""
    located, _ = store.begin(parse_key(key))
    file = store.open(located, cwd="/")
    ids = [file.append_message(UserMessage((TextBlock(text),), 1_000)).id for text in texts]
    file.close()
    return ids


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions")


def test_all_sessions_or_one(store: SessionStore) -> None:
    say(store, "agent:main:main", "The locker code is 4417.", "Tea at four.")
    say(store, "agent:main:work", "The locker at work has code 9001.", "储物柜的密码是九千。")
    found = recall_in(store, None, "locker code", 5)
    assert {(q.session, q.quote.text[-5:-1]) for q in found.quotes} == {
        ("agent:main:main", "4417"),
        ("agent:main:work", "9001"),
    }
    assert (found.searched, found.sessions, found.skipped) == (2, 2, ())
    one = recall_in(store, parse_key("agent:main:work"), "储物柜", 5)
    assert [q.quote.text for q in one.quotes] == ["储物柜的密码是九千。"]
    assert not recall_in(store, None, "submarine", 5).quotes
    with pytest.raises(SessionNotFound):
        recall_in(store, parse_key("agent:main:none"), "x", 5)


def test_secrets_are_masked_wherever_a_passage_is_cut(store: SessionStore) -> None:
    long = "The harbour master keeps the tide tables. " * 40 + f"The deploy key is {SECRET}, keep it. " + "Rain. " * 400
    (entry,) = say(store, "agent:main:main", long)
    (found,) = recall_in(store, None, "deploy key", 5).quotes
    assert "deploy key is sk-" in found.quote.text
    assert "***" in found.quote.text
    whole = read_in(store, None, entry, 0).quote
    rest = read_in(store, None, entry, whole.start + 1_600).quote
    assert "abcdefghij" not in found.quote.text + whole.text + rest.text
    assert found.quote.start + len(found.quote.text) + found.quote.left == len(whole.text) + whole.left


def test_entries_are_read_in_parts(store: SessionStore) -> None:
    text = "".join(f"第{i}段。" for i in range(4_000))
    (entry,) = say(store, "agent:main:main", text)
    first = read_in(store, parse_key("agent:main:main"), entry, 0).quote
    second = read_in(store, None, entry, len(first.text)).quote
    assert text.startswith(first.text + second.text)
    with pytest.raises(UsageError, match=r"has \d+ characters"):
        read_in(store, None, entry, len(text))
    with pytest.raises(EntryNotFound):
        read_in(store, None, "00000000", 0)


def test_a_damaged_transcript_is_told_and_others_are_searched(store: SessionStore) -> None:
    say(store, "agent:main:main", "The locker code is 4417.")
    say(store, "agent:main:work", "Nothing of interest.")
    located = store.require(parse_key("agent:main:work"))
    located.path.write_bytes(b"\x00\x01 no transcript\n")
    found = recall_in(store, None, "locker", 5)
    assert len(found.quotes) == 1
    assert (found.searched, found.sessions) == (1, 2)
    assert found.skipped[0].startswith("agent:main:work: ")
    with pytest.raises(SessionError):
        read_in(store, parse_key("agent:main:work"), "00000000", 0)


def test_only_so_much_is_read(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(5):
        say(store, f"agent:main:s{i}", f"locker {i} " + "x" * 1_000)
    monkeypatch.setattr(recall, "MOST_BYTES", 3_000)
    found = recall_in(store, None, "locker", 20)
    assert 1 <= found.searched < 5
    assert found.sessions == 5
    monkeypatch.setattr(recall, "MOST_BYTES", 10)  # less than any has: the newest counts all the same
    assert recall_in(store, None, "locker", 20).searched == 1


@pytest.mark.parametrize(("query", "entry"), [("", ""), ("  ", ""), ("words", "id")])
def test_a_question_or_an_entry(query: str, entry: str) -> None:
    with pytest.raises(UsageError, match="needs query"):
        asked(query, entry)
