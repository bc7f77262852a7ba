"""Columns, clipping, and nothing that steers a terminal."""

from __future__ import annotations

import pytest

from lamella.text.width import clip, pad, printable, width


def test_wide_characters_take_two_columns() -> None:
    assert width("abc") == 3
    assert width("数据") == 4
    assert width("e\u0301") == 1
    assert pad("数", 4) == "数  "


@pytest.mark.parametrize(
    ("text", "columns", "shown"), [("short", 9, "short"), ("数据库表", 5, "数据…"), ("a\n b", 9, "a b")]
)
def test_clipping(text: str, columns: int, shown: str) -> None:
    assert clip(text, columns) == shown
    assert width(clip(text, columns)) <= columns


def test_control_characters_go() -> None:
    assert printable("a\x1b[2Jb\tc\nd\x07\x9b1m") == "a[2Jb\tc\nd1m"
