"""Maximal marginal relevance: the formula, by hand, and what holds for any texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella_memory_core.ranking.diversity import diversified, likeness

texts = st.lists(st.sampled_from(["a b c", "a b d", "x y", "", "!", "猫狗", "猫鸟"]), max_size=12)


def test_what_was_said_already_comes_later() -> None:
    """Relevance 1, .9 and 0; the second says what the first says: .7 x .9 - .3 x 1 = .33, and the third 0."""
    notes = ["the okapi eats leaves", "the okapi eats leaves", "a zebra"]
    assert list(diversified(notes, [1.0, 0.9, 0.0], 0.7)) == [0, 1, 2]
    assert list(diversified(notes, [1.0, 0.3, 0.0], 0.7)) == [0, 2, 1]  # .7 x .3 - .3 x 1 < 0
    assert diversified(notes, [1.0, 0.3, 0.0], 0.7) == {0: 0.0, 2: 0.0, 1: 1.0}


def test_alike_is_what_shares_words() -> None:
    assert likeness(frozenset("abc"), frozenset("abd")) == 0.5
    assert likeness(frozenset("ab"), frozenset()) == 0.0
    assert likeness(frozenset(), frozenset()) == 0.0
    assert likeness(frozenset(), frozenset(), same=True) == 1.0


def test_chinese_texts_are_compared_by_their_characters() -> None:
    notes = ["我们领养了一只猫", "我们领养了一只狗", "明天下雨"]
    assert list(diversified(notes, [1.0, 0.2, 0.0], 0.5)) == [0, 2, 1]


@given(texts, st.data(), st.floats(0, 1))
def test_each_hit_comes_once_and_the_best_first(notes: list[str], data: st.DataObject, share: float) -> None:
    values = data.draw(st.lists(st.floats(-5, 5), min_size=len(notes), max_size=len(notes)))
    order = diversified(notes, values, share)
    assert sorted(order) == list(range(len(notes)))
    if notes and share > 0:
        assert values[next(iter(order))] == pytest.approx(max(values), abs=1e-9)


@given(texts, st.data())
def test_a_share_of_1_is_the_order_of_the_values(notes: list[str], data: st.DataObject) -> None:
    values = data.draw(st.permutations(range(len(notes))))
    assert list(diversified(notes, values, 1.0)) == sorted(range(len(notes)), key=lambda i: -values[i])
