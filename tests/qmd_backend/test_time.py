"""Deadlines, killing, cancelling, long updates. What is asserted is what is left behind, never how long it took."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attrs import evolve
from qmd_programs import Scene, is_gone, wait_for

from lamella.errors import MemoryUnavailable
from lamella.types.memory import SearchQuery
from lamella_qmd_backend.config import Limits, Update
from lamella_qmd_backend.guard import Guard
from lamella_qmd_backend.runner import Runner

SHORT = Limits(timeout_seconds=0.7)


@pytest.mark.parametrize("mode", ["hang", "hang_ignore_term"])
def test_a_search_that_hangs_is_killed(scene: Scene, mode: str) -> None:
    scene.qmd.play(mode, "query")
    backend = scene.another(limits=SHORT)
    with pytest.raises(MemoryUnavailable, match="qmd query took longer than 1 s"):
        backend.search(SearchQuery("pool"))
    assert is_gone(scene.qmd.calls[-1]["pid"])


def test_a_worker_of_the_launcher_is_killed_too(scene: Scene) -> None:
    scene.qmd.play("worker", "query")
    with pytest.raises(MemoryUnavailable, match="took longer"):
        scene.another(limits=SHORT).search(SearchQuery("pool"))
    wait_for(lambda: is_gone(scene.qmd.worker))


def test_a_whole_answer_counts_though_the_program_goes_on(scene: Scene) -> None:
    scene.qmd.play("hang_after", "query")
    found = scene.another(limits=SHORT).search(SearchQuery("pool"))
    assert [hit.path for hit in found.hits] == ["memory/2026-03-02.md"]
    assert is_gone(scene.qmd.calls[-1]["pid"])


def test_pipes_that_another_process_holds_are_not_waited_for(scene: Scene) -> None:
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    scene.qmd.play("worker_after", "query")
    assert scene.paths("pool") == ["memory/2026-03-02.md"]
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
    os.kill(scene.qmd.worker, signal.SIGKILL)


def test_the_time_of_a_search_is_within_what_memory_allows(scene: Scene) -> None:
    scene.qmd.play("hang", "query")
    scene.context = evolve(scene.context, search_seconds=0.5)
    with pytest.raises(MemoryUnavailable, match="took longer than 0 s"):
        scene.another(limits=Limits(timeout_seconds=600.0)).search(SearchQuery("pool"))


def test_closing_ends_a_search(scene: Scene) -> None:
    scene.qmd.play("hang", "query")
    failed: list[BaseException] = []

    def search() -> None:
        try:
            scene.search("pool")
        except MemoryUnavailable as error:
            failed.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    wait_for(lambda: bool(scene.qmd.calls_of("query")[1:]))
    scene.backend.close()
    thread.join(30)
    assert failed and is_gone(scene.qmd.calls[-1]["pid"])
    with pytest.raises(MemoryUnavailable, match="closed"):
        scene.search("pool")


RUNS_FOR_EVER = """
import os, sys, threading
from pathlib import Path
from lamella_qmd_backend.runner import Runner

code = "import os, time; from pathlib import Path; Path('pid').write_text(str(os.getpid())); time.sleep(3600)"
run = Runner([sys.executable, "-c", code], os.environ, Path.cwd()).run
"""
IN_THE_MIDDLE = RUNS_FOR_EVER + "run(timeout=600, cap=100)"
IN_A_THREAD = (
    RUNS_FOR_EVER
    + """
threading.Thread(target=lambda: run(timeout=600, cap=100), daemon=True).start()
while not Path("pid").exists() or not Path("pid").read_text():
    pass
"""
)


@pytest.mark.parametrize(
    ("code", "sent"),
    [
        (IN_THE_MIDDLE, signal.SIGINT),
        (IN_THE_MIDDLE, signal.SIGTERM),
        (IN_THE_MIDDLE, signal.SIGKILL),
        (IN_A_THREAD, None),
    ],
)
def test_the_program_ends_with_its_caller(tmp_path: Path, code: str, sent: signal.Signals | None) -> None:
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE)
    wait_for(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()))
    if sent is not None:
        process.send_signal(sent)
    _, told = process.communicate(timeout=60)
    assert (b"KeyboardInterrupt" in told) == (sent == signal.SIGINT)
    wait_for(lambda: is_gone(int((tmp_path / "pid").read_text())))


LEAVES_A_WORKER = """
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print(worker.pid, flush=True)
sys.exit(3)
"""


def test_a_worker_that_outlives_its_launcher_is_killed(tmp_path: Path) -> None:
    runner = Runner([sys.executable, "-c", LEAVES_A_WORKER], dict(os.environ), tmp_path)
    ran = runner.run(timeout=60, cap=100)
    assert ran.code == 3 and not ran.timed_out
    wait_for(lambda: is_gone(int(ran.out)))


NOBODY = 1 << 30  # more than any process has as its number


def test_a_guard_that_was_killed_is_replaced() -> None:
    guard = Guard()
    guard.add(NOBODY)
    first = guard._shell
    assert first is not None
    first.kill()
    first.wait(30)
    guard.remove(NOBODY)
    with subprocess.Popen(["sleep", "3600"], start_new_session=True) as program:
        guard.add(program.pid)
        guard.close()
        assert program.wait(30) == -signal.SIGKILL


def test_output_that_floods_is_drained_and_cut(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('e' * 5_000_000 + 'end'); print('o' * 5_000_000)"
    runner = Runner([sys.executable, "-c", code], dict(os.environ), tmp_path)
    kept = runner.run(timeout=60, cap=1000, tail=True)
    assert (kept.code, len(kept.out), kept.err[-3:]) == (0, 1000, "end") and len(kept.err) == 4096
    cut = runner.run(timeout=60, cap=1000)
    assert cut.overflowed and len(cut.out) == 1000


# --- updates -------------------------------------------------------------------------------------------------


def test_a_search_does_not_wait_for_an_update(scene: Scene) -> None:
    scene.qmd.play("slow", "update")
    scene.write("memory/new.md", "the okapi eats figs\n")
    first = scene.search("okapi")
    wait_for((scene.qmd.folder / "updating").exists)
    second = scene.search("pool")
    assert [h.path for h in first.hits] == ["memory/new.md"] and not first.in_step
    assert [h.path for h in second.hits] == ["memory/2026-03-02.md"]
    scene.qmd.play("", "update")
    wait_for(lambda: scene.search("okapi").in_step)
    assert scene.paths("okapi") == ["memory/new.md"]


def test_the_first_index_is_waited_for_within_bounds(make: Callable[..., Scene]) -> None:
    scene = make(update=Update(first_wait_seconds=0.2))
    scene.write("memory/a.md", "the okapi eats figs\n")
    scene.qmd.play("slow", "update")
    with pytest.raises(MemoryUnavailable, match="still being made"):
        scene.search("okapi")
    scene.qmd.play("", "update")
    wait_for(lambda: (scene.state / "qmd" / "state.json").exists())
    assert scene.paths("okapi") == ["memory/a.md"]
    assert len(scene.qmd.calls_of("update")) == 1


def test_a_first_index_that_another_program_makes_is_waited_for(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.write("memory/a.md", "the okapi eats figs\n")
    scene.qmd.play("slow", "update")
    with ThreadPoolExecutor() as pool:
        made = pool.submit(scene.another().sync)
        wait_for((scene.qmd.folder / "updating").exists)
        found = pool.submit(scene.another().search, SearchQuery("okapi"))
        with pytest.raises(TimeoutError):
            found.result(0.3)
        scene.qmd.play("", "update")
        assert made.result(30).added == 1
        assert [hit.path for hit in found.result(30).hits] == ["memory/a.md"]
    assert len(scene.qmd.calls_of("update")) == 1


def test_searches_soon_after_an_update_begin_none(make: Callable[..., Scene]) -> None:
    scene = make(update=Update(debounce_seconds=3600.0))
    scene.write("memory/a.md", "the okapi eats figs\n")
    for number in range(3):
        assert scene.search("okapi").hits
        scene.write(f"memory/{number}.md", "more about the okapi\n")
    scene.close()
    assert len(scene.qmd.calls_of("update")) == 1


def test_an_update_is_made_at_intervals_though_nothing_changed(scene: Scene) -> None:
    backend = scene.another(update=Update(debounce_seconds=0.0, interval_minutes=0.0001))
    backend.search(SearchQuery("pool"))
    wait_for(lambda: len(scene.qmd.calls_of("update")) == 2)


def test_nothing_changed_starts_no_update(scene: Scene) -> None:
    assert scene.search("pool").in_step
    assert scene.backend.sync().unchanged == 2
    assert len(scene.qmd.calls_of("update")) == 1
