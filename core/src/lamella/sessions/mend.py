"""A damaged transcript as whole lines: nothing that can be read is lost, and readers see the same as before.

    unreadable lines, second headers             left out
    an entry below an unreadable line            hangs from that line's parent, as readers have it
    a parent that is not there, a cycle          the branch begins there, as readers have it
    an id that a later line has too              the earlier entry gets an id of its own, since the later counts
    a missing header                             made, with the session id that the file's name tells

Pure; `lamella doctor --fix` writes the result and keeps the original beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from lamella.sessions.lines import Head, Lines, encode_line, strip_line
from lamella.sessions.reader import Transcript
from lamella.sessions.tree import find_leaf
from lamella.types.entries import Damage

# Version 1 has no ids, so that a second header counts as an entry there.
_HEADER = "session"


def defects(transcript: Transcript) -> list[Damage]:
    """All that is wrong with a transcript: what reading it met, and where its tree is not whole.

    A file of an older version is not damaged.
    """
    return [*transcript.damage, *(place.damage for place in _places(transcript.lines).values() if place.damage)]


def mended_lines(transcript: Transcript) -> list[bytes]:
    """The transcript's lines without defects, header first, without line ends."""
    heads, places = transcript.lines.heads, _places(transcript.lines)
    left_out = {p.id: p.parent for i, p in places.items() if heads[i].type == _HEADER}
    lines = [encode_line(transcript.header.fields).rstrip(b"\n")]
    for position, raw in enumerate(transcript.lines.raw):
        if heads[position].type == _HEADER:
            continue
        entry, place = transcript.lines.entry(position), places[position]
        parent = place.parent
        while parent is not None and parent in left_out:
            parent = left_out[parent]
        if (entry.id, entry.parent_id) == (place.id, parent):
            lines.append(strip_line(raw))
        else:
            lines.append(encode_line({**entry.fields, "id": place.id, "parentId": parent}).rstrip(b"\n"))
    return lines


@frozen(slots=True)
class _Place:
    """Id and parent that an entry should have, and what is wrong with those it has."""

    id: str
    parent: str | None
    damage: Damage | None = None


def _places(lines: Lines) -> dict[int, _Place]:
    heads, index = lines.heads, lines.index()
    cut = set(_cycle_ends(heads, index, find_leaf(lines)))
    return {position: _place(position, heads, index, cut) for position in range(len(heads))}


def _place(position: int, heads: Sequence[Head], index: Mapping[str, int], cut: set[int]) -> _Place:
    head = heads[position]
    own, parent, damage = head.id, head.parentId, None
    if index[own] != position:
        own = _free_id(f"{head.id}-{position}", index)
        damage = Damage("duplicate_id", f"entry {head.id!r} is there again later, and the later one counts")
    if parent is not None and parent not in index:
        damage = damage or Damage("missing_parent", f"parent {parent!r} is not in the file")
        parent = None
    elif position in cut:
        damage = damage or Damage("parent_cycle", f"parent links form a cycle at entry {head.id!r}")
        parent = None
    return _Place(own, parent, damage)


def _free_id(wanted: str, index: Mapping[str, int]) -> str:
    while wanted in index:
        wanted += "-"
    return wanted


def _cycle_ends(heads: Sequence[Head], index: Mapping[str, int], leaf: int | None) -> Iterator[int]:
    """The entries whose parent link closes a cycle. The session's own branch is walked first, so that it
    ends where readers end it."""
    settled: set[int] = set()
    for start in ([] if leaf is None else [leaf]) + list(range(len(heads) - 1, -1, -1)):
        walked: set[int] = set()
        position: int | None = start
        while position is not None and position not in settled:
            settled.add(position)
            walked.add(position)
            above = index.get(heads[position].parentId or "")
            if above in walked:
                yield position
            position = above
