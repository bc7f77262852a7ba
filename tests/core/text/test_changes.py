"""The changes between two versions of a text rebuild the one from the other, also for long files."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lamella.text.changes import Change, agreeing, line_changes

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "- d", "烧水"]), max_size=25)


def applied(old: list[str], new: list[str], changes: list[Change]) -> list[str]:
    """`new` made of what stays of `old` and of what the changes bring."""
    out: list[str] = []
    done = 0
    for change in changes:
        out += old[done : change.old_start] + new[change.new_start : change.new_end]
        done = change.old_end
    return out + old[done:]


@given(LINES, LINES)
def test_changes_make_the_new_text_of_the_old_one(old: list[str], new: list[str]) -> None:
    changes = line_changes(old, new)
    assert applied(old, new, changes) == new
    assert bool(changes) == (old != new)
    for one, following in pairwise(changes):
        assert one.old_end < following.old_start
        assert following.old_start - one.old_end == following.new_start - one.new_end
    for change in changes:
        assert (change.old_start, change.new_start) != (change.old_end, change.new_end)


def test_lines_that_stay_between_two_changes_are_no_change() -> None:
    old = ["# notes", "", "- tea at four", "- boiler", "", "- 会议在周五"]
    new = ["# notes", "", "- tea at five", "- boiler", "", "- 会议在周四", "- new"]
    assert line_changes(old, new) == [Change(2, 3, 2, 3), Change(5, 6, 5, 7)]


def test_a_long_file_in_another_order_is_compared_in_the_time_it_takes_to_sort_it() -> None:
    old = [f"- fact {i}" for i in range(100_000)]
    new = old[:]
    random.Random(1).shuffle(new)
    assert applied(old, new, line_changes(old, new)) == new


def test_agreeing_counts_up_to_the_first_difference() -> None:
    assert agreeing("abcx", "abdx") == 2
    assert agreeing("", "a") == 0
