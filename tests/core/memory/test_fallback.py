"""Holds: a search that the first backend cannot answer is answered by the other one in the same call, with the
reason; the first is left alone then, one caller tries it, and it serves again without a restart."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from backends import (
    EMPTY,
    FAILS,
    HANGS,
    HINT,
    NAME,
    NOT_OPENED,
    OK,
    RAISES,
    REASON,
    WRONG,
    Mood,
    ProbedBackend,
    ShakyBackend,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from notes import make_workspace

from lamella.errors import MemoryUnavailable, UsageError
from lamella.memory.cooling import CoolingFile
from lamella.memory.fallback import FallbackBackend
from lamella.memory.pairing import Lazily
from lamella.types.events import Notice
from lamella.types.memory import BackendContext, MemoryResults, ProbingBackend, SearchQuery, SyncProgress

NOW = 1_780_000_000.0
OKAPI = SearchQuery("okapi")


class Rig:
    """A wrapper over two small backends, with a clock that a test moves."""

    def __init__(self, folder: Path, kind: type[ShakyBackend] = ShakyBackend, *, seconds: float = 5.0) -> None:
        self.first, self.second = Mood(), Mood()
        self.now = NOW
        self.notices: list[Notice] = []
        self.folder = folder
        self.kind = kind
        workspace = make_workspace(folder, {"MEMORY.md": "the okapi likes figs\n"})
        self.context = BackendContext("main", workspace, folder / "state")
        self.wrapper = self.make(seconds=seconds)

    def make(self, **options: Any) -> FallbackBackend:
        """One more wrapper on the same state, as another process has it."""
        return FallbackBackend(
            Lazily(NAME, self._open_first),
            Lazily("plain", lambda: ShakyBackend(self.context, self.second)),
            CoolingFile(self.folder / "state", NAME),
            clock=lambda: self.now,
            **{"seconds": 5.0, "told": self.notices.append, **options},
        )

    def _open_first(self) -> ShakyBackend:
        self.first.note("open")
        if self.first.now == NOT_OPENED:
            raise MemoryUnavailable(REASON, hint=HINT)
        return self.kind(self.context, self.first)

    def search(self) -> MemoryResults:
        return self.wrapper.search(OKAPI)

    def codes(self) -> list[str]:
        return [notice.code for notice in self.notices]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


# --- failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mood", "reason"),
    [
        (FAILS, REASON),
        (RAISES, f"ValueError: {REASON} second line 第二行"),
        (WRONG, "shaky: it answered with list, expected MemoryResults"),
        (NOT_OPENED, REASON),
    ],
)
def test_the_other_one_answers_the_same_call(rig: Rig, mood: str, reason: str) -> None:
    rig.first.now = mood
    found = rig.search()
    assert [hit.path for hit in found.hits] == ["MEMORY.md"]
    assert found.degraded is not None
    assert found.degraded.to_json() == {
        "reason": reason,
        "answered_by": "plain",
        "since": NOW,
        "retry_at": NOW + 60,
    }


def test_a_reason_is_one_line_without_secrets(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-abcdefghij0123456789abcd"

    def search(_backend: ShakyBackend, _query: SearchQuery) -> MemoryResults:
        raise ValueError(
            f"GET https://me:{key}@example.org/?api_key={key}\n\x1b[31mfailed\x1b[0m \ud83d" + "!" * 100_000
        )

    monkeypatch.setattr(ShakyBackend, "search", search)
    wrapper = rig.make()
    with pytest.raises(MemoryUnavailable) as told:
        wrapper.search(OKAPI)
    reason = str(told.value)
    stored = (rig.folder / "state" / "memory-fallback.json").read_text()
    for text in (reason, stored, *(notice.message for notice in rig.notices)):
        assert "https://me:***@example.org/" in text
        assert "abcdefghij" not in text
        assert "\x1b" not in text
        assert "\n" not in text
        assert len(text) < 1_000


def test_one_that_hangs_is_given_up(tmp_path: Path) -> None:
    rig = Rig(tmp_path, seconds=0.2)
    rig.first.now = HANGS
    found = rig.search()
    assert found.degraded is not None
    assert found.degraded.reason == "shaky: it did not answer within 0.2 s"
    rig.now += 60
    again = rig.search().degraded  # its thread still waits for it: not asked twice at once
    assert again is not None
    assert again.reason == "shaky: it has not answered an earlier question yet"
    assert again.retry_at == rig.now + 120
    assert rig.first.searches() == rig.first.most_at_once == 1
    rig.first.now = OK
    rig.first.release.set()

    def is_back() -> bool:
        rig.now += 600  # a try that comes before the thread has ended counts as one more failure
        return rig.search().degraded is None

    wait_for(is_back)


def test_an_empty_answer_is_an_answer(rig: Rig) -> None:
    rig.first.now = EMPTY
    found = rig.search()
    assert (found.hits, found.degraded, found.backend) == ((), None, NAME)
    assert rig.second.calls == []


def test_it_is_left_alone_until_it_has_cooled_down(rig: Rig) -> None:
    rig.first.now = FAILS
    waits = []
    for _ in range(3):
        asked = rig.first.searches()
        why = rig.search().degraded
        assert why is not None and why.retry_at is not None
        waits.append(why.retry_at - rig.now)
        rig.now = why.retry_at - 0.5
        alone = rig.search().degraded
        assert alone is not None
        assert alone == why
        assert rig.first.searches() == asked + 1
        rig.now = why.retry_at
    assert waits == [60, 120, 240]
    rig.first.now = OK
    assert rig.search().degraded is None
    rig.first.now = FAILS
    why = rig.search().degraded
    assert why is not None
    assert (why.since, why.retry_at) == (rig.now, rig.now + 60)


def test_both_failing_is_told_with_the_first_reason_first(rig: Rig) -> None:
    rig.first.now, rig.second.now = FAILS, RAISES
    for _ in range(2):  # in the call that fails, and while it cools down
        with pytest.raises(MemoryUnavailable) as caught:
            rig.search()
        assert str(caught.value).startswith(f"{REASON}; plain: ValueError: {REASON}")
        assert caught.value.hint == HINT


def test_a_fault_of_the_caller_is_no_failure(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (UsageError("no such workspace"), futures.CancelledError()):

        def refuse(_backend: ShakyBackend, _query: SearchQuery, error: Exception = error) -> MemoryResults:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(ShakyBackend, "search", refuse)
            with pytest.raises(type(error)):
                rig.search()
        assert rig.search().degraded is None


def test_closing_in_the_middle_of_a_search_is_no_failure(rig: Rig) -> None:
    rig.first.now = HANGS
    with futures.ThreadPoolExecutor(1) as pool:
        searching = pool.submit(rig.search)
        wait_for(lambda: rig.first.searches() == 1)
        rig.wrapper.close()
        rig.first.release.set()
        with pytest.raises(MemoryUnavailable, match="let go"):
            searching.result(10)
    rig.first.now = OK
    assert rig.make().search(OKAPI).degraded is None


def test_ctrl_c_is_no_failure(tmp_path: Path) -> None:
    make_workspace(tmp_path, {"MEMORY.md": "okapi\n"})
    program = """
        import sys, threading
        from pathlib import Path
        from test_fallback import HANGS, OK, Rig, wait_for

        def tell_when_it_is_asked():
            wait_for(lambda: rig.first.searches() == 1)
            print("asked", flush=True)

        rig = Rig(Path(sys.argv[1]), seconds=60)
        rig.first.now = HANGS
        threading.Thread(target=tell_when_it_is_asked).start()
        try:
            rig.search()
        except KeyboardInterrupt:
            rig.first.now = OK
            sys.exit(7 if rig.make().status()["fallback"] is None else 8)
    """
    begin = f"import sys; sys.path[:] = {[str(Path(__file__).parent), *sys.path]!r}\n"
    process = subprocess.Popen(
        [sys.executable, "-c", begin + textwrap.dedent(program), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 7


# --- several callers --------------------------------------------------------------------------------------


def test_while_one_tries_the_others_go_on(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.first.now = FAILS
    rig.search()
    rig.now += 60
    rig.first.now = HANGS
    with futures.ThreadPoolExecutor(1) as pool:
        trying = pool.submit(rig.search)
        wait_for(lambda: rig.first.searches() == 2)
        why = rig.search().degraded
        assert why is not None
        assert why.reason == REASON
        other = rig.make().search(OKAPI).degraded
        assert other is not None
        assert other.answered_by == "plain"
        rig.first.now = OK
        rig.first.release.set()
        trying.result(10)
    assert rig.first.searches() == 2


def test_callers_of_a_sound_backend_wait_for_each_other(rig: Rig) -> None:
    with futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: rig.search(), range(40)))
    assert {(results.backend, results.degraded) for results in found} == {(NAME, None)}
    assert rig.first.most_at_once == 1


def test_who_cannot_wait_any_longer_is_answered_by_the_other_one(tmp_path: Path) -> None:
    rig = Rig(tmp_path, seconds=3)
    rig.first.now = HANGS
    with futures.ThreadPoolExecutor(1) as pool:
        slow = pool.submit(rig.search)
        wait_for(lambda: rig.first.searches() == 1)
        why = rig.search().degraded
        assert why is not None
        assert (why.reason, why.retry_at) == ("shaky is busy with another question", None)
        rig.first.now = OK
        rig.first.release.set()
        assert slow.result(10).degraded is not None
    assert rig.first.searches() == 1


# --- probing ----------------------------------------------------------------------------------------------


def test_the_one_who_tries_probes_first(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ProbedBackend)
    rig.search()
    rig.first.now = FAILS
    rig.search()
    assert rig.first.calls == ["open", "search", "search"]
    rig.now += 60
    rig.search()
    assert rig.first.calls[3:] == ["probe"]
    rig.first.now = OK
    rig.now += 120
    assert rig.search().degraded is None
    assert rig.first.calls[4:] == ["probe", "search"]


def test_a_probe_that_is_asked_for_does_not_wait(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ProbedBackend)
    assert isinstance(rig.wrapper, ProbingBackend)
    rig.first.now = FAILS
    with pytest.raises(MemoryUnavailable, match=REASON) as caught:
        rig.wrapper.probe()
    assert caught.value.hint == HINT
    assert rig.search().degraded is not None
    rig.first.now = OK
    rig.wrapper.probe()
    assert rig.search().degraded is None


def test_to_open_it_proves_little(rig: Rig) -> None:
    rig.wrapper.probe()
    rig.first.now = FAILS
    rig.search()
    rig.first.now = OK
    with pytest.raises(MemoryUnavailable, match="asked again at a later search"):
        rig.wrapper.probe()
    assert rig.search().degraded is not None
    rig.now += 60
    assert rig.search().degraded is None
    rig.wrapper.probe()


# --- sync -------------------------------------------------------------------------------------------------


def test_both_are_kept_in_step(rig: Rig) -> None:
    assert rig.wrapper.sync().problem == ""
    assert (rig.first.calls, rig.second.calls) == (["open", "sync"], ["sync"])


def test_a_sync_that_fails_does_not_change_who_answers(rig: Rig) -> None:
    rig.first.now = FAILS
    assert rig.wrapper.sync().problem == f"not up to date: {REASON}"
    rig.first.now = OK
    assert rig.search().degraded is None
    rig.second.now = FAILS
    assert rig.wrapper.sync().problem == f"not up to date: plain: {REASON}"
    rig.first.now = FAILS
    with pytest.raises(MemoryUnavailable, match=f"^{REASON}; plain: {REASON}, too$"):
        rig.wrapper.sync()


def test_while_it_cools_down_it_is_not_synced_unless_forced(rig: Rig) -> None:
    rig.first.now = FAILS
    rig.search()
    rig.first.now = OK
    assert rig.wrapper.sync().problem == f"not up to date: {REASON}"
    assert rig.first.calls == ["open", "search"]
    assert rig.wrapper.sync(force=True).problem == ""
    assert rig.search().degraded is None


def test_a_listener_that_ends_a_sync_is_no_failure(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    class Enough(Exception):
        pass

    def listen(_progress: SyncProgress) -> None:
        raise Enough

    def sync(_backend: ShakyBackend, *, force: bool, progress: Callable[[SyncProgress], None]) -> None:
        progress(SyncProgress("files", 1, 2))

    monkeypatch.setattr(ShakyBackend, "sync", sync)
    with pytest.raises(Enough):
        rig.wrapper.sync(progress=listen)


# --- telling ----------------------------------------------------------------------------------------------


def test_status_names_who_answers(rig: Rig) -> None:
    assert rig.wrapper.status() == {"backend": NAME, "oil": "full", "active": NAME, "fallback": None}
    rig.first.now = FAILS
    rig.search()
    status = rig.wrapper.status()
    assert (status["backend"], status["active"]) == (NAME, "plain")
    assert status["fallback"] == {"from": NAME, "reason": REASON, "since": NOW, "retryAt": NOW + 60}
    assert rig.first.calls == ["open", "status", "search"]


def test_status_looks_for_itself(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ProbedBackend)
    rig.first.now = FAILS
    assert rig.wrapper.status()["active"] == "plain"
    assert rig.search().degraded is not None
    assert "search" not in rig.first.calls


def test_facts_that_cannot_be_had_are_no_failure(rig: Rig) -> None:
    rig.first.now = RAISES
    status = rig.wrapper.status()
    assert (status["active"], status["fallback"]) == (NAME, None)
    assert "ValueError" in status["problem"]


def test_each_change_is_told_once(rig: Rig) -> None:
    rig.search()
    rig.first.now = FAILS
    for _ in range(3):
        rig.search()
    (told,) = rig.notices
    assert told.message == f"memory is searched by plain: {REASON}; shaky is asked again in 60 s ({HINT})"
    assert told.data == {
        "backend": NAME,
        "active": "plain",
        "fallback": {"from": NAME, "reason": REASON, "since": NOW, "retryAt": NOW + 60},
    }
    rig.now += 60
    rig.search()
    rig.first.now = OK
    rig.now += 120
    rig.search()
    rig.search()
    assert rig.codes() == ["memory_fallback", "memory_fallback", "memory_restored"]


def test_another_process_knows_and_tells_it_too(rig: Rig) -> None:
    rig.first.now = FAILS
    rig.search()
    other = rig.make()
    why = other.search(OKAPI).degraded
    assert why is not None
    assert why.since == NOW
    assert rig.first.searches() == 1
    assert rig.codes() == ["memory_fallback"] * 2
    rig.first.now = OK
    rig.now += 60
    assert rig.search().degraded is None
    assert other.search(OKAPI).degraded is None
    assert rig.codes()[2:] == ["memory_restored"] * 2


def test_a_listener_that_fails_is_no_reason_to_fail(rig: Rig) -> None:
    def listen(_notice: Notice) -> None:
        raise RuntimeError("nobody at home")

    rig.first.now = FAILS
    assert rig.make(told=listen).search(OKAPI).hits


def test_a_long_reason_is_cut(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_backend: ShakyBackend, _query: SearchQuery) -> MemoryResults:
        raise MemoryUnavailable("段" * 5000)

    with monkeypatch.context() as patch:
        patch.setattr(ShakyBackend, "search", fail)
        with pytest.raises(MemoryUnavailable) as caught:
            rig.search()
    assert len(str(caught.value)) < 700


def test_closing_closes_what_was_opened(rig: Rig) -> None:
    rig.wrapper.close()
    assert (rig.first.calls, rig.second.calls) == ([], [])
    other = rig.make()
    other.search(OKAPI)
    other.close()
    other.close()
    assert rig.first.calls == ["open", "search", "close", "close"]


# --- everything at once -----------------------------------------------------------------------------------


class Machine(RuleBasedStateMachine):
    """Two processes over one state; a model of the states says who may be asked."""

    @initialize()
    def begin(self) -> None:
        import tempfile

        self.scratch = tempfile.TemporaryDirectory()
        self.rig = Rig(Path(self.scratch.name), ProbedBackend)
        self.wrappers = [self.rig.wrapper, self.rig.make()]
        self.failures = 0
        self.retry_at = 0.0

    @rule(mood=st.sampled_from([OK, FAILS, RAISES, EMPTY, WRONG, NOT_OPENED]))
    def change_mood(self, mood: str) -> None:
        self.rig.first.now = mood

    @rule(seconds=st.sampled_from([0.5, 30, 59, 60, 119, 600]))
    def wait(self, seconds: float) -> None:
        self.rig.now += seconds

    @rule(who=st.integers(0, 1))
    def search(self, who: int) -> None:
        may_ask = not self.failures or self.rig.now >= self.retry_at
        before = len(self.rig.first.calls)
        found = self.wrappers[who].search(OKAPI)
        asked = self.rig.first.calls[before:]
        assert bool(asked) == may_ask
        assert asked.count("probe") <= (1 if self.failures else 0)
        if may_ask:
            self._expect(found)
        assert (found.degraded is not None) == bool(self.failures)
        if found.degraded is not None:
            assert found.hits
            assert found.degraded.retry_at == self.retry_at

    def _expect(self, found: MemoryResults) -> None:
        opened = "open" not in self.rig.first.calls[-1:]
        fails = {FAILS, RAISES, WRONG} | (set() if opened else {NOT_OPENED})
        if self.rig.first.now in fails:
            self.failures += 1
            self.retry_at = self.rig.now + min(60 * 2 ** (self.failures - 1), 600)
        else:
            self.failures = 0

    @rule(who=st.integers(0, 1))
    def sync(self, who: int) -> None:
        before = len(self.rig.first.calls)
        report = self.wrappers[who].sync()
        assert bool(report.problem) or not self.failures
        if self.failures:
            assert self.rig.first.calls[before:] == []

    @invariant()
    def never_two_at_once(self) -> None:
        if hasattr(self, "rig"):
            assert self.rig.first.most_at_once <= 1

    def teardown(self) -> None:
        if hasattr(self, "rig"):
            for wrapper in self.wrappers:
                wrapper.close()
            self.scratch.cleanup()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_many_threads_while_it_breaks_and_heals(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ProbedBackend)
    wrappers = [rig.wrapper, rig.make()]
    stop = threading.Event()
    found: list[MemoryResults] = []

    def ask(number: int) -> None:
        while not stop.is_set():
            found.append(wrappers[number % 2].search(OKAPI))

    with futures.ThreadPoolExecutor(6) as pool:
        asking = [pool.submit(ask, number) for number in range(6)]
        for mood in (FAILS, OK, RAISES, OK, WRONG, OK):
            rig.first.now = mood
            for _ in range(5):
                rig.now += 200
                time.sleep(0.01)
        rig.now += 600
        count = len(found)
        wait_for(lambda: len(found) > count + 20)
        stop.set()
        for each in asking:
            each.result(30)
    assert all(results.hits for results in found)
    assert {results.backend for results in found} == {NAME}
    assert {results.degraded is None for results in found} == {True, False}
    rig.now += 600
    assert rig.search().degraded is None


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)
