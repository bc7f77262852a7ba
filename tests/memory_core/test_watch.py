"""Holds: a memory that follows its files knows at any moment whether something has changed, looks at the
files no more when nothing has, and gets over folders that go, come back, or cannot be followed."""

import contextlib
import errno
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from agents import open_agent, scripted
from attrs import evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from notes import make_workspace, memory_context

from lamella.errors import MemoryUnavailable
from lamella.text.days import unix_ms
from lamella.types.memory import Provenance, SearchQuery, SyncReport, WatchEvent
from lamella_memory_core import Config, MemoryCore
from lamella_memory_core.following.folders import Root
from lamella_memory_core.following.inotify import Inotify
from lamella_memory_core.following.reports import Reports
from lamella_memory_core.following.upkeep import TRUST_SECONDS, Freshness, Schedule, Upkeep
from lamella_memory_core.following.watch import Source, Watch, open_source
from lamella_memory_core.index.synced import note_synced
from lamella_memory_core.service import Memory

QUICK = Config(embedder="none", watch_debounce_ms=50)


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens in another thread; fails when it never does."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.01)


# --- following folders ------------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path, {"MEMORY.md": "- okapi\n", "memory/a.md": "zebra\n"})


def opened(workspace: Path, source: Callable[[Sequence[Root]], Source] = open_source) -> Watch:
    names = frozenset(("MEMORY.md", "memory.md", "memory"))
    watch = Watch([Root(workspace, names), Root(workspace / "memory")], source)
    watch.begin()
    assert (watch.active, watch.problem) == (True, "")
    return watch


@pytest.fixture
def watch(workspace: Path) -> Iterator[Watch]:
    watch = opened(workspace)
    yield watch
    watch.close()


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs inotify")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": lambda ws: write(ws / "memory/a.md", "gnu\n"),
    "append": lambda ws: (ws / "memory/a.md").open("a").write("more\n"),
    "new": lambda ws: write(ws / "memory/b.md", "gnu\n"),
    "replace": lambda ws: (write(ws / "elsewhere.md", "gnu\n"), (ws / "elsewhere.md").replace(ws / "memory/a.md")),
    "rename": lambda ws: (ws / "memory/a.md").rename(ws / "memory/c.md"),
    "delete": lambda ws: (ws / "memory/a.md").unlink(),
    "curated": lambda ws: write(ws / "MEMORY.md", "- gnu\n"),
    "new folder": lambda ws: write(ws / "memory/deep/er/b.md", "gnu\n"),
    "folder gone": lambda ws: shutil.rmtree(ws / "memory"),
    "workspace gone": lambda ws: shutil.rmtree(ws),
}


@linux
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_known_at_once(workspace: Path, watch: Watch, change: Callable[[Path], object]) -> None:
    assert watch.exact and not watch.changed()
    change(workspace)
    assert watch.changed()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_elsewhere_every_change_is_known_soon(workspace: Path, change: Callable[[Path], object]) -> None:
    watch = opened(workspace, Reports)
    assert not watch.exact
    change(workspace)
    until(watch.changed)
    watch.close()


@linux
def test_what_is_no_memory_is_no_change(workspace: Path, watch: Watch) -> None:
    write(workspace / "AGENTS.md", "rules")
    write(workspace / "src/main.py", "print()")
    (workspace / "memory/a.md").read_text()
    assert not watch.changed()


@linux
def test_new_folders_are_followed_too(workspace: Path, watch: Watch) -> None:
    (workspace / "memory/deep/er").mkdir(parents=True)
    assert watch.changed() and not watch.changed()
    write(workspace / "memory/deep/er/b.md", "gnu\n")
    assert watch.changed()


@linux
@pytest.mark.parametrize("gone", ["", "memory"])
def test_folders_that_come_back_are_followed_again(workspace: Path, watch: Watch, gone: str) -> None:
    shutil.rmtree(workspace / gone)
    assert watch.changed()
    write(workspace / "memory/b.md", "gnu\n")
    assert watch.changed()
    assert not watch.changed()
    write(workspace / "memory/b.md", "kudu\n")
    assert watch.changed()


def test_without_a_workspace_nothing_is_certain(workspace: Path, watch: Watch) -> None:
    shutil.rmtree(workspace)
    assert watch.changed() and watch.changed() and not watch.active


def test_before_and_after_nothing_is_certain(workspace: Path, watch: Watch) -> None:
    watch.close()
    assert watch.changed() and not watch.active
    watch.begin()
    assert not watch.changed()
    assert Watch([Root(workspace)]).changed()


def test_what_cannot_be_followed_is_said_and_tried_again(workspace: Path) -> None:
    now, answers = [0.0], iter([OSError(28, "no watches left"), OSError(28, "no watches left")])

    def source(roots: Sequence[Root]) -> Source:
        for error in answers:
            raise error
        return open_source(roots)

    watch = Watch([Root(workspace)], source, clock=lambda: now[0])
    watch.begin()
    assert watch.changed() and watch.changed()
    assert (watch.active, watch.exact, "no watches left" in watch.problem) == (False, False, True)
    now[0] = 60.0
    assert watch.changed() and not watch.active
    now[0] = 119.0
    assert watch.changed() and not watch.active
    now[0] = 120.0
    assert watch.changed()
    assert (watch.active, watch.problem) == (True, "")
    watch.close()


@linux
def test_the_system_says_what_is_wanting(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.get_errno", lambda: errno.ENOSPC)
    monkeypatch.setattr(Root, "folders", lambda _self: iter([workspace / "none"]))
    with pytest.raises(OSError, match="max_user_watches"):
        Inotify([Root(workspace)])


@linux
def test_folders_that_a_scan_ignores_are_not_followed(workspace: Path) -> None:
    (workspace / "memory/node_modules/x").mkdir(parents=True)
    watch = Watch([Root(workspace / "memory", ignored=frozenset({"node_modules"}))])
    watch.begin()
    write(workspace / "memory/node_modules/x/readme.md", "gnu\n")
    assert not watch.changed()
    write(workspace / "memory/b.md", "gnu\n")
    assert watch.changed()
    watch.close()


operations = st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.booleans()), max_size=12)


@linux
@settings(deadline=None, max_examples=30)
@given(operations)
@example([("folder gone", True), ("workspace gone", False), ("replace", True), ("curated", True)])  # inodes come again
def test_no_change_is_ever_missed(sequence: list[tuple[str, bool]]) -> None:
    """A look is made whenever something may have changed; then the files are always as they were last seen."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_workspace(Path(folder), {"MEMORY.md": "- okapi\n", "memory/a.md": "zebra\n"})
        watch = opened(workspace)
        seen = snapshot(workspace)
        for name, ask in sequence:
            with contextlib.suppress(FileNotFoundError):
                CHANGES[name](workspace)
            if ask and watch.changed():
                seen = snapshot(workspace)
            assert not ask or seen == snapshot(workspace)
        watch.close()


def snapshot(workspace: Path) -> dict[str, tuple[str, int]]:
    found = [*workspace.glob("*.md"), *workspace.glob("memory/**/*.md")]
    return {str(p): (p.read_text(), p.stat().st_mtime_ns) for p in found if p.name != "elsewhere.md"}


# --- when a sync is due, and when none is needed ------------------------------------------------------------


def test_a_sync_waits_for_quiet_but_not_for_ever() -> None:
    schedule = Schedule(quiet=1.5, last_sync=0.0)
    assert schedule.due(100.0, 0) is None
    schedule.changed(100.0)
    schedule.changed(101.0)
    assert [schedule.due(t, 0) for t in (101.5, 102.4, 102.5)] == [None, None, "change"]
    for tenths in range(1010, 1160):
        schedule.changed(tenths / 10)
    assert schedule.due(115.9, 0) == "change"
    schedule.synced(116.0)
    assert [schedule.due(t, 60.0) for t in (117.0, 175.9, 176.0)] == [None, None, "interval"]


moments = st.lists(st.floats(0, 100), min_size=1, max_size=20).map(sorted)


@given(moments, st.floats(0.1, 5))
def test_every_change_is_taken_in_within_ten_quiet_times(changes: list[float], quiet: float) -> None:
    schedule = Schedule(quiet=quiet, last_sync=0.0)
    for moment in changes:
        schedule.changed(moment)
    assert schedule.due(changes[-1] + quiet * 1.01, 0) == "change"
    assert schedule.due(changes[0] + quiet * 10.1, 0) == "change"


looks = st.lists(st.sampled_from(["change", "look", "confirm"]), max_size=20)


@given(looks)
def test_an_index_is_fresh_only_after_a_look_that_began_after_the_last_change(steps: list[str]) -> None:
    freshness, mark, pending, fresh = Freshness(), None, True, False
    for step in steps:
        if step == "change":
            freshness.note_change()
            pending, fresh = True, False
        elif step == "look":
            mark, pending = freshness.mark(), False
        elif mark is not None:
            freshness.confirm(mark, 0.0)
            fresh = fresh or not pending
        assert freshness.holds(1.0) == fresh
        assert not freshness.holds(TRUST_SECONDS)


# --- searches -----------------------------------------------------------------------------------------------


@pytest.fixture
def memory(workspace: Path) -> Iterator[Memory]:
    opened = Memory(memory_context(workspace), QUICK)
    yield opened
    opened.close()


def followed(memory: Memory) -> None:
    """Search until the files are followed and nothing is new."""

    def calm() -> bool:
        memory.search(SearchQuery("okapi"))
        return bool(memory.status()["watch"]["active"])

    until(calm)
    memory.search(SearchQuery("okapi"))


def paths(memory: Memory, words: str) -> set[str]:
    return {hit.path for hit in memory.search(SearchQuery(words)).hits}


def test_one_search_follows_nothing(memory: Memory) -> None:
    memory.search(SearchQuery("okapi"))
    assert memory.status()["watch"] == {
        "wanted": True,
        "active": False,
        "problem": None,
        "debounceMs": 50,
        "intervalMinutes": 0.0,
    }


@linux
def test_warm_searches_look_at_no_file(memory: Memory) -> None:
    followed(memory)
    for _ in range(3):
        found = memory.search(SearchQuery("okapi"))
        assert (found.degraded, found.in_step, [h.path for h in found.hits]) == (None, False, ["MEMORY.md"])


def test_warm_searches_miss_nothing(memory: Memory, workspace: Path) -> None:
    followed(memory)
    for i in range(30):
        write(workspace / f"memory/n{i % 3}.md", f"token{i}\n")
        assert paths(memory, f"token{i}") == {f"memory/n{i % 3}.md"}
    (workspace / "memory/n1.md").unlink()
    assert paths(memory, "token28") == set()
    memory.append("- token99", path="memory/n5.md", provenance=Provenance("test"))
    assert paths(memory, "token99") == {"memory/n5.md"}


def test_an_index_that_vanishes_is_made_anew(memory: Memory, tmp_path: Path) -> None:
    followed(memory)
    for path in tmp_path.glob("state/memory.sqlite*"):
        path.unlink()
    assert paths(memory, "zebra") == {"memory/a.md"}
    (tmp_path / "state/memory.sqlite").write_bytes(b"not a database" * 99)
    assert paths(memory, "zebra") == {"memory/a.md"}


def test_a_workspace_that_is_replaced_is_found_again(memory: Memory, workspace: Path) -> None:
    followed(memory)
    workspace.rename(workspace.with_name("old"))
    write(workspace / "memory/b.md", "gnu\n")
    assert (paths(memory, "gnu"), paths(memory, "zebra")) == ({"memory/b.md"}, set())


def test_without_following_every_search_looks(workspace: Path) -> None:
    memory = Memory(memory_context(workspace), Config(embedder="none", watch=False))
    for _ in range(3):
        assert memory.search(SearchQuery("okapi")).in_step
    assert not memory.status()["watch"]["wanted"]
    assert "plugins.config.memory-core.watch = true" in [off["turnOn"] for off in memory.status()["off"]]
    memory.close()


def test_searches_need_not_sync(workspace: Path) -> None:
    memory = Memory(memory_context(workspace), Config(embedder="none", sync_on_search=False))
    assert paths(memory, "okapi") == set()
    memory.sync()
    assert paths(memory, "okapi") == {"MEMORY.md"}
    memory.close()


# --- in the background ----------------------------------------------------------------------------------------


def test_changes_are_taken_in_without_a_search(memory: Memory, workspace: Path) -> None:
    followed(memory)
    write(workspace / "memory/b.md", "gnu\n")
    until(lambda: memory.backend.status()["files"] == 3)
    write(workspace / "memory/deep/c.md", "gnu\n")
    until(lambda: memory.backend.status()["files"] == 4)


def test_a_sync_in_the_background(memory: Memory) -> None:
    assert memory.status()["lastSync"] is None
    memory.sync_in_background()
    until(lambda: memory.status()["lastSync"] is not None)
    assert memory.status()["files"] == 2


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_new_session_brings_the_index_up_to_date(tmp_path: Path, workspace: Path, wanted: bool) -> None:
    section = "plugins.config.memory-core"
    settings = {f"{section}.embedder": "none", f"{section}.sync_on_session_start": wanted}
    async with open_agent(tmp_path, scripted(["Hello."]), settings=settings, plugins=[MemoryCore]) as runtime:
        await runtime.ask("Hello!")
        memory = runtime.require_memory()
        if wanted:
            until(lambda: memory.status()["lastSync"] is not None)
        assert memory.status()["files"] == (2 if wanted else 0)


class Told(list[WatchEvent]):
    """Runs `watch` in a thread and keeps what it tells."""

    def __init__(self, run: Callable[[Callable[[WatchEvent], None], threading.Event], None]) -> None:
        super().__init__()
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=run, args=(self.append, self.stopped))
        self.thread.start()

    def end(self) -> None:
        self.stopped.set()
        self.thread.join(20)
        assert not self.thread.is_alive()


def test_watching_tells_each_sync(memory: Memory, workspace: Path) -> None:
    told = Told(memory.watch)
    until(lambda: len(told) == 1)
    write(workspace / "memory/b.md", "gnu\n")
    until(lambda: len(told) >= 2)
    shutil.rmtree(workspace)
    until(lambda: any(event.error for event in told))
    write(workspace / "MEMORY.md", "- gnu\n")
    until(lambda: told[-1].report is not None and told[-1].report.seen == 1)
    told.end()
    assert [told[0].reason, told[1].reason] == ["start", "change"]
    assert told[1].report is not None and (told[1].report.added, told[1].report.seen) == (1, 3)
    assert [e.reason for e in told if "does not exist" in e.error]


def test_a_sync_at_intervals() -> None:
    reports: list[int] = []

    def sync(_progress: object) -> SyncReport:
        reports.append(1)
        if len(reports) == 2:
            raise MemoryUnavailable("busy")
        return SyncReport("ws", 0)

    upkeep = Upkeep(sync, None, quiet=0.02, interval=0.01)
    told = Told(upkeep.run)
    until(lambda: len(told) >= 4)
    told.end()
    assert [(e.reason, e.error) for e in told[:3]] == [("start", ""), ("interval", "busy"), ("interval", "")]


def test_stopping_ends_a_sync_in_work(workspace: Path) -> None:
    for i in range(50):
        write(workspace / f"memory/n{i}.md", f"token{i}\n")
    memory = Memory(memory_context(workspace), QUICK)
    stopped = threading.Event()
    stopped.set()
    memory.watch(lambda _event: pytest.fail("no sync came to its end"), stopped)
    assert memory.status()["files"] == 0
    memory.close()


def test_an_index_that_another_process_changed_is_not_trusted(workspace: Path, tmp_path: Path) -> None:
    """As when it is used for another workspace, or without extra paths."""
    write(tmp_path / "more/extra.md", "okapi\n")
    config = evolve(QUICK, extra_paths=("../more",))
    memory = Memory(memory_context(workspace, config=config), config)
    mine = [hit.path for hit in memory.search(SearchQuery("okapi")).hits]
    assert "../more/extra.md" in mine
    memory.search(SearchQuery("okapi"))
    until(lambda: memory.status()["watch"]["active"])
    write(tmp_path / "b/ws/memory/theirs.md", "okapi\n")
    for other, seen in ((tmp_path / "b/ws", ["memory/theirs.md"]), (workspace, None)):
        context = evolve(memory_context(workspace), workspace=other)
        passing = Memory(context, QUICK)
        hits = [hit.path for hit in passing.search(SearchQuery("okapi")).hits]
        passing.close()
        assert seen is None or hits == seen
        assert [hit.path for hit in memory.search(SearchQuery("okapi")).hits] == mine
    memory.close()


# --- what is known afterwards -----------------------------------------------------------------------------------


def test_status_tells_of_the_last_sync_in_later_processes(workspace: Path, tmp_path: Path) -> None:
    (workspace / "memory/x.md").mkdir()
    first = Memory(memory_context(workspace), QUICK)
    first.sync()
    later = Memory(memory_context(workspace), QUICK)
    assert later.status()["lastSync"] > 0
    assert later.status()["lastError"] == "memory/x.md: is a folder, expected a file"
    write(workspace / "memory/b.md", "gnu\n")
    (workspace / "memory/a.md").unlink()
    assert later.status()["behind"] == 2
    (workspace / "memory/x.md").rmdir()
    later.sync()
    assert (later.status()["behind"], later.status()["lastError"]) == (0, None)
    (tmp_path / "state/memory-sync.json").write_text("not json")
    assert (later.status()["lastSync"], later.status()["lastError"]) == (None, None)
    first.close()
    later.close()


def test_a_clock_that_was_set_back_does_not_keep_the_time_of_the_last_sync(workspace: Path, tmp_path: Path) -> None:
    memory = Memory(memory_context(workspace), QUICK)
    ahead = unix_ms() + 86_400_000
    note_synced(tmp_path / "state", "sqlite", at=ahead)
    memory.sync()
    assert 0 < memory.status()["lastSync"] < ahead
    memory.close()
