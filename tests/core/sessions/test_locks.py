"""Locks (case K139; rows G2 to G10 of the edge cases of session stores): dead owners never block, live ones always do,
and reclaiming is free of races."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lamella.errors import SessionLocked
from lamella.sessions import locks
from lamella.sessions.locks import PathLock, holder, process_start_time

HOLD = """
import sys, time
from pathlib import Path
from lamella.sessions.locks import PathLock
lock = PathLock(Path(sys.argv[1])); lock.acquire(); print("held", flush=True); time.sleep(float(sys.argv[2]))
"""

APPEND = """
import sys
from pathlib import Path
from lamella.sessions.locks import PathLock
target = Path(sys.argv[1])
for _ in range(int(sys.argv[2])):
    with PathLock(target, timeout=30):
        value = int(target.read_text() or 0)
        target.write_text(str(value + 1))
"""


def child(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def iso(delta: timedelta) -> str:
    return (datetime.now(UTC) + delta).isoformat().replace("+00:00", "Z")


def left_over(path: Path, content: str, *, age: float = 0.0) -> Path:
    lock = path.with_name(path.name + ".lock")
    lock.write_text(content)
    os.utime(lock, (time.time() - age, time.time() - age))
    return lock


@pytest.mark.parametrize(
    ("payload", "age"),
    [
        pytest.param(lambda: {"pid": dead_pid(), "createdAt": iso(timedelta(seconds=-10))}, 0, id="g3 dead pid"),
        pytest.param(
            lambda: {"pid": os.getppid(), "createdAt": iso(timedelta(days=-10)), "startTime": 1},
            0,
            id="g4 recycled pid",
        ),
        pytest.param(lambda: {"pid": dead_pid(), "createdAt": iso(timedelta(days=2))}, 0, id="future"),
        pytest.param(lambda: {"pid": os.getpid(), "createdAt": iso(timedelta())}, 0, id="g6 own pid, not held"),
        pytest.param(lambda: "not json", 3600, id="garbage"),
        pytest.param(lambda: "", 3600, id="zero bytes, old"),
        pytest.param(lambda: {"pid": os.getppid(), "createdAt": iso(timedelta(hours=-1))}, 0, id="too old"),
    ],
)
def test_left_overs_do_not_block(payload, age: float, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    target = tmp_path / "s.jsonl"
    content = payload()
    lock = left_over(target, content if isinstance(content, str) else json.dumps(content), age=age)
    with PathLock(target, timeout=2):
        assert json.loads(lock.read_text())["pid"] == os.getpid()
    assert not lock.exists()


def test_g5_a_fresh_unreadable_lock_is_respected_for_a_while(tmp_path: Path) -> None:
    target = tmp_path / "s.jsonl"
    left_over(target, "")
    with pytest.raises(SessionLocked):
        PathLock(target, timeout=0.2).acquire()
    left_over(target, "", age=30)
    with PathLock(target, timeout=2):
        pass


def test_g9_a_foreign_live_owner_blocks_and_is_named(tmp_path: Path) -> None:
    target = tmp_path / "s.jsonl"
    content = {"pid": os.getppid(), "createdAt": iso(timedelta()), "starttime": process_start_time(os.getppid())}
    lock = left_over(target, json.dumps(content))
    with pytest.raises(SessionLocked, match=f"{target} is locked by process {os.getppid()}"):
        PathLock(target, timeout=0.2).acquire()
    assert json.loads(lock.read_text()) == content


def test_a_live_child_blocks_until_it_is_killed(tmp_path: Path) -> None:
    target = tmp_path / "s.jsonl"
    process = child(HOLD, str(target), "60")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(SessionLocked, match=f"process {process.pid}"):
            PathLock(target, timeout=0.2).acquire()
        process.kill()
        process.wait()
        with PathLock(target, timeout=5):
            pass
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_g7_two_objects_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    target = tmp_path / "s.jsonl"
    with PathLock(target), pytest.raises(SessionLocked):
        PathLock(target, timeout=0.1).acquire()


def test_g2_processes_reclaiming_the_same_stale_lock_lose_nothing(tmp_path: Path) -> None:
    target = tmp_path / "counter"
    target.write_text("0")
    left_over(target, json.dumps({"pid": dead_pid(), "createdAt": iso(timedelta())}))
    processes = [child(APPEND, str(target), "50") for _ in range(2)]
    for process in processes:
        assert process.wait(60) == 0
        assert process.stdout is not None
        process.stdout.close()
    assert target.read_text() == "100"
    assert not target.with_name("counter.lock").exists()


def test_g8_a_link_to_the_folder_leads_to_the_same_lock(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with PathLock(tmp_path / "link" / "s.jsonl"):
        assert [f.name for f in (tmp_path / "real").glob("*.lock")] == ["s.jsonl.lock"]
        with pytest.raises(SessionLocked):
            PathLock(tmp_path / "real" / "s.jsonl", timeout=0).acquire()


def test_g10_a_terminated_owner_blocks_nobody(tmp_path: Path) -> None:
    target = tmp_path / "s.jsonl"
    process = child(HOLD, str(target), "60")
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.terminate()
    assert process.wait() == -signal.SIGTERM
    process.stdout.close()
    with PathLock(target, timeout=0):
        pass
    assert not target.with_name("s.jsonl.lock").exists()


def test_a_glance_at_a_lock_tells_its_holder_and_takes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "s.jsonl"
    assert holder(target) is None
    process = child(HOLD, str(target), "60")
    assert process.stdout is not None
    process.stdout.readline()
    found = holder(target)
    assert found is not None
    assert found.pid == process.pid
    process.kill()
    process.wait()
    process.stdout.close()
    assert holder(target) is None
    assert target.with_name("s.jsonl.lock").exists()  # only whoever takes the lock removes it


def test_where_start_times_are_not_told_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS and Windows."""
    monkeypatch.setattr(locks, "process_start_time", lambda _pid: None)
    target, owner = tmp_path / "s.jsonl", {"pid": os.getppid(), "starttime": 1}
    left_over(target, json.dumps({**owner, "createdAt": iso(timedelta(minutes=-29))}))
    with pytest.raises(SessionLocked):
        PathLock(target, timeout=0).acquire()
    lock = left_over(target, json.dumps({**owner, "createdAt": iso(timedelta(minutes=-31))}))
    with PathLock(target, timeout=0):
        assert "starttime" not in json.loads(lock.read_text())
