"""Holds: what a backend answers is refused with what is wrong with it, or can be shown and sent."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from lamella.errors import MemoryUnavailable
from lamella.memory.results import checked_results
from lamella.types.memory import MemoryHit, MemoryResults

HIT = MemoryHit("memory/会议.md", 3, 4, 0.5, "服务器 😀")


def test_good_results_are_left_as_they_are() -> None:
    found = MemoryResults((HIT, evolve(HIT, score=1)), "acme", index="7")
    assert checked_results(found) is found
    assert checked_results(MemoryResults((), "acme")).hits == ()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, "it answered with NoneType"),
        ([HIT], "it answered with list"),
        (MemoryResults(None, "acme"), "its hits are NoneType"),  # type: ignore[arg-type]
        (MemoryResults(("x",), "acme"), "a hit is str, expected MemoryHit"),  # type: ignore[arg-type]
        ({"path": None}, "that is no text"),
        ({"snippet": b"bytes"}, "that is no text"),
        ({"score": float("nan")}, "a hit of memory/会议.md has the score nan"),
        ({"score": float("inf")}, "the score inf"),
        ({"score": "0.5"}, "the score '0.5'"),
        ({"start_line": None}, "the lines None to 4"),
    ],
)
def test_others_are_refused(found: Any, expected: str) -> None:
    wrong = MemoryResults((HIT, evolve(HIT, **found)), "acme") if isinstance(found, dict) else found
    with pytest.raises(MemoryUnavailable, match=expected):
        checked_results(wrong)


def test_halves_of_characters_are_replaced() -> None:
    (hit,) = checked_results(MemoryResults((evolve(HIT, path="a\udce4.md", snippet="b\ud83d"),), "acme")).hits
    assert (hit.path, hit.snippet, hit.start_line) == ("a\ufffd.md", "b\ufffd", 3)
