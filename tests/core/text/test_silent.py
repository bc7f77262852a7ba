"""The silent token in texts: what counts as silence, what is left out, and that cutting a stream changes nothing.

OpenClaw's recorded results (tests/data/context/flush.json), edge cases E42 to E44, and case K70.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import CASES
from hypothesis import example, given
from hypothesis import strategies as st
from openclaw_vectors import recorded
from streams import cut

from lamella.text.silent import SILENT, Unspoken, is_silent, spoken

ROWS = recorded("flush.json")
K70 = json.loads((CASES / "K70" / "cases.json").read_text(encoding="utf-8"))

# Recorded results that lamella does not follow; docs/decisions/0024 says why.
SILENT_IN_ANY_CASE = {"no_reply"}
HELD_FROM_THE_FIRST_LETTER = {"N", "No"}


def of(group: str) -> Any:
    return pytest.mark.parametrize("row", [r for r in ROWS if r["group"] == group], ids=lambda r: repr(r["name"]))


@of("silent")
def test_e43_e44_silence_as_recorded(row: dict[str, Any]) -> None:
    text, output = row["input"]["text"], row["output"]
    if row["name"] in SILENT_IN_ANY_CASE:
        assert is_silent(text)
        return
    assert spoken(text) == output["stripped"]
    assert is_silent(text) is (not output["stripped"])
    assert is_silent(text) or not output["exact"]


@of("silent.prefix")
def test_e42_what_may_become_the_token_is_held_back(row: dict[str, Any]) -> None:
    text = row["input"]["text"]
    held = Unspoken().feed(text) == ""
    assert held is (row["output"] or text in HELD_FROM_THE_FIRST_LETTER)


@pytest.mark.parametrize("case", K70["normal"], ids=lambda c: repr(c["text"]))
def test_k70_replies(case: dict[str, Any]) -> None:
    visible = case["visible"]
    wanted = "" if visible is None else visible.partition(" (or")[0]
    assert spoken(case["text"]) == wanted
    assert is_silent(case["text"]) is (visible is None and not case["error_notice"])


@pytest.mark.parametrize("case", K70["streams"], ids=lambda c: "|".join(c["chunks"]))
def test_k70_streams(case: dict[str, Any]) -> None:
    filtered = Unspoken()
    said = [filtered.feed(chunk) for chunk in case["chunks"]]
    said.append(filtered.finish())
    assert "".join(said) == case.get("final", "")
    so_far = ["".join(said[:n]) for n in range(len(said))]
    assert not any("NO_" in text for text in so_far)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("First.\n\nNO_REPLY\n\nSecond.", "First.\n\nSecond."),
        ("NO_REPLY\n\n**Bold** text", "**Bold** text"),
        ("Done **now** NO_REPLY", "Done **now**"),
        ("**NO_REPLY**", ""),
        ("NO_REPLY NO_REPLY\nNO_REPLY", ""),
        ("NO_REPLY.", ""),
        ("\n**NO_REPLY.**\n", ""),
        ("no_reply。", ""),
        ("NO_REPLY\nNO_REPLY!", ""),
        ("NO_REPLY. More", "NO_REPLY. More"),
        ("The token is NO_REPLY.", "The token is NO_REPLY."),
        ("```\nNO_REPLY\n```\n", "```\nNO_REPLY\n```\n"),
        ("```\ncode\n```\nNO_REPLY", "```\ncode\n```"),
        ("Write `NO_REPLY`", "Write `NO_REPLY`"),
        ("MY_NO_REPLY", "MY_NO_REPLY"),
        ("Say no_reply\nor not", "Say no_reply\nor not"),
        ("好的。no_Reply ", "好的。"),
    ],
)
def test_lines_and_ends_go_and_talk_about_the_token_stays(text: str, left: str) -> None:
    assert spoken(text) == left


PARTS = st.lists(
    st.sampled_from(
        [SILENT, "no_reply", "NO", "N", "_", " ", "\n", "**", "`", "```\n", "~~~\n", "a", "b.", ".", "好", "。"]
    ),
    max_size=10,
).map("".join)


@given(text=PARTS, places=st.lists(st.integers(0, 60), max_size=12))
@example(text="Done.\nNO_REPLY", places=list(range(60)))
@example(text="```\nNO_REPLY\n```\nNO_REPLY", places=list(range(60)))
@example(text="\n**NO_REPLY** NO_REPLY.** ", places=list(range(60)))
@example(text="NO_REPLY. NO_REPLY.", places=list(range(60)))
def test_the_same_is_said_however_a_text_is_cut(text: str, places: list[int]) -> None:
    whole, parted = Unspoken(), Unspoken()
    expected = whole.feed(text) + whole.finish()
    assert "".join(map(parted.feed, cut(text, places))) + parted.finish() == expected
    assert parted.removed is whole.removed
    if not whole.removed:
        assert expected == text


@given(before=st.sampled_from(["", "Done.", "好的。", "one\n\n"]), token=st.sampled_from([SILENT, "No_Reply"]))
def test_no_letter_of_a_token_at_the_end_is_ever_said(before: str, token: str) -> None:
    filtered = Unspoken()
    said = ""
    for letter in before + token:
        said += filtered.feed(letter)
        assert before.startswith(said)
    assert said + filtered.finish() in (before, before.rstrip())


@pytest.mark.parametrize("text", ["NO_", "Done. NO_REP", "NO_REPLY"])
def test_half_a_token_of_a_reply_that_was_cut_off_is_not_said(text: str) -> None:
    filtered = Unspoken()
    assert "NO" not in filtered.feed(text) + filtered.finish(cut_off=True)


@pytest.mark.parametrize(
    "run",
    [" " * 2_000 + "N" + "*" * 2_000, "\n" * 40_000, " \n" * 40_000, f"{SILENT} " * 4_000, f"{SILENT}** **" * 4_000],
    ids=["blanks", "lines", "blank lines", "tokens", "marked tokens"],
)
@pytest.mark.parametrize("piece", [97, 1_000_000])
def test_long_runs_of_what_is_held_back_come_through(run: str, piece: int) -> None:
    """A pattern that tried every part of a run as a beginning anew would not end here: a model that hangs
    in a loop says such things."""
    filtered = Unspoken()
    text = f"a{run}x" * (20 if len(run) < 10_000 else 2)
    said = "".join(map(filtered.feed, cut(text, range(0, len(text), piece))))
    assert said + filtered.finish() == text
