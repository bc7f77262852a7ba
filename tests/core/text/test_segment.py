import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.text.segment import MAX_TERMS, Term, fold, query_terms, search_text, tokens

any_text = st.text(st.characters(codec=None, exclude_categories=()))


def texts(question: str) -> list[str]:
    return [t.text for t in query_terms(question)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Plain words, Here.", ["plain", "words", "here"]),
        ("花鸟市场", ["花鸟", "鸟市", "市场", "场"]),
        ("猫", ["猫"]),
        ("用 SQLite3 索引", ["用", "sqlite3", "索引", "引"]),
        ("用SQLite索引", ["用", "sqlite", "索引", "引"]),
        ("カーテン", ["カー", "ーテ", "テン", "ン"]),
        ("ｶﾞｰﾃﾞﾝ ＡＢＣ", ["ガー", "ーデ", "デン", "ン", "abc"]),
        ("토마토를", ["토마", "마토", "토를", "를"]),
        ("𠮷野家", ["𠮷野", "野家", "家"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Straße ПОЧТА", ["strasse", "почта"]),
        ("ERR_CONN 504", ["err_conn", "504"]),
        ("", []),
        ("*** -- …", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected
    assert search_text(text) == " ".join(expected)


def test_stop_words_are_left_out_unless_nothing_else_is_left() -> None:
    assert texts("What is the name of our router?") == ["name", "router"]
    assert texts("who are you") == ["who", "are", "you"]
    assert "什么" not in texts("我的路由器密码是什么")
    assert texts("的") == ["的"]


def test_a_single_character_is_looked_for_as_a_beginning() -> None:
    assert query_terms("猫") == (Term("猫", "prefix"),)


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("find AB-1234 please", "ab 1234"),
        ("in src/pump/main.py?", "src pump main py"),
        ("Ubuntu 20.04", "20 04"),
        ("mail user@example.org", "user example org"),
        ("O'Hara said", "o hara"),
    ],
)
def test_identifiers_are_phrases_too(question: str, phrase: str) -> None:
    assert Term(phrase, "phrase") in query_terms(question)


def test_a_contraction_is_not_an_identifier() -> None:
    assert all(t.kind == "word" for t in query_terms("I don't know the gardener"))


def test_a_long_question_has_bounded_terms_and_keeps_its_identifier() -> None:
    question = " ".join(f"word{i}" for i in range(500)) + " AB-1234"
    terms = query_terms(question)
    assert len(terms) == MAX_TERMS
    assert Term("ab 1234", "phrase") in terms


@given(any_text)
def test_any_text_gives_encodable_distinct_terms(text: str) -> None:
    terms = query_terms(text)
    assert len(set(terms)) == len(terms) <= MAX_TERMS
    for term in terms:
        term.text.encode("utf-8")
        assert term.text.strip()
    assert "\0" not in search_text(text)


@given(st.text("山川木水火土天地人", min_size=1, max_size=12), st.data())
def test_every_part_of_a_run_is_found_by_its_tokens(run: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(run) - 1))
    end = data.draw(st.integers(start + 1, len(run)))
    have = tokens(f"前 {run} 后")
    for term in query_terms(run[start:end]):
        assert term.text in have or (term.kind == "prefix" and any(t.startswith(term.text) for t in have))


@given(any_text)
def test_folding_twice_changes_nothing_for_search(text: str) -> None:
    assert tokens(fold(text)) == tokens(text)
