"""A static model of a few words, for tests that need another one than the shipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from attrs import evolve

from lamella_embedders.static.datafile import StaticModel, Table, encode_model, load_model

WIDTH = 4


def small_model(**changes: object) -> StaticModel:
    """Four Latin pieces and three CJK ones, each along an axis of its own."""
    latin = Table(("red", "##dish", "blue", "."), *_axes(4))
    cjk = Table(("红", "红色", "蓝"), *_axes(3))
    model = StaticModel(
        name="small",
        width=WIDTH,
        latin=latin,
        cjk=cjk,
        log_probs=np.array([-2.0, -2.5, -3.0], dtype=np.float32),
        bridge=np.eye(WIDTH, dtype=np.float16),
        own_share=0.5,
    )
    return evolve(model, **changes)


def written(folder: Path, model: StaticModel, name: str = "model.bin") -> StaticModel:
    """The model as it is when read back from a file."""
    path = folder / name
    path.write_bytes(encode_model(model))
    return load_model(path)


def _axes(count: int) -> tuple[np.ndarray, np.ndarray]:
    levels = np.full((count, WIDTH), 8, dtype=np.uint8)
    levels[np.arange(count), np.arange(count)] = 15
    half = WIDTH // 2
    return levels[:, :half] | (levels[:, half:] << 4), np.full(count, 1 / 7, dtype=np.float16)
