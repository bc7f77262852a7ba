"""What a write changed in a file: for each place the lines that went, those that came, and their neighbours.

Lines are kept without their secrets (see `lamella.text.redact`) and without line ends. A hash of the real
bytes tells whether lines elsewhere are the same ones, and whether what is kept is all there was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import islice

from attrs import frozen

from lamella.text.changes import Change, agreeing, line_changes
from lamella.text.files import BOM
from lamella.text.redact import redact

# Neighbouring lines that are kept on either side of a change.
CONTEXT = 3
# Lines around a change that are looked at for secrets: a private key has up to about a hundred.
_SECRET_LINES = 120


@frozen(slots=True)
class Passage:
    """Lines of a file, secrets masked, and the SHA-256 of their bytes; both empty when there are none."""

    lines: tuple[str, ...] = ()
    hash: str = ""

    @property
    def whole(self) -> bool:
        """Whether `lines` is all that stood there: no secret, and nothing that is not UTF-8."""
        return self.is_same([line.encode() for line in self.lines])

    def is_same(self, raw: Sequence[bytes]) -> bool:
        """Whether these lines, without line ends, are the passage byte for byte."""
        return hash_of_lines(raw) == self.hash


@frozen(slots=True)
class Hunk:
    """One place that changed. `line`: where `added` begins in the new file, counted from 1, or where the
    `removed` lines would stand. `above` and `below`: up to `CONTEXT` lines that did not change."""

    line: int
    removed: Passage
    added: Passage
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()

    @property
    def end_line(self) -> int:
        """The last added line; `line` itself when nothing was added."""
        return self.line + max(len(self.added.lines) - 1, 0)


def hunks_between(old: bytes, new: bytes) -> tuple[Hunk, ...]:
    """What makes `new` of `old`, in order. Line ends and byte-order marks are no difference."""
    old_lines, new_lines = raw_lines(old), raw_lines(new)
    changes = line_changes(old_lines, new_lines)
    if not changes:
        return ()
    removing = any(change.old_start < change.old_end for change in changes)
    before = _Version.of(old_lines, changes[0].old_start, changes[-1].old_end) if removing else _Version(old_lines)
    after = _Version.of(new_lines, changes[0].new_start, changes[-1].new_end)
    return tuple(_hunk(before, after, change) for change in changes)


def raw_lines(data: bytes) -> list[bytes]:
    """The lines of a file's bytes as `lamella.text.files.split_lines` has them, undecoded."""
    return [line.removesuffix(b"\n").removesuffix(b"\r") for line in pieces(data.removeprefix(BOM))]


def pieces(data: bytes) -> list[bytes]:
    """The lines of a file's bytes with their line ends."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def shown_lines(raw: Sequence[bytes]) -> list[str]:
    """Lines as they may be kept and shown: decoded, secrets masked."""
    return redact("\n".join(line.decode("utf-8", "replace") for line in raw)).split("\n") if raw else []


def content_hash(data: bytes) -> str:
    """SHA-256 of a file's bytes, as hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def hash_of_lines(raw: Sequence[bytes]) -> str:
    """SHA-256 of lines, as hexadecimal; empty for none."""
    return content_hash(b"\n".join(raw)) if raw else ""


@frozen(slots=True)
class Agreement:
    """How many lines before and after a place are those that were expected, and how many have words."""

    above: int
    below: int
    words: int


def agreement(above: Iterable[str], below: Iterable[str], lines: Sequence[str], start: int, end: int) -> Agreement:
    """Compare the neighbours of `lines[start:end]` with those that are expected, at most `CONTEXT` on a
    side, both nearest first."""
    up, down = list(islice(above, CONTEXT)), list(islice(below, CONTEXT))
    same_up = agreeing(up, reversed(lines[max(start - CONTEXT, 0) : start]))
    same_down = agreeing(down, lines[end : end + CONTEXT])
    words = sum(1 for line in (*up[:same_up], *down[:same_down]) if line.strip())
    return Agreement(same_up, same_down, words)


@frozen(slots=True)
class _Version:
    """The lines of a file, and from `first` on, as far as they are needed, as they are shown."""

    raw: Sequence[bytes]
    first: int = 0
    masked: Sequence[str] = ()

    @classmethod
    def of(cls, raw: Sequence[bytes], start: int, end: int) -> _Version:
        """For `raw[start:end]` and its neighbours. Some secrets are known by lines far before them."""
        first = max(start - _SECRET_LINES, 0)
        return cls(raw, first, shown_lines(raw[first : end + _SECRET_LINES]))

    def shown(self, start: int, end: int) -> tuple[str, ...]:
        return tuple(self.masked[max(start, 0) - self.first : end - self.first])

    def passage(self, start: int, end: int) -> Passage:
        return Passage(self.shown(start, end), hash_of_lines(self.raw[start:end]))


def _hunk(old: _Version, new: _Version, change: Change) -> Hunk:
    start, end = change.new_start, change.new_end
    return Hunk(
        line=start + 1,
        removed=old.passage(change.old_start, change.old_end),
        added=new.passage(start, end),
        above=new.shown(start - CONTEXT, start),
        below=new.shown(end, end + CONTEXT),
    )
