"""The prefix of a request, as provider caches see it: tools, system prompt, history, in that order
(Anthropic's documented one). Pure functions: its parts, their hashes, and where two prefixes differ.

A cache serves a request up to the first byte that differs from an earlier one; everything behind it
is paid anew.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from attrs import frozen

from lamella.sessions.lines import encode_line
from lamella.text.estimate import estimate_text
from lamella.types.message_json import dump_message
from lamella.types.messages import ModelMessage, ToolResultMessage
from lamella.types.model import ToolSpec

PartKind: TypeAlias = Literal["tool", "section", "message"]

# Of messages no text is kept, but a checksum of every so many bytes: enough to find the place.
BLOCK_BYTES = 1024
_BLOCK_DIGITS = 8
_SENT = ("role", "content", "toolCallId", "toolName", "isError")  # what of a message goes to a provider


@frozen(slots=True)
class Part:
    """A piece of a prefix. `blocks` are the checksums of a message's blocks, joined.

    `size` in bytes of UTF-8, `tokens` estimated.
    """

    kind: PartKind
    name: str
    size: int
    tokens: int
    digest: str
    blocks: str = ""


@frozen(slots=True)
class Prefix:
    """All parts of a request, in order."""

    parts: tuple[Part, ...]

    @property
    def hash(self) -> str:
        """One hash for all of it: requests with the same one have the same bytes."""
        return hashlib.sha256("".join(p.digest for p in self.parts).encode()).hexdigest()

    @property
    def size(self) -> int:
        return sum(p.size for p in self.parts)

    @property
    def tokens(self) -> int:
        return sum(p.tokens for p in self.parts)


# --- making parts ------------------------------------------------------------------------------------


def tool_text(tool: ToolSpec) -> str:
    """A tool as it is hashed: what a provider is told of it, as a line of JSON."""
    return encode_line({"name": tool.name, "description": tool.description, "parameters": tool.parameters}).decode()


def text_part(kind: PartKind, name: str, text: str) -> Part:
    """A part whose text is kept elsewhere, under its digest. The text is valid Unicode."""
    data = text.encode()
    return Part(kind, name, len(data), estimate_text(text), _digest(data))


def message_part(message: ModelMessage, tokens: int) -> Part:
    """A part for a message: hashed without what no provider sees, such as times and usage."""
    raw = dump_message(message)
    data = encode_line({k: raw[k] for k in _SENT if k in raw})
    sums = [zlib.crc32(data[i : i + BLOCK_BYTES]).to_bytes(4, "big") for i in range(0, len(data), BLOCK_BYTES)]
    name = f"{message.role} {message.tool_name}" if isinstance(message, ToolResultMessage) else message.role
    return Part("message", name, len(data), tokens, _digest(data), b"".join(sums).hex())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


# --- comparing ---------------------------------------------------------------------------------------


@frozen(slots=True)
class Change:
    """Where a later prefix first differs from an earlier one.

    `byte` counts from the beginning of the prefix, `part_byte` from that of the part; `exact` is
    False where only the block of `BLOCK_BYTES` is known. `position` counts parts from 0; `after` is None
    when the later prefix ends there.
    """

    byte: int
    part_byte: int
    exact: bool
    position: int
    before: Part
    after: Part | None


@frozen(slots=True)
class PrefixDiff:
    """Two prefixes compared. `change` is None when the later one goes on where the earlier one ended.

    Tokens of the later prefix: `kept` before the change, `repaid` what stands in place of something
    that had been sent before, `new` the rest.
    """

    change: Change | None
    kept_tokens: int
    repaid_tokens: int
    new_tokens: int


def compare(earlier: Prefix, later: Prefix, text_of: Callable[[Part], str | None] = lambda _part: None) -> PrefixDiff:
    """Where `later` leaves `earlier`, and what that costs. `text_of` gives the text of tools and sections."""
    same = _same_parts(earlier, later)
    kept = sum(p.tokens for p in later.parts[:same])
    if same == len(earlier.parts):
        return PrefixDiff(None, kept, 0, later.tokens - kept)
    before, after = earlier.parts[same], later.parts[same] if same < len(later.parts) else None
    place, exact = _place(before, after, text_of) if after else (0, True)
    start = sum(p.size for p in earlier.parts[:same])
    change = Change(start + place, place, exact, same, before, after)
    if after is not None:
        kept += after.tokens - _tokens_behind(after, place)
    had = earlier.tokens - sum(p.tokens for p in earlier.parts[: same + 1]) + _tokens_behind(before, place)
    behind = later.tokens - kept
    return PrefixDiff(change, kept, min(behind, had), behind - min(behind, had))


def _same_parts(earlier: Prefix, later: Prefix) -> int:
    return alike([p.digest for p in earlier.parts], [p.digest for p in later.parts])


def _place(before: Part, after: Part, text_of: Callable[[Part], str | None]) -> tuple[int, bool]:
    """(byte in the part where two parts first differ, whether that is exact)."""
    texts = (text_of(before), text_of(after))
    if texts[0] is not None and texts[1] is not None:
        return common_bytes(texts[0], texts[1]), True
    if before.kind != after.kind:
        return 0, True
    equal = alike(_blocks(before), _blocks(after))
    return min(equal * BLOCK_BYTES, before.size, after.size), False


def common_bytes(one: str, other: str) -> int:
    """How many bytes of UTF-8 two texts begin with alike."""
    return alike(one.encode(), other.encode())


def alike(one: Sequence[object], other: Sequence[object]) -> int:
    """How many items two sequences begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _blocks(part: Part) -> list[str]:
    return [part.blocks[i : i + _BLOCK_DIGITS] for i in range(0, len(part.blocks), _BLOCK_DIGITS)]


def _tokens_behind(part: Part, place: int) -> int:
    """The part's tokens from a byte on."""
    return math.ceil(part.tokens * (part.size - place) / part.size) if part.size else 0
