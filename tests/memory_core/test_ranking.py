import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella_memory_core.lexical.keywords import Keywords, rarity
from lamella_memory_core.lexical.words import strengths
from lamella_memory_core.ranking.order import (
    best_positions,
    file_fit,
    fused,
    order_values,
    shown_scores,
    standardised,
    with_neighbours,
)
from lamella_memory_core.warm.catalog import Catalog


def catalog(*sizes: int) -> Catalog:
    """Files of so many passages."""
    names = tuple(f"memory/{i}.md" for i in range(len(sizes)))
    numbers, firsts = np.arange(len(sizes)), np.cumsum(sizes) - np.array(sizes) + 1
    return Catalog("s", names, names, (None,) * len(sizes), numbers, numbers, firsts, np.array(sizes))


@given(st.integers(0, 500), st.integers(0, 500))
def test_rarity_is_positive_and_falls_with_frequency(having: int, more: int) -> None:
    total = having + more + 1
    assert rarity(having, total) > 0
    assert rarity(having, total) >= rarity(having + more, total)


@pytest.mark.parametrize("having", [1, 2, 5, 10])
def test_strengths_are_what_the_index_left_out_rarity(having: int) -> None:
    """Equal rows of average length have strength 1 for one mention, however rare the word is."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(t)")
    db.executemany("INSERT INTO f VALUES (?)", [("okapi b c",) if i < having else ("a b c",) for i in range(10)])
    found = db.execute("SELECT bm25(f) FROM f WHERE f MATCH 'okapi'").fetchall()
    db.close()
    assert strengths(np.array(found)[:, 0], 10) == pytest.approx([1.0] * having)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_z_values_have_mean_0_and_deviation_1_or_are_all_0(values: list[float]) -> None:
    z = standardised(np.array(values))
    assert np.isfinite(z).all()
    assert abs(z.mean()) < 1e-5
    assert not z.any() or abs(z.std() - 1) < 1e-5


def test_one_side_alone_is_taken_as_it_is() -> None:
    words, meaning = np.array([1.0, -1.0]), np.array([0.0, 2.0])
    assert fused(words, None, 0.5) is words
    assert fused(None, meaning, 0.5) is meaning
    assert fused(None, None, 0.5) is None
    both = fused(words, meaning, 0.25)
    assert both is not None and both.tolist() == [0.75, -0.25]


def test_neighbours_count_within_a_file_only() -> None:
    z = np.array([0.0, 1.0, 0.0, 0.0])
    share = with_neighbours(z, catalog(3, 1)).tolist()
    assert share[0] == share[2] > 0
    assert share[1] == 1.0
    assert with_neighbours(z, catalog(1, 1, 2)).tolist()[0] == 0.0


def test_a_fitting_file_and_a_named_day_lift_passages() -> None:
    where, z = catalog(2, 2, 1), np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    words = Keywords(np.array([1.0, 0.0, 1.0, 0.0, 1.0]), np.array([1.0, 0.5, 1.0]), 1.0)
    unnamed, named = np.zeros(5, dtype=bool), np.array([False, False, True, False, False])
    plain = order_values(z, where, file_fit(words, None, where), unnamed)
    assert plain[0] > plain[2] > plain[4] == 1.0
    assert order_values(z, where, file_fit(words, None, where), named).argmax() == 2


def test_a_file_fits_by_words_and_by_its_nearest_passage() -> None:
    where = catalog(2, 1)
    words = Keywords(np.array([1.0, 0.0, 0.5]), np.array([2.0, 1.0]), 1.0)
    nothing = Keywords(np.zeros(3), np.zeros(2))
    meaning = np.array([-1.0, 1.0, 2.0])
    assert file_fit(words, None, where).tolist() == [1.0, 0.5]
    assert file_fit(words, meaning, where).tolist() == [0.75, 0.75]
    assert file_fit(nothing, meaning, where).tolist() == [0.5, 1.0]


def test_scores_add_up_and_stay_below_1() -> None:
    words = Keywords(np.array([1.0, 0.5, 0.0]), np.zeros(1), 1.0)
    unnamed = np.zeros(3, dtype=bool)
    alone = shown_scores(words, None, unnamed)
    assert alone.tolist() == pytest.approx([2 / 3, 0.5, 0.0])
    assert (shown_scores(words, np.array([0.0, 1.0, 9.0]), unnamed) > alone).all()
    assert shown_scores(words, np.array([0.0, 0.0, 1e6]), ~unnamed).max() < 1 + 1e-12


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=40), st.integers(1, 20))
def test_the_best_are_those_of_a_full_sort(rows: list[tuple[int, bool]], count: int) -> None:
    values, eligible = np.array([float(v) for v, _ in rows]), np.array([e for _, e in rows], dtype=bool)
    expected = sorted((i for i, (_, e) in enumerate(rows) if e), key=lambda i: (-values[i], i))[:count]
    assert best_positions(values, eligible, count).tolist() == expected
