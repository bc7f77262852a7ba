"""The tokenisers in Python against recorded cuts of the `tokenizers` package."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella_embedders.static.datafile import StaticModel, load_model
from lamella_embedders.static.embedder import DATA_FILE
from lamella_embedders.static.scripts import split_scripts
from lamella_embedders.static.unigram import MAX_RUN, Unigram
from lamella_embedders.static.wordpiece import WordPiece, words

RECORDED = json.loads((Path(__file__).parents[1] / "data/embedders/tokens.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model() -> StaticModel:
    return load_model(DATA_FILE)


@pytest.fixture(scope="module")
def wordpiece(model: StaticModel) -> WordPiece:
    return WordPiece(model.latin.pieces)


@pytest.fixture(scope="module")
def unigram(model: StaticModel) -> Unigram:
    return Unigram(model.cjk.pieces, model.log_probs.tolist())


@pytest.mark.parametrize("case", RECORDED["wordpiece"], ids=lambda case: case["text"][:24])
def test_wordpiece_cuts_as_recorded(case: dict[str, object], wordpiece: WordPiece, model: StaticModel) -> None:
    numbers = wordpiece.encode(str(case["text"]).lower())
    assert [model.latin.pieces[k] for k in numbers] == case["tokens"]


@pytest.mark.parametrize("case", RECORDED["unigram"], ids=lambda case: case["text"])
def test_unigram_cuts_as_recorded(case: dict[str, object], unigram: Unigram, model: StaticModel) -> None:
    numbers = unigram.encode(str(case["text"]))
    assert [model.cjk.pieces[k] for k in numbers] == case["tokens"]


def test_the_most_probable_cut_wins_not_the_longest_piece() -> None:
    unigram = Unigram(["研究", "研究生", "生命", "命"], [-1.0, -1.5, -1.0, -9.0])
    assert unigram.encode("研究生命") == [0, 2]


def test_unknown_characters_give_nothing_and_disturb_nobody() -> None:
    unigram = Unigram(["研究", "生命"], [-1.0, -1.0])
    assert unigram.encode("研究龘生命") == [0, 1]


def test_a_long_run_is_cut_whole() -> None:
    unigram = Unigram(["的"], [-1.0])
    assert unigram.encode("的" * (3 * MAX_RUN + 5)) == [0] * (3 * MAX_RUN + 5)


def test_an_empty_vocabulary_knows_nothing() -> None:
    assert Unigram([], []).encode("研究") == []
    assert WordPiece([]).encode("word") == []


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_text_is_cut_the_same_beside_other_text(text: str) -> None:
    lowered = text.lower()
    assert words(lowered) == words(lowered + " é")[:-1]


@given(st.text())
def test_splitting_keeps_every_letter(text: str) -> None:
    parts = split_scripts(text)
    assert 0.0 <= parts.cjk_share <= 1.0
    assert (parts.cjk_share > 0) == bool(parts.cjk_runs)


def test_scripts_are_told_apart() -> None:
    parts = split_scripts("用 Python 写的 API。再见")
    assert parts.cjk_runs == ("用", "写的", "再见")
    assert parts.rest.split() == ["python", "api。"]
    assert parts.cjk_share == pytest.approx(5 / 14)


def test_compatibility_forms_are_unified() -> None:
    assert split_scripts("ＡＰＩ　ｶﾀｶﾅ") == split_scripts("API カタカナ")
