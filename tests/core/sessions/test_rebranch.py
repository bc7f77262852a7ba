"""A branch written again with other messages: ids mapped, old entries kept, all or nothing on disk."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from builders import result, user
from hypothesis import given
from hypothesis import strategies as st

from lamella.errors import EntryNotFound, TranscriptError
from lamella.sessions.rebranch import rebranched
from lamella.sessions.transcript import SessionFile
from lamella.types.messages import Message, text_of

SHORT = result("c", "short")


def session(tmp_path: Path) -> SessionFile:
    return SessionFile.create(tmp_path / "s.jsonl", session_id="s", now="2026-05-10T09:00:00.000Z")


def texts(file: SessionFile) -> list[str]:
    return [text_of(getattr(m, "content", getattr(m, "summary", ""))) for m in file.context().messages]


def test_what_follows_is_written_again_and_references_follow(tmp_path: Path) -> None:
    file = session(tmp_path)
    file.append_message(user("first"))
    long = file.append_message(result("c", "long"))
    kept = file.append_message(user("kept"))
    file.set_label(kept.id, "here")
    file.append_compaction("summary", kept.id, 100)
    file.append_custom("some.plugin", {"n": 1})
    last = file.append_message(user("last"))
    before = file.path.read_bytes()
    shown = texts(file)

    file.replace_messages({long.id: SHORT})

    assert texts(file) == shown == ["summary", "kept", "last"]
    assert file.path.read_bytes().startswith(before)
    for again in (SessionFile.open(file.path), SessionFile.open(file.path, whole=True)):
        assert texts(again) == shown
        assert again.leaf_id == file.leaf_id != last.id
    whole = SessionFile.open(file.path, whole=True)
    new = {e.text("type", e.type): e for e in whole.branch_entries()}
    labels = whole.labels
    assert labels[kept.id] == "here"
    copy_of_kept = new["compaction"].text("firstKeptEntryId")
    assert copy_of_kept != kept.id
    assert labels[copy_of_kept] == "here"
    assert whole.entry(copy_of_kept).timestamp == kept.timestamp
    assert whole.entry(long.id).message == evolve(result("c", "long"))
    assert whole.entry(whole.entry(copy_of_kept).parent_id or "").message == SHORT


def test_the_first_entry_can_be_replaced(tmp_path: Path) -> None:
    file = session(tmp_path)
    first = file.append_message(user("long"))
    file.append_message(user("last"))
    file.replace_messages({first.id: user("short")})
    assert texts(file) == texts(SessionFile.open(file.path)) == ["short", "last"]
    assert SessionFile.open(file.path, whole=True).branch_entries()[0].parent_id is None


def test_a_session_goes_on_after_it(tmp_path: Path) -> None:
    file = session(tmp_path)
    first = file.append_message(user("a"))
    file.replace_messages({first.id: user("b")})
    file.append_message(user("c"))
    again = SessionFile.open(file.path)
    again.append_message(user("d"))
    assert texts(again) == ["b", "c", "d"]
    assert not again.damage


def test_an_entry_of_another_branch_is_refused(tmp_path: Path) -> None:
    file = session(tmp_path)
    root, left = file.append_message(user("a")), file.append_message(user("b"))
    file.branch(root.id)
    before = file.path.read_bytes()
    for entry_id in (left.id, "nobody"):
        with pytest.raises(EntryNotFound):
            file.replace_messages({entry_id: user("x")})
    file.replace_messages({})
    assert file.path.read_bytes() == before


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_when_it_cannot_be_stored_nothing_has_changed(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = session(tmp_path)
    first = file.append_message(user("a"))
    file.append_message(user("b"))
    before = file.path.read_bytes()

    def fail(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fail)
        with pytest.raises(TranscriptError, match="No space left"):
            file.replace_messages({first.id: user("x")})
    assert file.path.read_bytes() == before
    assert texts(file) == ["a", "b"]
    file.append_message(user("c"))
    assert texts(SessionFile.open(file.path)) == ["a", "b", "c"]


def test_another_writer_is_noticed(tmp_path: Path) -> None:
    file = session(tmp_path)
    first = file.append_message(user("a"))
    SessionFile.open(file.path).append_message(user("b"))
    with pytest.raises(TranscriptError, match="changed by another process"):
        file.replace_messages({first.id: user("x")})


KINDS = st.sampled_from(["message", "custom", "label", "compaction", "model_change"])


@given(st.lists(KINDS, min_size=1, max_size=12), st.data())
def test_every_reference_leads_to_the_branch(kinds: list[str], data: Any) -> None:
    entries = []
    for i, kind in enumerate(kinds):
        fields: dict[str, Any] = {"type": kind, "id": f"e{i}", "parentId": f"e{i - 1}" if i else None, "timestamp": "t"}
        target = f"e{data.draw(st.integers(0, max(i - 1, 0)))}"
        fields |= {"label": {"targetId": target, "label": "l"}, "compaction": {"firstKeptEntryId": target}}.get(
            kind, {}
        )
        entries.append(fields)
    from lamella.sessions.lines import to_entry

    branch = [to_entry(f) for f in entries]
    at = data.draw(st.integers(0, len(branch) - 1))
    replaced: dict[str, Message] = {branch[at].id: user("x")}
    snapshot = json.dumps(entries)
    ids = (f"n{i}" for i in range(1000))
    copies = rebranched(branch, replaced, {f"e{at}": "l"} if branch[at].type != "label" else {}, lambda: next(ids))
    assert json.dumps(entries) == snapshot
    path = [*(e.id for e in branch[:at]), *(c.id for c in copies)]
    assert len(set(path)) == len(path)
    parents = [c.parent_id for c in copies]
    assert parents == [None if not at else f"e{at - 1}", *(c.id for c in copies[:-1])][: len(copies)]
    for copy in copies:
        for name in ("firstKeptEntryId", "targetId"):
            target = copy.text(name)
            if target and branch[int(target[1:]) if target[0] == "e" else 0].type != "label":
                assert target in path
