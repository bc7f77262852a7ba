"""Scripts of letters, and how much of a text is in some of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.text.scripts import EAST_ASIAN, LATIN, script_of, share_in
from lamella.text.segment import fold


@pytest.mark.parametrize(
    ("characters", "script"),
    [
        ("aé", "latin"),
        ("я", "cyrillic"),
        ("猫", "cjk"),
        ("ね", "hiragana"),
        ("カー", "katakana"),
        ("한", "hangul"),
        ("ש", "hebrew"),
        ("7 !🦊\u0301", ""),
    ],
)
def test_a_letter_has_a_script_and_nothing_else_has_one(characters: str, script: str) -> None:
    assert [script_of(character) for character in characters] == [script] * len(characters)


def test_shares_count_letters_only() -> None:
    assert share_in("Which pet? 42!", LATIN) == 1.0
    assert share_in("我的猫", LATIN) == 0.0
    assert share_in("ab 猫狗", LATIN) == 0.5
    assert share_in("ＡＢ", LATIN) == 1.0  # full-width forms are the same letters
    assert share_in("42 🦊", LATIN) == 1.0
    assert share_in("ねこカ猫한", EAST_ASIAN) == 1.0


@given(st.text(max_size=60))
def test_shares_of_single_scripts_add_up(text: str) -> None:
    named = {script_of(character) for character in fold(text)} - {""}
    assert share_in(text, named) == 1.0
    if named:
        assert sum(share_in(text, {script}) for script in named) == pytest.approx(1.0)
