"""Texts are ranked by the words of a question, in every language of the segmenter."""

from __future__ import annotations

import pytest

from lamella.text.lexical import lexical_scores

TEXTS = [
    "The boiler was serviced by Anna in May.",
    "We deployed release AB-1234 to the staging cluster.",
    "锅炉的保养安排在五月，由安娜负责。",
    "ボイラーの点検は五月です。",
    "Lunch was soup, and then there was more soup.",
    "Release AB-9999 was never deployed; 1234 people waited.",
]


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("Who does the servicing of the boilers?", 0),
        ("What about AB-1234?", 1),
        ("deploying to staging", 1),
        ("锅炉保养是谁负责的？", 2),
        ("ボイラーの点検はいつですか", 3),
        ("汤 soup", 4),
        ("BOILER serviced", 0),
    ],
)
def test_the_text_that_answers_scores_best(question: str, best: int) -> None:
    scores = lexical_scores(question, TEXTS)
    assert scores[best] > max(score for i, score in enumerate(scores) if i != best)


def test_texts_without_a_word_of_the_question_score_nothing() -> None:
    assert lexical_scores("zebra", TEXTS) == [0.0] * len(TEXTS)
    assert lexical_scores("", TEXTS) == [0.0] * len(TEXTS)
    assert lexical_scores("boiler", []) == []
    assert lexical_scores("boiler", ["", " \n"]) == [0.0, 0.0]


def test_rare_words_count_more_than_common_ones() -> None:
    common, rare = lexical_scores("tea gong", ["tea here", "gong here", "tea there", "tea again"])[:2]
    assert rare > common > 0


def test_one_character_of_an_unspaced_script_is_found_inside_a_run() -> None:
    assert lexical_scores("炉", ["锅炉", "茶"])[0] > 0
