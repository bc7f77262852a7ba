"""Holds: a memory file that is replaced, removed or exchanged for a link while it is being opened is read as
it is now, or refused, but never half."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lamella.errors import MemoryPathError
from lamella.memory.reading import load
from lamella.memory.roots import readable_file


@pytest.fixture
def note(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/a.md").write_text("old")
    (tmp_path / "aside.md").write_text("new")
    return tmp_path / "memory/a.md"


def opening(note: Path, monkeypatch: pytest.MonkeyPatch, before: Callable[[], object], times: int = 1) -> bytes | None:
    """What is read of the note when something happens between looking at it and opening it."""
    real, left = os.open, [times]

    def slow(path: object, *rest: object) -> int:
        if str(path) == str(note) and left[0]:
            left[0] -= 1
            before()
        return real(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", slow)
    content = load(readable_file(note.parents[1], "memory/a.md"))
    return content.data if content else None


def test_a_replaced_file_is_looked_at_again(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opening(note, monkeypatch, lambda: (note.parents[1] / "aside.md").replace(note)) == b"new"


def test_a_removed_file_does_not_exist(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opening(note, monkeypatch, note.unlink) is None


def test_a_file_that_never_rests_is_refused(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aside = note.parents[1] / "aside.md"

    def again() -> None:
        aside.write_text("again")
        aside.replace(note)

    with pytest.raises(MemoryPathError):
        opening(note, monkeypatch, again, times=1000)


def test_a_second_name_is_refused(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemoryPathError):
        opening(note, monkeypatch, lambda: os.link(note, note.parents[1] / "second.md"))
