"""The data file: what is written is what is read, and damage is noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_static import small_model, written

from lamella.errors import PluginError
from lamella_embedders.static.datafile import encode_model, load_model


def test_a_model_survives_the_file(tmp_path: Path) -> None:
    model = small_model()
    read = written(tmp_path, model)
    assert (read.name, read.width, read.own_share) == (model.name, model.width, model.own_share)
    assert read.latin.pieces == model.latin.pieces
    assert read.cjk.pieces == model.cjk.pieces
    np.testing.assert_array_equal(read.latin.rows, model.latin.rows)
    np.testing.assert_array_equal(read.cjk.scales, model.cjk.scales)
    np.testing.assert_array_equal(read.log_probs, model.log_probs)
    np.testing.assert_array_equal(read.bridge, model.bridge)


def test_equal_models_give_equal_bytes() -> None:
    assert encode_model(small_model()) == encode_model(small_model())


@pytest.mark.parametrize("position", [9, 200, 700, -1])
def test_a_changed_byte_is_noticed(tmp_path: Path, position: int) -> None:
    content = bytearray(encode_model(small_model()))
    content[position] ^= 1
    path = tmp_path / "damaged.bin"
    path.write_bytes(content)
    with pytest.raises(PluginError, match=r"damaged\.bin is damaged: its SHA-256 is [0-9a-f]{64}, expected") as caught:
        load_model(path)
    assert "lamella-embedders" in caught.value.hint


@pytest.mark.parametrize("keep", [12, 40, 300])
def test_a_file_that_was_cut_short_is_noticed(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "short.bin"
    path.write_bytes(encode_model(small_model())[:keep])
    with pytest.raises(PluginError, match="short"):
        load_model(path)


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n" * 4])
def test_another_kind_of_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    with pytest.raises(PluginError, match="not a file of the static embedder"):
        load_model(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=r"gone\.bin cannot be read: No such file"):
        load_model(tmp_path / "gone.bin")
