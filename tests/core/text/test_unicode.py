from hypothesis import given
from hypothesis import strategies as st

from lamella.text.unicode import well_formed

any_text = st.text(st.characters(codec=None, exclude_categories=()))


def test_pairs_are_joined_and_halves_replaced() -> None:
    assert well_formed("a\ud83d\ude00b") == "a😀b"
    assert well_formed("\ud83d") == "\ufffd"
    assert well_formed("x\ude00\ud83dy") == "x\ufffd\ufffdy"
    assert well_formed("\ud83d\ud83d\ude00") == "\ufffd😀"
    assert well_formed(b"caf\xe9".decode("utf-8", "surrogateescape")) == "caf\ufffd"


@given(any_text)
def test_the_result_can_be_encoded_and_is_stable(text: str) -> None:
    result = well_formed(text)
    result.encode("utf-8")
    assert well_formed(result) == result


@given(st.text())
def test_good_text_is_left_alone(text: str) -> None:
    assert well_formed(text) == text
