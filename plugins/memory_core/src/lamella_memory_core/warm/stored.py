"""Named arrays in one file, which processes map instead of reading.

    8 bytes    magic
    4 bytes    length of the header, little-endian
    4 bytes    CRC-32 of everything after
    header     JSON: facts (text by name), and for each array [offset, bytes, dtype, shape]
    arrays     raw, little-endian, each at a multiple of 64

Such a file is derived and can be made again: one that is damaged counts as none.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from attrs import field, frozen

from lamella.errors import LamellaError
from lamella.text.files import write_pieces

MAGIC = b"LMARRAY1"
_HEAD = struct.Struct("<II")
_START = len(MAGIC) + _HEAD.size
_ALIGNMENT = 64
_PIECE = 1024 * 1024


class Damaged(LamellaError):
    """A file is not one of arrays, or not as it was written."""


@frozen(slots=True, eq=False)
class Stored:
    """What is in a file; the arrays are read-only, and read from disk as they are used."""

    facts: Mapping[str, str]
    arrays: Mapping[str, Any] = field(repr=False)


def write_arrays(path: Path, facts: Mapping[str, str], arrays: Mapping[str, Any]) -> None:
    """Replace a file, at once for its readers. Those who have mapped the old one keep it. Raises `OSError`."""
    places: dict[str, list[Any]] = {}
    size = 0
    for name, array in arrays.items():
        places[name] = [size, array.nbytes, array.dtype.str, list(array.shape)]
        size += array.nbytes + -array.nbytes % _ALIGNMENT
    header = json.dumps({"facts": dict(facts), "arrays": places}, sort_keys=True).encode()
    header += b" " * (-(_START + len(header)) % _ALIGNMENT)
    check = zlib.crc32(header)
    for piece in _pieces(arrays):
        check = zlib.crc32(piece, check)
    begin = MAGIC + _HEAD.pack(len(header), check) + header
    write_pieces(path, chain([begin], _pieces(arrays)), mode=0o600)


def _pieces(arrays: Mapping[str, Any]) -> Iterator[bytes]:
    """The bytes of all arrays, each filled up to where the next one begins."""
    import numpy as np

    for array in arrays.values():
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, len(raw), _PIECE):
            yield raw[start : start + _PIECE].tobytes()
        yield bytes(-len(raw) % _ALIGNMENT)


def read_arrays(path: Path) -> Stored | None:
    """Map a file; None when there is none. Raises `Damaged`, also for a file that cannot be read."""
    import numpy as np

    try:
        data = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        raise Damaged(f"{path} cannot be read: {error}") from error
    if len(data) < _START or data[: len(MAGIC)].tobytes() != MAGIC:
        raise Damaged(f"{path} is not a file of arrays")
    length, check = _HEAD.unpack(data[len(MAGIC) : _START].tobytes())
    if zlib.crc32(data[_START:].data) != check:
        raise Damaged(f"{path} is not as it was written")
    header = json.loads(data[_START : _START + length].tobytes())
    body = data[_START + length :]
    arrays = {
        name: body[offset : offset + size].view(dtype).reshape(shape)
        for name, (offset, size, dtype, shape) in header["arrays"].items()
    }
    return Stored(header["facts"], arrays)
