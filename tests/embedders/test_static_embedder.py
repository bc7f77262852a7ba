"""The `static` embedder through its public door."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from small_static import small_model, written

from lamella.types.memory import Embedder
from lamella_embedders.static.embedder import StaticEmbedder, default_embedder


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return default_embedder()


def best(embedder: Embedder, question: str, notes: Sequence[str]) -> str:
    scores = embedder.embed_documents(notes) @ embedder.embed_query(question)
    return notes[int(scores.argmax())]


ENGLISH = (
    "The car broke down on the motorway and had to be towed to a garage.",
    "Grandmother's apple pie needs cinnamon and a pinch of salt.",
    "Our database is backed up every night to a server in Frankfurt.",
    "The doctor prescribed antibiotics for her throat infection.",
    "We adopted a kitten from the animal shelter.",
)
CHINESE = (
    "汽车在高速公路上抛锚了，只好拖到修理厂。",
    "奶奶做的苹果派要放肉桂和一点盐。",
    "我们的数据库每天晚上备份到法兰克福的服务器。",
    "医生给她开了治疗喉咙感染的抗生素。",
    "我们从动物收容所领养了一只小猫。",
)
ENGLISH_QUESTIONS = (
    "vehicle repair",
    "a recipe for baking dessert",
    "where are the copies of our data stored?",
    "medicine for an illness",
    "which pet did they get?",
)
CHINESE_QUESTIONS = (
    "车子坏了去哪里修？",
    "甜点的烘焙食谱",
    "数据的副本存放在哪里？",
    "生病吃什么药？",
    "养了什么宠物？",
)


def test_it_is_an_embedder(embedder: StaticEmbedder) -> None:
    assert isinstance(embedder, Embedder)
    assert embedder.dimensions == 512
    vectors = embedder.embed_documents(ENGLISH)
    assert vectors.shape == (5, 512)
    assert vectors.dtype == np.float32
    assert embedder.embed_query("one").shape == (512,)
    assert embedder.embed_documents([]).shape == (0, 512)


@pytest.mark.parametrize(("question", "note"), list(zip(ENGLISH_QUESTIONS, ENGLISH, strict=True)))
def test_english_questions_find_english_notes(embedder: StaticEmbedder, question: str, note: str) -> None:
    assert best(embedder, question, ENGLISH) == note


@pytest.mark.parametrize(("question", "note"), list(zip(CHINESE_QUESTIONS, CHINESE, strict=True)))
def test_chinese_questions_find_chinese_notes(embedder: StaticEmbedder, question: str, note: str) -> None:
    assert best(embedder, question, CHINESE) == note


def test_most_chinese_questions_find_the_english_note(embedder: StaticEmbedder) -> None:
    pairs = zip(CHINESE_QUESTIONS, ENGLISH, strict=True)
    assert sum(best(embedder, question, ENGLISH) == note for question, note in pairs) >= 4


def test_one_language_among_notes_of_both(embedder: StaticEmbedder) -> None:
    notes = ENGLISH + CHINESE
    found = [best(embedder, question, notes) for question in ENGLISH_QUESTIONS + CHINESE_QUESTIONS]
    meant = [{english, chinese} for english, chinese in zip(ENGLISH, CHINESE, strict=True)] * 2
    assert sum(note in pair for note, pair in zip(found, meant, strict=True)) >= 9


def test_a_mixed_text_is_near_both_its_halves(embedder: StaticEmbedder) -> None:
    mixed = embedder.embed_query("数据库备份 database backup")
    near = embedder.embed_documents(["database backup", "数据库备份"]) @ mixed
    far = embedder.embed_documents(["apple pie", "苹果派"]) @ mixed
    assert near.min() > far.max() + 0.2


@pytest.mark.parametrize("text", ["", "   \n\t", "🙂🎉", "\u200b\u00ad"])
def test_a_text_without_words_is_the_zero_vector(embedder: StaticEmbedder, text: str) -> None:
    assert not embedder.embed_query(text).any()


@pytest.mark.parametrize("lone", ["\ud800", "\udfff notes", "备份\udc00数据", "a\ud83d b"])
def test_lone_surrogates_are_passed_over(embedder: StaticEmbedder, lone: str) -> None:
    without = "".join(" " if "\ud800" <= c <= "\udfff" else c for c in lone)
    np.testing.assert_allclose(embedder.embed_query(lone), embedder.embed_query(without), atol=1e-6)
    assert np.isfinite(embedder.embed_query(lone)).all()


def test_a_huge_text_is_embedded_whole(embedder: StaticEmbedder) -> None:
    english, chinese = "database backup " * 40_000, "数据库备份" * 40_000
    vectors = embedder.embed_documents([english, chinese, english + chinese])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[0] @ embedder.embed_query("database backup") == pytest.approx(1.0, abs=1e-5)


@settings(max_examples=60)
@given(st.lists(st.text(max_size=60), max_size=6))
def test_vectors_have_length_one_or_zero(texts: list[str]) -> None:
    lengths = np.linalg.norm(default_embedder().embed_documents(texts), axis=1)
    assert all(math.isclose(length, 1.0, abs_tol=1e-5) or length == 0.0 for length in lengths)


@settings(max_examples=60)
@given(st.lists(st.text(alphabet="ab 数据库.", max_size=20), min_size=1, max_size=5))
def test_a_vector_does_not_depend_on_its_neighbours(texts: list[str]) -> None:
    embedder = default_embedder()
    together = embedder.embed_documents(texts)
    for row, text in zip(together, texts, strict=True):
        np.testing.assert_array_equal(row, embedder.embed_query(text))


def test_repetition_says_little(tmp_path: Path) -> None:
    embedder = StaticEmbedder(written(tmp_path, small_model()))
    vector = embedder.embed_query("red red red red blue")
    np.testing.assert_allclose(vector[:4], np.array([2, 0, 1, 0]) / math.sqrt(5), atol=1e-3)


def test_the_two_halves_of_a_chinese_vector(tmp_path: Path) -> None:
    embedder = StaticEmbedder(written(tmp_path, small_model(own_share=0.5)))
    vector = embedder.embed_query("红色")
    axis = np.array([0, 1, 0, 0])
    np.testing.assert_allclose(vector, np.concatenate([axis, axis]) * math.sqrt(0.5), atol=1e-3)


def test_identity_names_provider_model_dimensions_and_data(tmp_path: Path) -> None:
    model = written(tmp_path, small_model())
    assert StaticEmbedder(model).identity == f"static/small/8/{model.digest[:12]}"


def test_identity_changes_with_the_data(tmp_path: Path) -> None:
    rows = small_model().latin.rows.copy()
    rows[0, 0] ^= 1
    changed = [
        small_model(),
        small_model(own_share=0.6),
        small_model(latin=evolve(small_model().latin, rows=rows)),
        small_model(name="other"),
    ]
    identities = {StaticEmbedder(written(tmp_path, m, f"{k}.bin")).identity for k, m in enumerate(changed)}
    assert len(identities) == 4
