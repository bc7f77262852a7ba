from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella_memory_core.ranking.dates import Span, day_in, named_spans

TODAY = date(2023, 6, 10)


def days(text: str) -> Span:
    d = date.fromisoformat(text)
    return Span(d, d)


MAY, MAY_2 = Span(date(2023, 5, 1), date(2023, 5, 31)), days("2023-05-02")


@pytest.mark.parametrize(
    ("question", "span"),
    [
        ("what happened on 2023-05-02?", MAY_2),
        ("2023/5/2", MAY_2),
        ("on May 2nd, 2023", MAY_2),
        ("May 2", MAY_2),
        ("on 2 May 2023", MAY_2),
        ("the 2nd of May", MAY_2),
        ("in May", MAY),
        ("during may 2023", MAY),
        ("2023-05", MAY),
        ("May 2023", MAY),
        ("2023年5月2日", MAY_2),
        ("5月2号我做了什么", MAY_2),
        ("5月有什么计划", MAY),
        ("2023년 5월 2일", MAY_2),
        ("in December", Span(date(2023, 12, 1), date(2023, 12, 31))),
        ("what did I do yesterday", days("2023-06-09")),
        ("昨天", days("2023-06-09")),
        ("前天", days("2023-06-08")),
        ("today", days("2023-06-10")),
        ("last week", Span(date(2023, 6, 1), date(2023, 6, 9))),
        ("上周", Span(date(2023, 6, 1), date(2023, 6, 9))),
        ("last month", Span(date(2023, 4, 26), date(2023, 6, 9))),
        ("上个月", Span(date(2023, 4, 26), date(2023, 6, 9))),
    ],
)
def test_a_question_names_days(question: str, span: Span) -> None:
    assert named_spans(question, TODAY, [2023]) == (span,)


@pytest.mark.parametrize(
    "question", ["may I ask?", "version 1.2.3", "2023-13-40", "31 February", "ticket 20230502", "", "march on"]
)
def test_other_numbers_and_words_name_none(question: str) -> None:
    assert named_spans(question, TODAY, [2023]) == ()


def test_without_a_year_every_year_of_the_notes_is_meant() -> None:
    assert named_spans("May 2", TODAY, [2022, 2021]) == (days("2021-05-02"), days("2022-05-02"))
    assert named_spans("May 2", TODAY, []) == (MAY_2,)


def test_the_day_of_a_file_is_in_its_name() -> None:
    assert day_in("memory/2023-05-02-some-talk.md") == date(2023, 5, 2)
    assert day_in("memory/2023-13-02.md") is None
    assert day_in("MEMORY.md") is None


@given(st.text())
def test_any_text_is_read(question: str) -> None:
    assert all(s.first <= s.last for s in named_spans(question, TODAY, [2023]))
