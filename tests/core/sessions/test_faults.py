"""A full disk or a failing sync leaves old content whole, says so, and the next attempt works."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from builders import CASES, transcript, user, write_lines

from lamella.errors import SessionError, TranscriptError
from lamella.sessions.index import SessionIndex
from lamella.sessions.transcript import SessionFile
from lamella.types.messages import text_of

real_write = os.write


def full_after(size: int) -> Callable[[int, Any], int]:
    """os.write on a disk with so many bytes left."""
    left = size

    def write(fd: int, data: Any) -> int:
        nonlocal left
        if left <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = real_write(fd, bytes(data)[:left])
        left -= written
        return written

    return write


def fails(code: int) -> Callable[..., None]:
    def call(*_arguments: Any) -> None:
        raise OSError(code, os.strerror(code))

    return call


@pytest.mark.parametrize("size", [0, 1, 40])
def test_a_full_disk_takes_no_half_entry(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_lines(tmp_path / "s.jsonl", transcript(["one"]))
    before = path.read_bytes()
    file = SessionFile.open(path)
    leaf = file.leaf_id
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", full_after(size))
        with pytest.raises(TranscriptError, match="No space left"):
            file.append_message(user("two " * 50))
    assert path.read_bytes() == before
    assert file.leaf_id == leaf
    file.append_message(user("three"))
    assert [text_of(m.content) for m in SessionFile.open(path).context().messages] == ["one", "three"]  # type: ignore[union-attr]


def test_a_failing_sync_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_lines(tmp_path / "s.jsonl", transcript(["one"]))
    before = path.read_bytes()
    file = SessionFile.open(path)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fails(errno.EIO))
        with pytest.raises(TranscriptError, match="Input/output error"):
            file.append_message(user("two"))
    assert path.read_bytes() == before


def test_a_new_session_that_cannot_be_written_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.jsonl"
    file = SessionFile.create(path)
    with monkeypatch.context() as broken:
        broken.setattr(os, "write", full_after(10))
        with pytest.raises(TranscriptError):
            file.append_message(user("one"))
    assert not path.exists()
    file.append_message(user("one"))
    assert len(SessionFile.open(path).context().messages) == 1


@pytest.mark.parametrize(
    ("name", "fault"),
    [("write", full_after(5)), ("fsync", fails(errno.EIO)), ("replace", fails(errno.EACCES))],
    ids=["disk full", "sync fails", "rename fails"],
)
def test_the_index_stays_whole(name: str, fault: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = SessionIndex(tmp_path)
    index.update("agent:main:a", lambda _e: {"sessionId": "a", "updatedAt": 1})
    before = index.path.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(os, name, fault)
        with pytest.raises((SessionError, OSError)):
            index.update("agent:main:b", lambda _e: {"sessionId": "b", "updatedAt": 1})
    assert index.path.read_bytes() == before
    index.update("agent:main:b", lambda _e: {"sessionId": "b", "updatedAt": 1})
    assert set(index.load().sessions) == {"agent:main:a", "agent:main:b"}
    files = sorted(p.name for p in tmp_path.iterdir() if p.is_file())
    assert files == ["sessions.json", "sessions.json.bak"]


@pytest.mark.parametrize(("call", "code"), [("write", "ENOSPC"), ("fsync", "EIO"), ("replace", "EACCES")])
def test_a_file_that_cannot_be_written_anew_stays(
    call: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes((CASES / "K08/broken_header.jsonl").read_bytes())
    before = path.read_bytes()
    file = SessionFile.open(path)
    with monkeypatch.context() as broken:
        broken.setattr(os, call, fails(getattr(errno, code)))
        with pytest.raises((SessionError, OSError), match=os.strerror(getattr(errno, code))):
            file.append_message(user("two"))
    assert path.read_bytes() == before
    file = SessionFile.open(path)
    file.append_message(user("three"))
    texts = [text_of(m.content) for m in SessionFile.open(path).context().messages]  # type: ignore[union-attr]
    assert (len(texts), texts[-1]) == (7, "three")
    assert list(tmp_path.rglob("*.tmp*")) == []


async def test_a_turn_fails_with_the_disks_words_and_the_next_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_agent(tmp_path, scripted(["one", "two", "three"])) as runtime:
        await runtime.ask("first")

        class Full:
            name = "full"

        with monkeypatch.context() as broken:
            broken.setattr("lamella.sessions.writer.os.write", full_after(0))
            with pytest.raises((SessionError, OSError), match="No space left"):
                await runtime.ask("second")
        assert (await runtime.ask("third")).error is None
