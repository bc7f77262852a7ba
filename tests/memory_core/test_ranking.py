import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella_memory_core.ranking import Passage, best_rows, rarity, scores, strengths, without_repeats


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
    found = dict(db.execute("SELECT rowid, bm25(f) FROM f WHERE f MATCH 'okapi'").fetchall())
    db.close()
    assert strengths(found, 10) == pytest.approx(dict.fromkeys(range(1, having + 1), 1.0))


def test_absent_terms_lower_the_score() -> None:
    term = {7: -1.0e-6, 8: -2.0e-6}
    alone, with_absent = scores([term], 2), scores([term, {}], 2)
    assert alone[8] > alone[7] > with_absent[7] > 0
    assert scores([{}], 5) == {}


def test_equal_scores_are_ordered_by_row() -> None:
    assert best_rows({3: 0.5, 1: 0.5, 2: 0.9}, 2) == [2, 1]


def test_a_passage_within_a_better_one_is_left_out() -> None:
    passages = [Passage("a", 3, 9, "", 0.9), Passage("a", 4, 9, "", 0.8), Passage("b", 4, 9, "", 0.7),
                Passage("a", 9, 12, "", 0.6)]  # fmt: skip
    assert [(p.path, p.start_line) for p in without_repeats(passages, 5)] == [("a", 3), ("b", 4), ("a", 9)]
    assert len(without_repeats(passages, 1)) == 1
