"""Which lines changed between two versions of a text.

A patience diff: lines that each version has exactly once are the fixed points, and what lies between two
of them is compared from both ends. The time is n log n, also for long files that were rewritten.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from operator import eq
from typing import TypeVar

from attrs import frozen

T = TypeVar("T", str, bytes)


@frozen(slots=True)
class Change:
    """`old[old_start:old_end]` became `new[new_start:new_end]`; one of them may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def line_changes(old: Sequence[T], new: Sequence[T]) -> list[Change]:
    """The changes that make `new` of `old`, in order, with equal lines between them."""
    head = agreeing(old, new)
    tail = agreeing(reversed(old[head:]), reversed(new[head:]))
    return list(_changes(old, new, head, len(old) - tail, len(new) - tail))


def agreeing(one: Iterable[T], other: Iterable[T]) -> int:
    """How many items two sequences have in common at their beginning."""
    return sum(1 for _ in takewhile(bool, map(eq, one, other)))


def _changes(old: Sequence[T], new: Sequence[T], head: int, old_end: int, new_end: int) -> Iterator[Change]:
    """The changes of `old[head:old_end]` and `new[head:new_end]`."""
    i = j = head
    for fixed_old, fixed_new in [*_fixed_points(old, new, head, old_end, new_end), (old_end, new_end)]:
        first = agreeing(old[i:fixed_old], new[j:fixed_new])
        last = agreeing(reversed(old[i + first : fixed_old]), reversed(new[j + first : fixed_new]))
        change = Change(i + first, fixed_old - last, j + first, fixed_new - last)
        if change.old_start < change.old_end or change.new_start < change.new_end:
            yield change
        i, j = fixed_old + 1, fixed_new + 1


def _fixed_points(old: Sequence[T], new: Sequence[T], head: int, old_end: int, new_end: int) -> list[tuple[int, int]]:
    """Places of lines that occur once in both ranges, as many as keep their order."""
    in_old, in_new = Counter(old[head:old_end]), Counter(new[head:new_end])
    places = {new[j]: j for j in range(head, new_end) if in_new[new[j]] == 1}
    pairs = [(i, places[old[i]]) for i in range(head, old_end) if in_old[old[i]] == 1 and old[i] in places]
    return _longest_rising(pairs)


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs, in order, whose second numbers rise."""
    ends: list[int] = []  # the smallest second number that ends a rising part of each length
    at: list[int] = []  # which pair that is
    before: list[int] = []  # the pair before each pair in its part
    for index, (_, second) in enumerate(pairs):
        length = bisect_left(ends, second)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [second]
        at[length : length + 1] = [index]
    found: list[tuple[int, int]] = []
    index = at[-1] if at else -1
    while index >= 0:
        found.append(pairs[index])
        index = before[index]
    return found[::-1]
