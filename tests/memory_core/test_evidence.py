"""From what is known of passages to an order: raw fusion's candidates and floor, age, and the share of meaning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.text.scripts import EAST_ASIAN, LATIN
from lamella.types.memory import EmbedderTraits
from lamella_memory_core.lexical.keywords import Keywords
from lamella_memory_core.ranking.evidence import Question, faded, weighted_evidence
from lamella_memory_core.ranking.order import EVERYWHERE
from lamella_memory_core.ranking.shares import UNREAD_SHARE, USUAL_SHARE, dense_share


def question(words: list[float], likeness: list[float] | None = None, floor: float = 0.0) -> Question:
    count = len(words)
    return Question(
        Keywords(np.array(words), np.zeros(1), 1.0),
        None if likeness is None else np.array(likeness),
        named=np.zeros(count, dtype=bool),
        allowed=np.ones(count, dtype=bool),
        floor=floor,
    )


def test_a_raw_score_is_a_weighted_sum() -> None:
    evidence = weighted_evidence(question([3.0, 0.0, 1.0], [0.5, 0.8, -0.4]), 0.7, candidates=3)
    assert evidence.order.tolist() == pytest.approx([0.7 * 0.5 + 0.3 * 0.75, 0.7 * 0.8, -0.7 * 0.4 + 0.3 * 0.5])
    assert evidence.shown(EVERYWHERE).tolist() == pytest.approx([*evidence.order[:2], 0.0])
    assert evidence.explain(1) == {"words": 0.0, "meaning": 0.8, "order": 0.56}


def test_words_alone_have_the_whole_score() -> None:
    evidence = weighted_evidence(question([3.0, 0.0]), 0.7, candidates=8)
    assert evidence.order.tolist() == [0.75, 0.0]
    assert evidence.found.tolist() == [True, False]


def test_what_is_no_candidate_of_a_side_counts_nothing_there() -> None:
    """One candidate a side: the first by words, the second by meaning, the third by neither."""
    evidence = weighted_evidence(question([3.0, 1.0, 2.0], [0.1, 0.9, 0.8]), 0.5, candidates=1)
    assert evidence.order.tolist() == pytest.approx([0.375, 0.45, 0.0])
    assert evidence.found.tolist() == [True, True, False]


def test_words_need_no_more_than_they_can_give_when_nothing_else_is_found() -> None:
    """Words give at most .3 beside a share of .7, and these just less than the floor."""
    strong = weighted_evidence(question([1e9, 0.0], [0.1, 0.1], floor=0.35), 0.7, candidates=2)
    assert strong.found.tolist() == [True, False]
    weak = weighted_evidence(question([1.0, 0.0], [0.0, 0.0], floor=0.35), 0.7, candidates=2)
    assert not weak.found.any()


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(-1, 1)), min_size=1, max_size=20), st.floats(0, 1))
def test_raw_scores_are_scores(rows: list[tuple[float, float]], share: float) -> None:
    evidence = weighted_evidence(question([w for w, _ in rows], [c for _, c in rows], floor=0.2), share, candidates=5)
    shown = evidence.shown(EVERYWHERE)
    assert ((shown >= 0) & (shown <= 1)).all()
    assert evidence.found.sum() <= 10


def test_age_changes_the_order_and_no_score() -> None:
    plain = weighted_evidence(question([1.0, 3.0], [0.5, -1.0], floor=0.3), 0.5, candidates=2)
    older = faded(plain, np.array([0.5, 0.25]))
    assert older.order.tolist() == [plain.order[0] * 0.5, plain.order[1]]  # what is below 0 does not rise
    assert older.shown is plain.shown
    assert older.found is plain.found
    assert older.explain(0)["age"] == 0.5


def test_the_share_of_meaning_is_configured_or_the_embedders_own_or_the_usual() -> None:
    assert dense_share(0.4, EmbedderTraits(dense_share=0.9), "which?") == 0.4
    assert dense_share(None, EmbedderTraits(dense_share=0.9), "which?") == 0.9
    assert dense_share(None, EmbedderTraits(), "which?") == USUAL_SHARE
    assert dense_share(0.0, EmbedderTraits(dense_share=0.9), "which?") == 0.0


def test_meaning_counts_less_for_a_question_that_cannot_be_read() -> None:
    english = EmbedderTraits(LATIN, 0.6)
    assert dense_share(None, english, "我们的猫叫什么?") == UNREAD_SHARE
    assert dense_share(0.1, english, "我们的猫叫什么?") == 0.1
    assert UNREAD_SHARE < dense_share(None, english, "猫 cat") < 0.6
    assert dense_share(None, EmbedderTraits(LATIN | EAST_ASIAN, 0.6), "我们的猫叫什么?") == 0.6


@given(st.text(max_size=40), st.floats(0, 1))
def test_a_share_is_never_above_what_it_would_be(text: str, share: float) -> None:
    found = dense_share(share, EmbedderTraits(LATIN), text)
    assert min(share, UNREAD_SHARE) - 1e-9 <= found <= share + 1e-9
