"""Shortening output: parity with OpenClaw's recorded cuts, whole characters, one mark, the limit.

Rows of the list of edge cases: C13 to C17.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from builders import CASES, result
from hypothesis import given
from hypothesis import strategies as st
from openclaw_vectors import FOLDER, is_recorded, recorded

from lamella.text.shorten import Cut, find_cut, shorten, shorten_result
from lamella.text.unicode import character_start
from lamella.types.messages import ImageBlock, TextBlock, ToolResultMessage, text_of

TEXTS: dict[str, Any] = json.loads((FOLDER / "truncation.json").read_text(encoding="utf-8"))
MARK = re.compile(r"\n\n\[\.\.\. (\d+) of (\d+) characters left out \.\.\.\](?:\n\n|\Z)")
STRINGS = json.loads((CASES / "K37" / "strings.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", recorded("truncation.json"), ids=lambda row: row["name"])
def test_cuts_are_those_of_openclaw(row: dict[str, Any]) -> None:
    text, suffix, middle = row["input"]["text"], TEXTS["suffix"], TEXTS["middle"]
    cut = find_cut(text, row["input"]["maxChars"], suffix=len(suffix), gap=len(middle))
    tail = middle + text[cut.tail :] if cut.tail < len(text) else ""
    assert is_recorded(text[: cut.head] + tail + suffix, row["output"]["text"])


def test_c13_a_dull_tail_goes() -> None:
    short = shorten("a" * 10_000, 5000)
    assert len(short) <= 5000
    assert MARK.search(short)
    assert short.endswith(" ...]")


def test_c14_an_error_at_the_end_stays() -> None:
    short = shorten("a" * 20_000 + "\nERROR: boom", 12_000)
    assert 11_900 < len(short) <= 12_000
    assert short.startswith("aaa")
    assert short.endswith("\nERROR: boom")


@pytest.mark.parametrize("tail", ["}", "}\n", "]", "\n出错了:任务失败"], ids=["C15", "line-end", "note", "chinese"])
def test_c15_the_end_of_json_and_notes_stay(tail: str) -> None:
    assert shorten("a" * 20_000 + tail, 12_000).endswith(tail)


def test_c16_a_small_limit_keeps_the_head_only() -> None:
    short = shorten("a" * 20_000 + "\nfailed", 4000)
    assert len(short) <= 4000
    assert "failed" not in short


def test_c17_the_least_is_kept_even_above_the_limit() -> None:
    short = shorten("x" * 5000, 100)
    assert short == "x" * 2000 + "\n\n[... 3000 of 5000 characters left out ...]"


def test_the_mark_tells_how_much_is_missing() -> None:
    short = shorten("a" * 20_000 + "\nERROR: boom", 12_000)
    (mark,) = MARK.finditer(short)
    assert int(mark[1]) == 20_012 - (len(short) - len(mark[0]))
    assert mark[2] == "20012"


@given(st.text(min_size=1), st.integers(0, 400), st.integers(1, 40), st.sampled_from(["", "failed", "}"]))
def test_head_and_tail_are_parts_of_the_text_within_the_limit(seed: str, limit: int, times: int, end: str) -> None:
    text = seed * times + end
    short = shorten(text, limit, min_keep=limit // 4)
    if short == text:
        return
    cut = find_cut(text, limit, suffix=len(short), min_keep=limit // 4)
    assert isinstance(cut, Cut)
    mark = next(m for m in MARK.finditer(short) if m.group(2) == str(len(text)))
    head, tail = short[: mark.start()], short[mark.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) + int(mark[1]) == len(text)
    assert shorten(short, max(limit, len(short)), min_keep=limit // 4) == short


@pytest.mark.parametrize("row", STRINGS, ids=lambda row: row["name"])
@pytest.mark.parametrize("less", range(1, 9))
def test_k37_no_character_is_split_and_marks_do_not_stack(row: dict[str, str], less: int) -> None:
    text = row["text"]
    limit = len(text) * 3 // 4 - less
    short = shorten(text, limit, min_keep=50)
    (mark,) = MARK.finditer(short)
    head, tail = short[: mark.start()], short[mark.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)
    short.encode()
    assert short.count("\ufffd") == text.count("\ufffd")
    assert character_start(text, len(head)) == len(head)
    again = shorten(short, limit // 2, min_keep=20)
    (mark,) = MARK.finditer(again)
    assert len(again) - len(mark[0]) + int(mark[1]) == len(text)
    assert int(mark[2]) == len(text)


@pytest.mark.parametrize(
    ("text", "at", "start"),
    [
        ("ab", 1, 1),
        ("e\u0301x", 1, 0),
        ("e\u0301x", 2, 2),
        ("👨\u200d👩\u200d👧!", 3, 0),
        ("👍🏽", 1, 0),
        ("🇩🇪🇫🇷", 1, 0),
        ("🇩🇪🇫🇷", 2, 2),
        ("🇩🇪🇫🇷", 3, 2),
        ("a\r\nb", 2, 1),
        ("\ud83d\ude00", 1, 0),
        ("abc", 9, 3),
        ("abc", -1, 0),
    ],
)
def test_where_characters_begin(text: str, at: int, start: int) -> None:
    assert character_start(text, at) == start


# --- whole results ------------------------------------------------------------------------------------------


def test_texts_share_the_limit_and_images_stay() -> None:
    image = ImageBlock("x", "image/png")
    content = (TextBlock("a" * 3000), image, TextBlock("b" * 6000))
    short = shorten_result(ToolResultMessage("c", "t", content), 6000, min_keep=100)
    first, middle, last = short.content
    assert middle is image
    assert isinstance(first, TextBlock)
    assert isinstance(last, TextBlock)
    assert (len(first.text), len(last.text)) <= (2000, 4000)
    assert len(text_of(short.content)) > 5800


def test_a_string_is_one_block() -> None:
    short = shorten_result(ToolResultMessage("c", "t", "a" * 9000), 3000)
    assert isinstance(short.content, str)
    assert len(short.content) <= 3000


def test_short_results_are_the_same_object() -> None:
    message = result("c", "x" * 100)
    assert shorten_result(message, 100) is message
