"""Holds: a backend that failed is left alone for 60 s, doubled up to 10 minutes; one caller tries then, among all
processes; whatever lies in the file, and whether or not it can be written, the state is sound."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.memory.cooling import LONGEST_SECONDS, NAME, Cooling, CoolingFile, read_cooling
from lamella.memory.gate import Gate, Leave, Pair, cooled

PAIR = Pair("qmd", "sqlite")
NOW = 1_780_000_000.0


class Clock:
    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def gate(folder: Path, clock: Clock, backend: str = "qmd") -> Gate:
    return Gate(CoolingFile(folder, backend), Pair(backend, "sqlite"), claim_seconds=15, clock=clock)


def test_waits_double_up_to_ten_minutes() -> None:
    state, waits = None, []
    for _ in range(6):
        state = cooled(PAIR, state, "broken", "", NOW if state is None else state.retry_at)
        waits.append(state.retry_at - state.failed_at)
    assert waits == [60, 120, 240, 480, 600, 600]
    assert state is not None
    assert (state.since, state.failures) == (NOW, 6)


@given(st.integers(1, 10_000), st.floats(0.1, 86_400))
def test_no_wait_is_longer_than_it_should_be(failures: int, first: float) -> None:
    before = Cooling("qmd", "sqlite", "broken", NOW, NOW, NOW, failures)
    after = cooled(PAIR, before, "broken", "", NOW, first)
    assert first - 1e-6 <= after.retry_at - NOW <= max(LONGEST_SECONDS, first) + 1e-6


def test_one_caller_tries_and_the_others_are_refused(tmp_path: Path) -> None:
    clock = Clock()
    mine, other = gate(tmp_path, clock), gate(tmp_path, clock)
    assert mine.ask() == other.ask() == Leave()
    mine.failed(Leave(), "broken", "oil it")
    refused = other.ask().refused
    assert refused is not None
    assert (refused.reason, refused.hint, refused.retry_at) == ("broken", "oil it", NOW + 60)
    clock.now += 60
    leave = mine.ask()
    assert leave.claim is not None
    assert other.ask().refused == leave.claim
    mine.succeeded(leave)
    assert other.ask() == Leave()
    assert not (tmp_path / NAME).exists()


def test_a_caller_that_died_while_it_tried_is_in_nobodys_way(tmp_path: Path) -> None:
    clock = Clock()
    gate(tmp_path, clock).failed(Leave(), "broken")
    clock.now += 60
    died = gate(tmp_path, clock).ask()
    clock.now += 15
    later = gate(tmp_path, clock)
    leave = later.ask()
    assert leave.claim is not None
    later.failed(leave, "broken still")
    gate(tmp_path, clock).succeeded(died)  # it was only very slow: what came after holds
    state = later.state()
    assert state is not None
    assert (state.reason, state.failures, state.since) == ("broken still", 2, NOW)


def test_two_calls_that_fail_at_once_are_one_failure(tmp_path: Path) -> None:
    clock = Clock()
    first, second = gate(tmp_path, clock), gate(tmp_path, clock)
    leaves = first.ask(), second.ask()
    first.failed(leaves[0], "broken")
    state = second.failed(leaves[1], "broken, too")
    assert state is not None
    assert (state.failures, state.reason) == (1, "broken")


def test_a_call_that_found_nothing_out_lets_the_next_one_try(tmp_path: Path) -> None:
    clock = Clock()
    own = gate(tmp_path, clock)
    own.failed(Leave(), "broken")
    clock.now += 60
    leave = own.ask()
    own.returned(leave)
    assert own.state() == leave.before
    assert own.ask().claim is not None


def test_to_ask_early_prolongs_nothing(tmp_path: Path) -> None:
    clock = Clock()
    own = gate(tmp_path, clock)
    before = own.failed(Leave(), "broken")
    clock.now += 30
    leave = own.ask(now_too=True)
    assert (leave.before, leave.early) == (before, True)
    assert own.failed(leave, "broken still") == own.state() == before
    clock.now += 30
    leave = own.ask(now_too=True)
    assert not leave.early
    after = own.failed(leave, "broken still")
    assert after is not None
    assert (after.failures, after.retry_at) == (2, clock.now + 120)


def test_a_clock_that_was_set_back_makes_nobody_wait(tmp_path: Path) -> None:
    clock = Clock()
    gate(tmp_path, clock).failed(Leave(), "broken")
    clock.now -= 86_400
    assert gate(tmp_path, clock).ask().claim is not None


def test_states_of_another_backend_say_nothing(tmp_path: Path) -> None:
    clock = Clock()
    gate(tmp_path, clock).failed(Leave(), "broken")
    other = gate(tmp_path, clock, "bm25")
    assert other.ask() == Leave()
    other.failed(Leave(), "broken, too")
    assert gate(tmp_path, clock).ask() == Leave()


GOOD = {
    "backend": "qmd",
    "answeredBy": "sqlite",
    "reason": "连接池 broken",
    "since": NOW,
    "failedAt": NOW,
    "retryAt": NOW + 60,
    "failures": 1,
    "hint": "",
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    gate(tmp_path, Clock()).failed(Leave(), "连接池 broken")
    assert json.loads((tmp_path / NAME).read_text("utf-8")) == GOOD


@pytest.mark.parametrize(
    "content",
    ["", "{", "null", "[]", '"qmd"', json.dumps({"backend": "qmd"}), json.dumps({**GOOD, "since": "早"}), "\x00" * 99,
     json.dumps({**GOOD, "failures": 1e999}), json.dumps({**GOOD, "since": None}),
     json.dumps({**GOOD, "retryAt": float("nan")}), json.dumps({**GOOD, "retryAt": float("inf")}),
     json.dumps({**GOOD, "retryAt": 1e18}), json.dumps({**GOOD, "since": -1.0})],
)  # fmt: skip
def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / NAME).write_text(content)
    assert read_cooling(tmp_path, "qmd") is None
    own = gate(tmp_path, Clock())
    assert own.ask() == Leave()
    assert own.failed(Leave(), "broken") is not None
    assert read_cooling(tmp_path, "qmd") is not None


def test_where_nothing_can_be_written_the_process_knows_by_itself(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    clock = Clock()
    own = gate(tmp_path / "state", clock)
    own.failed(Leave(), "broken")
    assert own.ask().refused is not None
    clock.now += 60
    leave = own.ask()
    assert leave.claim is not None
    assert own.ask().refused is not None
    own.succeeded(leave)
    assert own.ask() == Leave()


def _claims(folder: Path, begin: multiprocessing.synchronize.Event, won: multiprocessing.Queue[int]) -> None:
    own = gate(folder, Clock(NOW + 61))
    begin.wait()
    won.put(sum(own.ask().claim is not None for _ in range(50)))


def test_of_several_processes_one_tries(tmp_path: Path) -> None:
    gate(tmp_path, Clock()).failed(Leave(), "broken")
    context = multiprocessing.get_context("spawn")
    begin, won = context.Event(), context.Queue()
    processes = [context.Process(target=_claims, args=(tmp_path, begin, won)) for _ in range(3)]
    for process in processes:
        process.start()
    begin.set()
    assert sorted(won.get(timeout=60) for _ in processes) == [0, 0, 1]
    for process in processes:
        process.join()


def test_a_time_that_is_years_ahead_is_none_to_wait_for(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(json.dumps({**GOOD, "failedAt": 0, "since": 0, "retryAt": NOW + 9e7}))
    own = gate(tmp_path, Clock())
    assert own.ask().claim is not None
