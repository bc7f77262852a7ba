"""Carrying files: nothing is overwritten, the beginning of a source is continued, twice does the same as once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.moving.files import Content, Move, regular_files

_bytes = st.binary(max_size=6)


@given(_bytes, st.none() | _bytes, st.booleans())
def test_a_target_is_its_source_or_stays(
    tmp_path_factory: pytest.TempPathFactory, source: bytes, target: bytes | None, lock: bool
) -> None:
    folder = tmp_path_factory.mktemp("carried")
    (folder / "source").write_bytes(source)
    if target is not None:
        (folder / "target").write_bytes(target)
    move = Move("workspace", "source", Content(folder / "source"), folder / "target", lock)
    told, done, again = move.item(), move.carry(), move.carry()
    continues = target is None or source.startswith(target)
    assert told == done
    assert done.action == ("add" if target is None else "same" if source == target else "grow" if continues else "kept")
    assert (folder / "target").read_bytes() == (source if continues else target)
    assert again.action in ("same", "kept")


def test_a_transcript_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "s.jsonl"
    source.write_text("longer")
    target.write_text("long")
    lock = {"pid": os.getppid(), "createdAt": "2999-05-10T08:00:00.000Z"}
    (tmp_path / "s.jsonl.lock").write_text(json.dumps(lock))
    done = Move("transcript", "source", Content(source), target, lock=True, timeout=0.1).carry()
    assert (done.action, "is locked" in done.reason) == ("kept", True)
    assert target.read_text() == "long"


def test_a_source_that_is_gone_is_left_out(tmp_path: Path) -> None:
    done = Move("workspace", "gone", Content(tmp_path / "gone"), tmp_path / "target").carry()
    assert (done.action, done.target) == ("left_out", "")
    assert not (tmp_path / "target").exists()


def test_what_is_no_file_here_stays(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    for name in ("link", "folder"):
        assert Move("workspace", "s", Content(tmp_path / "source"), tmp_path / name).carry().action == "kept"
    assert not (tmp_path / "nowhere").exists()


def test_times_come_along(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    os.utime(tmp_path / "source", (1_000, 1_000))
    Move("archive", "s", Content(tmp_path / "source"), tmp_path / "target").carry()
    assert (tmp_path / "target").stat().st_mtime == 1_000


def test_files_are_found_in_order_and_without_following_links(tmp_path: Path) -> None:
    for name in ("b/2", "b/1", "a", ".git/config", "c/node_modules/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = [(f.path.relative_to(tmp_path).as_posix(), f.problem) for f in regular_files(tmp_path, deep=True)]
    assert found == [("a", ""), ("loop", "is a symbolic link"), ("b/1", ""), ("b/2", "")]
    assert list(regular_files(tmp_path / "missing")) == []
