"""Reading a file that must lie in a folder: what is read, what is refused, and what is nobody's fault."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.text.inside import Refused, read_inside
from lamella.text.unicode import one_line


def test_a_plain_file_and_a_link_inside(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe")
    (tmp_path / "b.md").symlink_to("a.md")
    assert read_inside(tmp_path, tmp_path / "a.md", 100) == "grüße"
    assert read_inside(tmp_path, tmp_path / "b.md", 100) == "grüße"


def test_a_folder_that_is_reached_by_a_link_is_the_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("text")
    (tmp_path / "link").symlink_to("real", target_is_directory=True)
    assert read_inside(tmp_path / "link", tmp_path / "link" / "a.md", 100) == "text"


@pytest.mark.parametrize("name", ["no.md", "no/where.md", "file/below.md"])
def test_no_file_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    assert read_inside(tmp_path, tmp_path / name, 100) is None


@pytest.mark.parametrize("way", ["../out.md", "sub/../../out.md", "link.md"])
def test_nothing_outside_is_read(tmp_path: Path, way: str) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "out.md").write_text("secret")
    (root / "link.md").symlink_to(tmp_path / "out.md")
    with pytest.raises(Refused, match="outside its folder"):
        read_inside(root, root / way, 100)


def test_the_limit_is_exact_and_the_end_can_be_had(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("日记1234")
    assert read_inside(tmp_path, file, 10) == "日记1234"
    with pytest.raises(Refused, match="10 bytes, more than 9"):
        read_inside(tmp_path, file, 9)
    assert read_inside(tmp_path, file, 9, only_end=True) == "记1234"
    assert read_inside(tmp_path, file, 4, only_end=True) == "1234"
    assert read_inside(tmp_path, file, 10, only_end=True) == "日记1234"


def test_a_file_whose_place_another_one_takes_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note, looks = tmp_path / "note.md", []
    note.write_text("new")

    def lstat(path: Path) -> os.stat_result:
        status = path.stat(follow_symlinks=False)
        looks.append(status)
        # For a moment the system shows the file that has just lost its name.
        return status if len(looks) > 1 else os.stat_result((*status[:3], 0, *status[4:]))

    monkeypatch.setattr(Path, "lstat", lstat)
    assert read_inside(tmp_path, note, 100) == "new"
    assert len(looks) == 2


def test_pipes_folders_and_second_names_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "one").write_text("x")
    os.link(tmp_path / "one", tmp_path / "two")
    for name, why in (("pipe", "regular"), ("folder", "regular"), ("two", "2 names")):
        with pytest.raises(Refused, match=why):
            read_inside(tmp_path, tmp_path / name, 100)


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    clean = one_line(text)
    assert len(clean.splitlines()) <= 1
    clean.encode("utf-8")
    assert one_line(clean) == clean
    assert not set(clean) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
