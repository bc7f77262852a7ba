"""The steps that make the static model's data, and that the shipped data is the documented one."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from member_scripts import ROOT, load_script

from lamella_embedders.static.datafile import load_model
from lamella_embedders.static.embedder import DATA_FILE

distil = load_script("plugins/embedders/tools/distil.py")
vocabularies = load_script("plugins/embedders/tools/vocabularies.py")


def vectors(rows: int, width: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, width)) * np.arange(width, 0, -1)


def test_the_shipped_data_is_the_documented_one() -> None:
    readme = (ROOT / "plugins/embedders/tools/README.md").read_text(encoding="utf-8")
    content = DATA_FILE.read_bytes()
    assert hashlib.sha256(content).hexdigest() in readme
    assert f"{len(content):,} bytes" in readme


def test_the_shipped_tables_fit_together() -> None:
    model = load_model(DATA_FILE)
    for table in (model.latin, model.cjk):
        assert table.rows.shape == (len(table.pieces), model.width // 2)
        assert table.scales.shape == (len(table.pieces),)
        assert len(set(table.pieces)) == len(table.pieces)
    assert model.log_probs.shape == (len(model.cjk.pieces),)


def test_a_projection_leaves_out_the_strongest_directions() -> None:
    data = vectors(400, 6)
    projected = distil.projection(data, width=3, drop=2, whitening=0.0)(data)
    assert projected.std(axis=0) == pytest.approx([4, 3, 2], rel=0.15)


def test_whitening_makes_directions_equally_strong() -> None:
    data = vectors(400, 6)
    strengths = distil.projection(data, width=4, drop=0, whitening=1.0)(data).std(axis=0)
    assert strengths == pytest.approx([strengths[0]] * 4)


def test_a_projection_does_not_depend_on_the_sign_of_its_axes() -> None:
    data = vectors(50, 4)
    mirrored = distil.projection(-data, width=4, drop=0, whitening=0.5)
    np.testing.assert_allclose(distil.projection(data, width=4, drop=0, whitening=0.5).axes, mirrored.axes)


def test_a_bridge_finds_the_map_between_two_spaces() -> None:
    source, matrix = vectors(200, 5), vectors(5, 5, seed=8)
    np.testing.assert_allclose(distil.bridge(source, source @ matrix, ridge=1e-12), matrix, atol=1e-6)


def test_frequent_tokens_weigh_less() -> None:
    weights = distil.rarity(distil.rank_probabilities([1, 10, 1000], shift=10.0), strength=1e-2)
    assert 0 < weights[0] < weights[1] < weights[2] < 1


def test_quantised_rows_are_near_the_vectors() -> None:
    data = vectors(20, 8) / np.arange(8, 0, -1)
    packed, scales = distil.quantise(data)
    restored = (np.concatenate([packed & 15, packed >> 4], axis=1).astype(float) - 8) * scales[:, None]
    inside = np.abs(data) <= 7 * scales[:, None].astype(float)
    assert inside.mean() > 0.95
    assert (np.abs(restored - data) <= 0.51 * scales[:, None])[inside].all()


def test_a_zero_row_stays_zero() -> None:
    packed, _ = distil.quantise(np.zeros((1, 4)))
    assert packed.tolist() == [[0x88, 0x88]]


def test_pieces_with_and_without_a_blank_are_one(tmp_path: Path) -> None:
    entries = [
        ["<s>", 0.0],
        ["\u2581数据", math.log(0.2)],
        ["数据", math.log(0.1)],
        ["。", -1.0],
        ["库", -5.0],
        ["ab", -1.0],
    ]
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"model": {"vocab": entries}}), encoding="utf-8")
    pieces = vocabularies.cjk_pieces(file)
    assert [p.text for p in pieces] == ["数据", "库"]
    assert pieces[0].log_prob == pytest.approx(math.log(0.3))


def test_word_pieces_leave_out_special_and_cjk_ones(tmp_path: Path) -> None:
    file = tmp_path / "vocab.txt"
    file.write_text("\n".join(["[unused]"] * 999 + ["!", "中", "the", "##ing", "##の"]) + "\n", encoding="utf-8")
    assert [(w.id, w.text) for w in vocabularies.word_pieces(file)] == [(999, "!"), (1001, "the"), (1002, "##ing")]
