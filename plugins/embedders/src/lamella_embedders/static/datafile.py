"""The model's data file: one header, a few arrays, and a hash over all of it.

    8 bytes    magic
    4 bytes    length of the header, little-endian
    header     JSON: model, dimensions, own_share, and for each section [offset, bytes, dtype, shape]
    sections   raw, little-endian, each at a multiple of 64
    32 bytes   SHA-256 of everything before

Rows have four bits a number: byte j of a row holds number j in its low half and number
j + dimensions/2 in its high half, each stored as value + 8 and to be multiplied by the row's scale.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from lamella.errors import PluginError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

MAGIC = b"LMSTATIC"
_ALIGNMENT = 64
_DIGEST_BYTES = 32
_BLOCK = 1 << 20


@frozen(slots=True)
class Table:
    """The vectors of one vocabulary: `rows` uint8 (n, dimensions/2), `scales` float16 (n,)."""

    pieces: tuple[str, ...]
    rows: Array
    scales: Array


@frozen(slots=True)
class StaticModel:
    """Everything that the embedder needs.

    `latin` and `cjk` have vectors of `width` numbers. `bridge`, float16 (width, width), carries CJK
    vectors into the space of the Latin ones. `log_probs`, float32 (n,), belong to the CJK pieces.
    `own_share` is how much of a CJK text's similarity is judged in the CJK space: 0 to 1.
    """

    name: str
    width: int
    latin: Table
    cjk: Table
    log_probs: Array
    bridge: Array
    own_share: float
    digest: str = ""


def encode_model(model: StaticModel) -> bytes:
    """The bytes of a data file; equal models give equal bytes. `digest` is not read."""
    import numpy as np

    payloads = {
        "latin_pieces": np.frombuffer("\n".join(model.latin.pieces).encode(), dtype=np.uint8),
        "latin_rows": model.latin.rows,
        "latin_scales": model.latin.scales.astype("<f2"),
        "cjk_pieces": np.frombuffer("\n".join(model.cjk.pieces).encode(), dtype=np.uint8),
        "cjk_rows": model.cjk.rows,
        "cjk_scales": model.cjk.scales.astype("<f2"),
        "cjk_log_probs": model.log_probs.astype("<f4"),
        "bridge": model.bridge.astype("<f2"),
    }
    sections: dict[str, list[Any]] = {}
    body = bytearray()
    for name, array in payloads.items():
        body += bytes(-len(body) % _ALIGNMENT)
        data = np.ascontiguousarray(array).tobytes()
        sections[name] = [len(body), len(data), array.dtype.str, list(array.shape)]
        body += data
    header = json.dumps(
        {"model": model.name, "width": model.width, "own_share": model.own_share, "sections": sections},
        sort_keys=True,
        separators=(",", ":"),
    ).encode()
    start = len(MAGIC) + 4 + len(header)
    header += b" " * (-start % _ALIGNMENT)
    content = MAGIC + struct.pack("<I", len(header)) + header + bytes(body)
    return content + hashlib.sha256(content).digest()


def load_model(path: Path) -> StaticModel:
    """Open a data file. Its arrays stay on disk and are read as they are used.

    Raises `PluginError` when the file is missing, is something else, or is not what was written.
    """
    import numpy as np

    try:
        digest = _verified_digest(path)
        data = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror or error}") from error
    header, body = _header(data)
    sections: Mapping[str, tuple[int, int, str, list[int]]] = header["sections"]

    def section(name: str) -> Array:
        offset, size, dtype, shape = sections[name]
        return data[body + offset : body + offset + size].view(dtype).reshape(shape)

    def table(name: str) -> Table:
        pieces = tuple(section(f"{name}_pieces").tobytes().decode().split("\n"))
        return Table(pieces, section(f"{name}_rows"), section(f"{name}_scales"))

    return StaticModel(
        name=header["model"],
        width=header["width"],
        latin=table("latin"),
        cjk=table("cjk"),
        log_probs=section("cjk_log_probs"),
        bridge=section("bridge"),
        own_share=header["own_share"],
        digest=digest,
    )


def _verified_digest(path: Path) -> str:
    """The file's SHA-256 as hex digits, after it has been found right."""
    remaining = path.stat().st_size - _DIGEST_BYTES
    actual = hashlib.sha256()
    with path.open("rb") as file:
        magic = file.read(len(MAGIC))
        if magic != MAGIC or remaining < len(MAGIC) + 4:
            raise _unusable(path, "is not a file of the static embedder")
        actual.update(magic)
        remaining -= len(magic)
        while remaining > 0 and (block := file.read(min(_BLOCK, remaining))):
            actual.update(block)
            remaining -= len(block)
        expected = file.read(_DIGEST_BYTES)
    if actual.digest() != expected:
        raise _unusable(path, f"is damaged: its SHA-256 is {actual.hexdigest()}, expected {expected.hex()}")
    return actual.hexdigest()


def _header(data: Array) -> tuple[dict[str, Any], int]:
    """The header, and where the sections begin."""
    start = len(MAGIC) + 4
    (size,) = struct.unpack("<I", data[len(MAGIC) : start].tobytes())
    header: dict[str, Any] = json.loads(data[start : start + size].tobytes())
    return header, start + size


def _unusable(path: Path, what: str) -> PluginError:
    return PluginError(
        f"static embedder: {path} {what}", hint="pip install --force-reinstall --no-deps lamella-embedders"
    )
