"""Front matter: the scalars that are read, what is passed over, and that mistakes name their line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.text.front_matter import front_matter


def of(*lines: str) -> dict[str, str] | None:
    return front_matter("\n".join(("---", *lines, "---", "body: no key")))


def test_plain_scalars_and_comments() -> None:
    assert of("# about", "name: tea", "description: How to make tea # really", "", "empty:") == {
        "name": "tea",
        "description": "How to make tea",
        "empty": "",
    }


def test_colons_and_hashes_within_a_text() -> None:
    assert of("description: Use when: C#, or http://x/#y") == {"description": "Use when: C#, or http://x/#y"}


def test_quoted_scalars() -> None:
    assert of("a: 'it''s # so'  # c", 'b: "tab\\t \\"q\\" \\u00e9"') == {"a": "it's # so", "b": 'tab\t "q" é'}


def test_block_scalars() -> None:
    assert of("a: |", "  one", "    two", "", "  three", "b: >-", "  one", "  two", "", "  three") == {
        "a": "one\n  two\n\nthree",
        "b": "one two\n\nthree",
    }


def test_a_plain_text_over_several_lines() -> None:
    assert of("a: one", "  two", "  three", "b: x") == {"a": "one two three", "b": "x"}


def test_lists_and_tables_are_passed_over() -> None:
    assert of("tools:", "- read", "- write", "meta:", "  deep:", "    er: 1", "name: x") == {
        "tools": "",
        "meta": "",
        "name": "x",
    }


def test_line_ends_of_windows() -> None:
    assert front_matter("---\r\nname: tea\r\n---\r\n") == {"name": "tea"}


@pytest.mark.parametrize("text", ["", "name: tea", "----\nname: x\n---", " ---\nname: x\n---"])
def test_no_front_matter(text: str) -> None:
    assert front_matter(text) is None


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (("name: a", "name: b"), "line 3: 'name' is there twice"),
        (("name: a", "what"), "line 3: 'what', expected `key: value`"),
        (('name: "a',), "line 2: a quoted text without its end"),
        (("name: 'a",), "line 2: a quoted text without its end"),
        (('name: "\\q"',), "line 2: a quoted text with an unknown escape"),
    ],
)
def test_mistakes_name_their_line(lines: tuple[str, ...], says: str) -> None:
    with pytest.raises(ValueError) as caught:
        of(*lines)
    assert says in str(caught.value)


def test_a_missing_end_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="has no end"):
        front_matter("---\nname: x\n")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = front_matter(f"---\n{text}\n---\n")
    except ValueError as error:
        assert str(error).startswith("line ")
    else:
        assert found is not None
