"""JSON lines: decoding that forgives what other programs and crashes leave behind, and encoding.

Reading accepts a byte-order mark, CRLF, NUL padding, bytes that are not UTF-8 and lone surrogates
(the last two become U+FFFD). Writing always gives strict UTF-8, one object a line, no blanks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import msgspec
from attrs import field, frozen

from lamella.text.files import BOM
from lamella.text.unicode import well_formed
from lamella.types.entries import Damage, Entry
from lamella.types.messages import JsonObject

# White space around a line, the mark that Windows tools put before the first, and the zeros that
# a file system leaves where a crash kept it from writing data.
_PADDING = b" \t\r\n\x00"


class Head(msgspec.Struct, gc=False):
    """The three fields that place an entry in the tree; the rest of its line stays undecoded."""

    type: str
    id: str
    parentId: str | None = None


_decode_head = msgspec.json.Decoder(Head).decode
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:  # more digits than Python reads
        return None


def well_formed_json(value: Any) -> Any:
    """A JSON value whose strings are `well_formed`."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed_json(k): well_formed_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [well_formed_json(v) for v in value]
    return value


def strip_line(line: bytes) -> bytes:
    """A line without white space and NUL padding at its ends, and without a byte-order mark."""
    line = line.strip(_PADDING)
    return line[len(BOM) :].strip(_PADDING) if line.startswith(BOM) else line


def decode_line(line: bytes) -> Any:
    """The JSON value of a line. Raises ValueError when there is none.

    Bytes that are not UTF-8 and lone surrogate escapes become U+FFFD, numbers out of range null.
    """
    line = strip_line(line)
    try:
        return _decode_any(line)
    except (msgspec.DecodeError, RecursionError):
        text = line.decode("utf-8", "replace")
        try:
            value = json.loads(text, parse_constant=_reject_constant, parse_float=_finite, parse_int=_integer)
            return well_formed_json(value)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def encode_line(value: JsonObject) -> bytes:
    """One line, line feed included. Lone surrogates are replaced, since UTF-8 cannot hold them."""
    try:
        return _encode(value) + b"\n"
    except UnicodeEncodeError:
        return _encode(well_formed_json(dict(value))) + b"\n"


def read_head(line: bytes) -> Head | Damage | None:
    """Where a line stands in the tree; None for a blank line, `Damage` for one that is no entry."""
    try:
        return _decode_head(line)
    except (msgspec.MsgspecError, RecursionError):
        return _explain(line)


def _explain(line: bytes) -> Head | Damage | None:
    """The slow path: a line that is blank, padded, slightly broken, or no entry at all."""
    stripped = strip_line(line)
    if not stripped:
        return Damage("nul_block", "a block of NUL bytes") if b"\x00" in line else None
    try:
        value = decode_line(stripped)
    except ValueError as error:
        return Damage("bad_json", f"not a JSON line ({str(error)[:120]})")
    if not isinstance(value, dict):
        return Damage("not_an_object", f"expected an object, found {type(value).__name__}")
    kind, entry_id, parent = value.get("type"), value.get("id"), value.get("parentId")
    if not isinstance(kind, str):
        return Damage("no_type", "an object without a string 'type'")
    if not isinstance(entry_id, str):
        return Damage("no_id", f"an entry of type {kind!r} without a string 'id'")
    return Head(kind, entry_id, parent if isinstance(parent, str) else None)


@frozen(slots=True)
class Lines:
    """Entry lines of a transcript in file order: their place in the tree, and their raw bytes.

    Bodies are decoded one at a time, when they are asked for, so that opening a long file costs
    little more than finding its line ends.
    """

    heads: list[Head] = field(factory=list, repr=False)
    raw: list[bytes] = field(factory=list, repr=False)
    _decoded: dict[int, Entry] = field(factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.heads)

    def entry(self, position: int) -> Entry:
        """The entry at a position, decoded once."""
        found = self._decoded.get(position)
        if found is None:
            found = self._decoded[position] = self._decode(position)
        return found

    def _decode(self, position: int) -> Entry:
        """A body that cannot be read, such as one that nests too deeply, leaves an entry with its place alone."""
        try:
            return to_entry(decode_line(self.raw[position]))
        except ValueError:
            head = self.heads[position]
            return Entry(head.type, head.id, head.parentId, "", {"type": head.type, "id": head.id})

    def add(self, entry: Entry, line: bytes) -> int:
        """Add an entry at the end; returns its position."""
        self.heads.append(Head(entry.type, entry.id, entry.parent_id))
        self.raw.append(line)
        self._decoded[len(self.raw) - 1] = entry
        return len(self.raw) - 1

    def entries(self, positions: Sequence[int] | None = None) -> Iterator[Entry]:
        """Entries at the given positions, or all."""
        for i in range(len(self.heads)) if positions is None else positions:
            yield self.entry(i)

    def index(self) -> dict[str, int]:
        """Entry id to position; of entries with the same id the later one counts."""
        return {head.id: i for i, head in enumerate(self.heads)}


def to_entry(fields: JsonObject) -> Entry:
    """An entry from its JSON object, which must have string `type` and `id`."""
    parent, timestamp = fields.get("parentId"), fields.get("timestamp")
    return Entry(
        fields["type"],
        fields["id"],
        parent if isinstance(parent, str) else None,
        timestamp if isinstance(timestamp, str) else "",
        fields,
    )
