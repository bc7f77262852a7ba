"""Reading a transcript from its end, only as far as the context of its leaf needs.

With a compaction on the branch, time and memory depend on the kept context and not on the file's
length. The result equals that of reading the whole file; where that cannot be known from the end
(older versions, parents that lie ahead, a lost header), None is returned and the caller reads all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from attrs import field, frozen

from lamella.sessions.context import ModelState, StateSearch
from lamella.sessions.lines import Head, Lines, decode_line, read_head
from lamella.sessions.reader import is_header, to_header
from lamella.sessions.tree import find_leaf, is_conversation
from lamella.text.files import BOM, read_at
from lamella.types.entries import Compaction, Damage, Header

_BLOCK = 1 << 16
_MAX_BLOCK = 1 << 20
_MAX_HEADER = 1 << 20


@frozen(slots=True)
class Tail:
    """The end of a transcript: the lines read, the branch (positions, root or cut first), its state.

    `reaches_root` is False when reading stopped at what the compaction kept.
    """

    header: Header
    lines: Lines = field(repr=False)
    leaf: int | None
    path: tuple[int, ...]
    state: ModelState
    damage: tuple[Damage, ...]
    size: int
    complete_end: bool
    reaches_root: bool


def read_tail(path: Path) -> Tail | None:
    """The leaf's branch as far back as its context needs; None when the whole file must be read."""
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        header, header_end = _read_header(file.fileno(), size)
        if header is None or header.version < 3:
            return None
        return _Backward(file.fileno(), header, header_end, size).run()


def _read_header(fd: int, size: int) -> tuple[Header | None, int]:
    """The header on the first line, and the offset behind that line."""
    data = read_at(fd, min(size, 1 << 12), 0)
    while b"\n" not in data and len(data) < min(size, _MAX_HEADER):
        data += read_at(fd, _MAX_BLOCK, len(data))
    line, found, _ = data.partition(b"\n")
    if not found or line.startswith(BOM):
        return None, 0
    try:
        value = decode_line(line)
    except ValueError:
        return None, 0
    return (to_header(value) if is_header(value) else None), len(line) + 1


def _lines_backward(fd: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """(offset, line) from the last line to the first; a last line without line feed counts too."""
    tail = b""
    position = end
    block = _BLOCK
    while position > start:
        step = min(block, position - start)
        block = min(block * 2, _MAX_BLOCK)
        position -= step
        data = read_at(fd, step, position) + tail
        pieces = data.split(b"\n")
        tail = pieces[0]
        offset = position + len(data)
        for piece in reversed(pieces[1:]):
            offset -= len(piece)
            yield offset, piece
            offset -= 1
    if tail:
        yield start, tail


class _Backward:
    """One pass from the end. Keeps lines while they may matter, then only their places."""

    def __init__(self, fd: int, header: Header, start: int, size: int) -> None:
        self.fd, self.header, self.start, self.size = fd, header, start, size
        self.lines = Lines()  # newest first until the end of the pass
        self.damage: list[Damage] = []
        self.end_damaged = False
        self.on_path: set[int] = set()
        self.index: dict[str, int] = {}
        self.state = StateSearch()
        self.path: list[int] = []
        self.compaction: Compaction | None = None
        self.context_done = False

    def run(self) -> Tail | None:
        source = _lines_backward(self.fd, self.start, self.size)
        complete = self.size == self.start or read_at(self.fd, 1, self.size - 1) == b"\n"
        leaf = self._find_leaf(source)
        if leaf is None:
            return self._result(None, complete, True)
        position = leaf
        while True:
            self._visit(position)
            parent = self.lines.heads[position].parentId
            if parent is None or self.context_done:
                break
            above = self._find(source, parent)
            # A missing parent, a cycle, a header in the middle: only the whole file can tell.
            if above is None or above in self.on_path:
                return None
            position = above
        if not self.state.done and not self._find_state(source, parent):
            return None
        return self._result(leaf, complete, parent is None)

    def _find_leaf(self, source: Iterator[tuple[int, bytes]]) -> int | None:
        for offset, line in source:
            position = self._take(offset, line)
            if position is not None and is_conversation(self.lines, position):
                break
        if not self.lines:
            return None
        # The newest conversation entry is the last one taken; judge in file order.
        count = len(self.lines)
        ordered = Lines(self.lines.heads[::-1], self.lines.raw[::-1])
        leaf = find_leaf(ordered)
        return None if leaf is None else count - 1 - leaf

    def _take(self, offset: int, line: bytes) -> int | None:
        """Keep a line if it is an entry; returns its position."""
        head = self._head(offset, line)
        if head is None:
            return None
        self.lines.heads.append(head)
        self.lines.raw.append(line)
        position = len(self.lines) - 1
        self.index.setdefault(head.id, position)  # of equal ids the later line counts
        return position

    def _head(self, offset: int, line: bytes) -> Head | None:
        """Where a line stands in the tree; None for one that is no entry, which is noted as damage."""
        head = read_head(line)
        if isinstance(head, Head):
            if head.type != "session":
                return head
            self.damage.append(Damage("second_header", "another session header; ignored", None, offset))
        elif head is not None:
            at_end = offset + len(line) == self.size
            self.end_damaged = self.end_damaged or at_end
            torn = at_end and head.code == "bad_json"
            code, text = ("torn_line", "the last line is cut short") if torn else (head.code, head.message)
            self.damage.append(Damage(code, text, None, offset))
        return None

    def _visit(self, position: int) -> None:
        """Add an entry to the branch; the context is complete at what the compaction kept."""
        self.on_path.add(position)
        self.path.append(position)
        head = self.lines.heads[position]
        if head.type == "compaction" and self.compaction is None:
            self.compaction = Compaction.of(self.lines.entry(position))
            kept = self.compaction.first_kept_entry_id
            self.context_done = kept is None or kept == head.id
        elif self.compaction is not None and head.id == self.compaction.first_kept_entry_id:
            self.context_done = True
        self.state.look(self.lines, position)

    def _find(self, source: Iterator[tuple[int, bytes]], wanted: str) -> int | None:
        known = self.index.get(wanted)
        if known is not None:
            return known
        for offset, line in source:
            position = self._take(offset, line)
            if position is not None and self.lines.heads[position].id == wanted:
                return position
        return None

    def _find_state(self, source: Iterator[tuple[int, bytes]], wanted: str | None) -> bool:
        """Follow the branch behind the kept context for model and level; only places are kept.

        False when it breaks off or runs in a circle.
        """
        places: dict[str, tuple[int, int]] = {}
        passed: set[str] = set()
        while wanted is not None and not self.state.done:
            line = self._line_of(wanted, places, source)
            if line is None or wanted in passed:
                return False
            passed.add(wanted)
            head = read_head(line)
            assert isinstance(head, Head)
            self.state.look(Lines([head], [line]), 0)
            wanted = head.parentId
        return True

    def _line_of(
        self, wanted: str, places: dict[str, tuple[int, int]], source: Iterator[tuple[int, bytes]]
    ) -> bytes | None:
        """The last line with this id; None when there is none, or it is on the branch already."""
        if wanted in self.index:
            position = self.index[wanted]
            return None if position in self.on_path else self.lines.raw[position]
        if wanted in places:
            offset, length = places[wanted]
            return read_at(self.fd, length, offset)
        for offset, line in source:
            head = self._head(offset, line)
            if head is None or head.id in self.index:
                continue
            places.setdefault(head.id, (offset, len(line)))
            if head.id == wanted:
                return line
        return None

    def _result(self, leaf: int | None, complete: bool, reaches_root: bool) -> Tail:
        """Everything turned into file order."""
        last = len(self.lines) - 1
        lines = Lines(self.lines.heads[::-1], self.lines.raw[::-1])
        if not complete and not self.end_damaged:
            self.damage.insert(0, Damage("no_final_newline", "the last line has no line feed"))
        return Tail(
            self.header,
            lines,
            None if leaf is None else last - leaf,
            tuple(last - p for p in reversed(self.path)),
            self.state.result(),
            tuple(reversed(self.damage)),
            self.size,
            complete,
            reaches_root,
        )
