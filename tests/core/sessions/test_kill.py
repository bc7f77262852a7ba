"""A writer killed at any moment loses nothing that it has acknowledged."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from builders import user

from lamella.sessions.transcript import SessionFile
from lamella.types.messages import text_of

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


def write_until_killed(path: Path, acknowledge: int, run: int) -> None:
    """Append messages of changing length and report each one once it is stored."""
    file = SessionFile.open(path) if path.exists() else SessionFile.create(path)
    number = 0
    while True:
        text = f"{run}.{number} " + "wörter 数据 " * (number % 40)
        file.append_message(user(text))
        os.write(acknowledge, f"{run}.{number}\n".encode())
        number += 1


def killed_run(path: Path, run: int, seconds: float) -> list[str]:
    """Acknowledged texts of a writer that was killed after a while."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # pragma: no cover - the child never returns
        try:
            os.close(read)
            write_until_killed(path, write, run)
        finally:
            os._exit(1)
    os.close(write)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode().split()


def check_kills(path: Path, count: int) -> None:
    moments = random.Random(7)
    acknowledged: list[str] = []
    for run in range(count):
        acknowledged += killed_run(path, run, moments.uniform(0.0, 0.03))
        if not path.exists():
            continue
        stored = [text_of(m.content).split(" ")[0] for m in SessionFile.open(path).context().messages]  # type: ignore[union-attr]
        at = iter(stored)
        assert all(text in at for text in acknowledged), "an acknowledged message is missing or out of order"
        assert len(stored) == len(set(stored))
    assert acknowledged


def test_kills(tmp_path: Path) -> None:
    check_kills(tmp_path / "s.jsonl", 25)


@pytest.mark.slow
def test_kills_at_500_moments(tmp_path: Path) -> None:
    for part in range(10):
        check_kills(tmp_path / f"s{part}.jsonl", 50)
