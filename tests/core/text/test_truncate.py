from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pi_units import cases, newest, text_of_case

from lamella.text.truncate import format_size, split_lines, truncate_head, truncate_line, truncate_tail, utf8_length

FUNCTIONS = {"truncateHead": truncate_head, "truncateTail": truncate_tail}
OPTIONS = {"maxLines": "max_lines", "maxBytes": "max_bytes"}
CUTS = [c for c in cases("truncation") if c["fn"] in FUNCTIONS]


@pytest.mark.parametrize("case", CUTS, ids=lambda c: f"{c['fn']} {str(c['input'])[:24]!r} {c['options']}")
def test_cuts_equal_pi(case):
    options = {OPTIONS[k]: v for k, v in (case["options"] or {}).items()}
    result = FUNCTIONS[case["fn"]](text_of_case(case["input"]), **options).to_json()
    expected = newest(case["result"])
    if "contentSha256" in expected:
        assert hashlib.sha256(result.pop("content").encode()).hexdigest() == expected["contentSha256"]
    assert result == {k: v for k, v in expected.items() if k in result}
    assert ("content" in result) != ("contentSha256" in expected)


@pytest.mark.parametrize("case", [c for c in cases("truncation") if c["fn"] == "truncateLine"])
def test_line_cuts_equal_pi(case):
    arguments = [case["options"]] if case["options"] else []
    expected = newest(case["result"])
    assert truncate_line(case["input"], *arguments) == (expected["text"], expected["wasTruncated"])


def test_line_cut_keeps_whole_characters():
    assert truncate_line("ab🎉", 3) == ("ab... [truncated]", True)


@pytest.mark.parametrize("case", cases("format_size"))
def test_sizes_equal_pi(case):
    assert format_size(case["bytes"]) == newest({"0.58.0": case["text"]})


@pytest.mark.parametrize("cut", [truncate_head, truncate_tail])
@given(text=st.text(alphabet="ab\n漢🎉\r\u2028"), max_lines=st.integers(1, 6), max_bytes=st.integers(1, 24))
def test_cuts_hold_their_limits_and_invent_nothing(cut, text, max_lines, max_bytes):
    result = cut(text, max_lines=max_lines, max_bytes=max_bytes)
    assert utf8_length(result.content) == result.output_bytes <= max_bytes
    assert result.output_lines <= max_lines
    assert result.content in text
    assert result.truncated == (result.content != text)
    if not result.last_line_partial:
        lines, kept = split_lines(text), split_lines(result.content)
        # An empty line at an end of the kept text cannot be told from no line in the joined text.
        assert result.output_lines == len(kept) or result.content.endswith("\n") or result.content == ""
        assert all(line in lines for line in kept)


def test_only_line_feeds_end_lines():
    assert split_lines("a\u2028b\x85c\rd\ne") == ["a\u2028b\x85c\rd", "e"]
