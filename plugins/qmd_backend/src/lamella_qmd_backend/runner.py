"""Running qmd: whole process groups, both pipes drained, a deadline, and a cap on what is kept.

`qmd` is a launcher that starts a second process, which holds the same pipes. So every run has a session
of its own, and all of it is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from attrs import define, field

from lamella_qmd_backend.faults import QmdFailed, Ran, not_started
from lamella_qmd_backend.guard import GUARD

INDEX = ("--index", "index")  # else a folder `.qmd` above the working folder would take its place
_GRACE = 1.0  # seconds that a killed group has to go, and pipes have to close after their program ended
_POLL = 0.1
_STDERR_BYTES = 4096


class Runner:
    """Runs a program with arguments in a private folder. Several threads may use it; `stop` ends all runs."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self.command = tuple(command)
        self._environment = dict(environment)
        self._folder = folder
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, *arguments: str, timeout: float, cap: int, tail: bool = False) -> Ran:
        """Run to the end, at most `timeout` seconds; then the group is killed.

        stdout is kept up to `cap` bytes; more ends the run (`overflowed`), unless only the `tail` is
        wanted. Raises `QmdFailed` when it cannot be started. Whatever interrupts the caller kills the
        group and goes on.
        """
        begun = time.monotonic()
        process = self.start(*arguments)
        out: _Sink = _Tail(cap) if tail else _Head(cap)
        err = _Tail(_STDERR_BYTES)
        assert process.stdout is not None and process.stderr is not None
        timed_out = True
        try:
            timed_out = not _drain(process, begun + timeout, out, err)
        finally:
            self.finish(process)
        return Ran(
            process.returncode if process.returncode is not None else -signal.SIGKILL,
            out.text(),
            err.text(),
            timed_out,
            out.overflowed,
            time.monotonic() - begun,
        )

    def start(self, *arguments: str, talk: bool = False) -> subprocess.Popen[bytes]:
        """Start the program; with `talk` its stdin is a pipe and its stderr is dropped. `finish` ends it."""
        with self._lock:
            if self._stopped:
                raise QmdFailed("the memory was closed")
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                process = subprocess.Popen(
                    [*self.command, *arguments],
                    stdin=subprocess.PIPE if talk else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL if talk else subprocess.PIPE,
                    cwd=self._folder,
                    env=self._environment,
                    start_new_session=True,
                    bufsize=0,
                )
            except (OSError, ValueError) as error:
                raise not_started(self.command[0], error) from error
            self._running.add(process)
            _ALIVE.add(process)
            GUARD.add(process.pid)
        return process

    def finish(self, process: subprocess.Popen[bytes]) -> None:
        """Kill what is left of a process's group, reap it, and close its pipes."""
        try:
            _kill(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
        finally:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            with self._lock:
                self._running.discard(process)
                _ALIVE.discard(process)
                GUARD.remove(process.pid)

    def stop(self) -> None:
        """Kill all that runs; nothing starts afterwards."""
        with self._lock:
            self._stopped = True
            running = tuple(self._running)
        for process in running:
            _kill(process)


def exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """How a process has ended, negative for a signal; None while it runs.

    It is not reaped where the system allows that, so that its number stays that of its group, which can be killed.
    """
    if process.returncode is not None or not hasattr(os, "waitid"):
        return process.poll()
    try:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return process.poll()
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def ends_before(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Wait for a process, without reaping it. False: the deadline came first."""
    pause = 0.0005
    while exit_code(process) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(2 * pause, _POLL)
    return True


def _kill_all() -> None:
    for process in tuple(_ALIVE):
        _kill(process)


# A thread that keeps no program from ending may be in the middle of a run when it ends.
_ALIVE: set[subprocess.Popen[bytes]] = set()
atexit.register(_kill_all)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group, unless it has been reaped."""
    if process.returncode is not None:
        return
    if os.name == "nt":  # pragma: no cover
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _drain(process: subprocess.Popen[bytes], deadline: float, out: _Sink, err: _Sink) -> bool:
    """Read both pipes until they close and the process ends. False: the deadline came first."""
    assert process.stdout is not None and process.stderr is not None
    if os.name == "nt":  # pragma: no cover - pipes cannot be selected there
        return _drain_with_threads(process, deadline, out, err)
    with selectors.DefaultSelector() as selector:
        for pipe, sink in ((process.stdout, out), (process.stderr, err)):
            selector.register(pipe, selectors.EVENT_READ, sink)
        ended = None
        while selector.get_map():
            now = time.monotonic()
            if now >= deadline:
                return False
            ready = selector.select(min(_POLL, deadline - now))
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                if data:
                    key.data.feed(data)
                else:
                    selector.unregister(key.fileobj)
            if out.overflowed:
                return True
            if not ready and exit_code(process) is not None:
                ended = ended or now
                if now - ended > _GRACE:  # a process that outlived it holds the pipes
                    return True
    return ends_before(process, deadline)


def _drain_with_threads(
    process: subprocess.Popen[bytes], deadline: float, out: _Sink, err: _Sink
) -> bool:  # pragma: no cover - Windows
    try:
        data, problems = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    out.feed(data)
    err.feed(problems)
    return True


class _Sink(Protocol):
    """Where output goes."""

    @property
    def overflowed(self) -> bool: ...

    def feed(self, data: bytes) -> None: ...

    def text(self) -> str: ...


@define(slots=True)
class _Head:
    """Keeps the beginning, and knows when there was more."""

    cap: int
    data: bytearray = field(factory=bytearray)
    overflowed: bool = False

    def feed(self, data: bytes) -> None:
        self.data += data
        if len(self.data) > self.cap:
            self.overflowed = True
            del self.data[self.cap :]

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@define(slots=True)
class _Tail:
    """Keeps the end."""

    cap: int
    data: bytearray = field(factory=bytearray)

    @property
    def overflowed(self) -> bool:
        return False

    def feed(self, data: bytes) -> None:
        self.data += data
        if len(self.data) > self.cap:
            del self.data[: -self.cap]

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")
