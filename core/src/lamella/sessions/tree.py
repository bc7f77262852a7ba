"""The tree of a transcript: parent links, branches, and which entry a session continues from.

Pure functions over `Lines`. Positions are indexes into it; ids may repeat (the later one counts)
and parents may be missing or form cycles, so every walk is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from lamella.sessions.lines import Head, Lines
from lamella.types.entries import CONVERSATION_TYPES, POSITION_TYPE, Entry


def is_conversation(lines: Lines, position: int) -> bool:
    """Whether an entry may decide which branch a session continues on.

    Said things do, and so does lamella's own position marker; bookkeeping does not.
    """
    head = lines.heads[position]
    if head.type in CONVERSATION_TYPES:
        return True
    return head.type == "custom" and lines.entry(position).text("customType") == POSITION_TYPE


def find_leaf(lines: Lines) -> int | None:
    """Position of the entry that a session continues from; None when there are no entries.

    It is the last entry of the file, as every reader of the format has it, with one exception:
    when the last entries are bookkeeping that hangs from an older place than the newest
    conversation entry, written by a process that was behind, the newest conversation entry counts.
    """
    if not lines:
        return None
    last = len(lines) - 1
    newest = last
    while newest >= 0 and not is_conversation(lines, newest):
        newest -= 1
    if newest in (last, -1):
        return last
    later = {lines.heads[i].id: i for i in range(newest + 1, last + 1)}
    target = lines.heads[newest].id
    walked: set[int] = set()
    position = last
    while position not in walked:
        walked.add(position)
        parent = lines.heads[position].parentId
        if parent is None:
            break
        following = later.get(parent)  # first, since the later entry of an id counts
        if following is None:
            if parent == target:
                return last
            break
        position = following
    return newest


@frozen(slots=True)
class Path:
    """Positions from root to leaf. `broken_by` names a missing parent, `cycle_at` a repeated id."""

    positions: tuple[int, ...]
    broken_by: str | None = None
    cycle_at: str | None = None


def path_to(heads: Sequence[Head], index: Mapping[str, int], leaf: int | None) -> Path:
    """The branch of an entry: parent links followed until a root, a missing parent or a cycle."""
    if leaf is None:
        return Path(())
    found: list[int] = []
    seen: set[int] = set()
    position = leaf
    while True:
        if position in seen:
            return Path(tuple(reversed(found)), cycle_at=heads[position].id)
        seen.add(position)
        found.append(position)
        parent = heads[position].parentId
        if parent is None:
            return Path(tuple(reversed(found)))
        above = index.get(parent)
        if above is None:
            return Path(tuple(reversed(found)), broken_by=parent)
        position = above


@frozen(slots=True)
class Node:
    """An entry in the tree with its children, oldest first, and its label."""

    entry: Entry
    children: tuple[Node, ...] = ()
    label: str | None = None


def labels_of(lines: Lines) -> dict[str, str]:
    """Target id to label; the latest label entry counts, an empty one removes."""
    labels: dict[str, str] = {}
    for i, head in enumerate(lines.heads):
        if head.type != "label":
            continue
        entry = lines.entry(i)
        target, label = entry.text("targetId"), entry.text("label")
        if label:
            labels[target] = label
        else:
            labels.pop(target, None)
    return labels


def name_of(lines: Lines) -> str | None:
    """The session's display name: the last `session_info` entry counts, an empty name clears it."""
    for i in range(len(lines) - 1, -1, -1):
        if lines.heads[i].type == "session_info":
            return " ".join(lines.entry(i).text("name").split()) or None
    return None


def build_tree(lines: Lines) -> tuple[Node, ...]:
    """All entries as trees. Roots have no parent, an unknown parent, or themselves as parent.

    Children are sorted by time. Entries in a cycle hang from the first of them in the file.
    """
    index = lines.index()
    kept = set(index.values())
    children: dict[int | None, list[int]] = {}
    for i, head in enumerate(lines.heads):
        if i not in kept:
            continue
        parent = index.get(head.parentId) if head.parentId is not None else None
        children.setdefault(None if parent == i else parent, []).append(i)
    labels = labels_of(lines)
    roots = children.get(None, [])
    reached = _reachable(roots, children)
    for i in sorted(kept):  # what no root reaches is a cycle: enter it at its first entry
        if i not in reached:
            roots.append(i)
            reached |= _reachable([i], children)
    return _nodes(lines, roots, children, labels)


def _reachable(roots: Sequence[int], children: Mapping[int | None, list[int]]) -> set[int]:
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        position = stack.pop()
        if position not in seen:
            seen.add(position)
            stack.extend(children.get(position, ()))
    return seen


def _nodes(
    lines: Lines,
    roots: Sequence[int],
    children: Mapping[int | None, list[int]],
    labels: Mapping[str, str],
) -> tuple[Node, ...]:
    """Nodes bottom-up without recursion, since a conversation is one very deep branch."""
    order: list[int] = []
    seen: set[int] = set()
    stack = list(reversed(roots))
    while stack:
        position = stack.pop()
        if position in seen:
            continue
        seen.add(position)
        order.append(position)
        stack.extend(children.get(position, ()))
    built: dict[int, Node] = {}
    for position in reversed(order):
        entry = lines.entry(position)
        below = [built[c] for c in children.get(position, ()) if c in built]
        below.sort(key=lambda node: node.entry.timestamp)
        built[position] = Node(entry, tuple(below), labels.get(entry.id))
    return tuple(built[r] for r in roots)
