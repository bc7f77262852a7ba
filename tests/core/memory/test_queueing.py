"""Holds: syncs of a backend run one after another; one that hangs is waited for once, and what came while one was
under way is done after it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from lamella.memory.errand import StillRunning
from lamella.memory.queueing import SyncQueue
from lamella.plugins.threads import start


class Syncs:
    """Counts syncs; the first one goes on until it may end."""

    def __init__(self) -> None:
        self.runs: list[bool] = []
        self.most_at_once = 0
        self.begun, self.may_end = threading.Event(), threading.Event()
        self._now = 0

    def __call__(self, again: bool) -> int:
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        self.runs.append(again)
        if len(self.runs) == 1:
            self.begun.set()
            assert self.may_end.wait(30)
        self._now -= 1
        return len(self.runs)


def hanging(queue: SyncQueue, syncs: Callable[[bool], int]) -> Future[int]:
    first = start(lambda: queue.run(syncs))
    assert isinstance(syncs, Syncs)
    assert syncs.begun.wait(30)
    return first


def test_whoever_waited_in_vain_is_served_by_the_one_that_goes_on() -> None:
    queue, syncs = SyncQueue(0.05), Syncs()
    first = hanging(queue, syncs)
    for _ in range(3):
        with pytest.raises(StillRunning):
            queue.run(syncs)
    syncs.may_end.set()
    assert first.result(30) == 1
    assert syncs.runs == [False, True]
    assert queue.run(syncs) == 3
    assert syncs.runs == [False, True, False]


def test_a_short_one_is_waited_for() -> None:
    queue, syncs = SyncQueue(60), Syncs()
    first = hanging(queue, syncs)
    second = start(lambda: queue.run(syncs))
    syncs.may_end.set()
    assert sorted((first.result(30), second.result(30))) == [1, 2]
    assert (syncs.runs, syncs.most_at_once) == ([False, False], 1)


def test_what_a_sync_raises_is_raised_and_the_next_one_runs() -> None:
    queue = SyncQueue(60)

    def fails(_again: bool) -> int:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            queue.run(fails)
    assert queue.run(lambda again: 5) == 5
