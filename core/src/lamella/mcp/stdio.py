"""Running over standard input and output: one client, the process that has started this one.

Nothing but the protocol goes to standard output: for everybody else it leads to stderr, and standard input is
empty, also for children. The end of input ends the server, and so does a signal.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from lamella.mcp.lines import Lines
from lamella.mcp.server import MemoryServer

# How long requests that have been read may still take when the input ends.
GRACE_SECONDS = 5.0
# A pipe that is ready takes so much without waiting.
_PIECE = 4096 if os.name == "nt" else select.PIPE_BUF


class Stop:
    """Told once that the server is to end; reading and writing wait for it beside their pipes."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._wake, self._waker = os.pipe()

    def tell(self) -> None:
        if not self._told.is_set():
            self._told.set()
            os.write(self._waker, b"x")

    @property
    def told(self) -> bool:
        return self._told.is_set()

    def unless_told(self, *, reading: int = -1, writing: int = -1) -> bool:
        """Wait until a descriptor is ready; False when the server is to end first."""
        if os.name == "nt":  # pragma: no cover - it waits for sockets only
            return not self.told
        readable = [self._wake, *([reading] if reading >= 0 else [])]
        ready = select.select(readable, [writing] if writing >= 0 else [], [])
        return not self.told and bool(ready[0] or ready[1])


class Input(io.RawIOBase):
    """Standard input, which ends also when the server is to end."""

    def __init__(self, descriptor: int, stop: Stop) -> None:
        self._descriptor = descriptor
        self._stop = stop

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = os.read(self._descriptor, len(buffer)) if self._stop.unless_told(reading=self._descriptor) else b""
        buffer[: len(data)] = data
        return len(data)


class Output(io.RawIOBase):
    """Standard output, of which every line ends before another begins. A client that has gone, or reads no more
    when the server ends, is not waited for."""

    def __init__(self, descriptor: int, stop: Stop) -> None:
        self._descriptor = descriptor
        self._stop = stop
        self._one_writes = threading.Lock()
        self._within_a_line = False
        self._waiting: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        given = memoryview(data).cast("B")
        with self._one_writes:
            self._write_all(given)
            if given:
                self._within_a_line = given[-1] != ord("\n")
            if not self._within_a_line:
                self._write_all(memoryview(b"".join(self._waiting)))
                self._waiting.clear()
        return len(given)

    def say(self, line: bytes) -> None:
        """Write a whole line beside the SDK, which writes a long one in pieces."""
        with self._one_writes:
            if self._within_a_line:
                self._waiting.append(line)
            else:
                self._write_all(memoryview(line))

    def _write_all(self, rest: memoryview) -> None:
        while rest and self._stop.unless_told(writing=self._descriptor):
            try:
                rest = rest[os.write(self._descriptor, rest[:_PIECE]) :]
            except BrokenPipeError:
                self._stop.tell()


class _ForTheSdk(io.TextIOBase):
    """A standard stream whose bytes are the SDK's, which asks for `buffer`; what others print goes to stderr."""

    def __init__(self, buffer: io.BufferedReader | io.BufferedWriter) -> None:
        self.buffer = buffer

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return sys.stderr.write(text)


def run_stdio(server: MemoryServer, begun: Callable[[], None]) -> None:
    """Serve until the input ends, or Ctrl-C or a termination signal arrives. `begun` is called when the standard
    streams are safe from what it may load."""
    stop = Stop()
    with _stopped_by_signals(stop), _own_streams(stop, lambda: server.requests.wait(GRACE_SECONDS)):
        begun()
        server.mcp.run("stdio")
    server.work.finish(GRACE_SECONDS)


@contextlib.contextmanager
def _own_streams(stop: Stop, at_end: Callable[[], None]) -> Iterator[None]:
    """Keep the standard streams for the SDK alone, which takes them from `sys`."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    before = sys.stdin, sys.stdout
    output = Output(target, stop)
    lines = Lines(io.BufferedReader(Input(source, stop)), output.say, lambda: None if stop.told else at_end())
    sys.stdin = cast("TextIO", _ForTheSdk(io.BufferedReader(lines)))
    sys.stdout = cast("TextIO", _ForTheSdk(io.BufferedWriter(output)))
    try:
        yield
    finally:
        sys.stdin, sys.stdout = before


@contextlib.contextmanager
def _stopped_by_signals(stop: Stop) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda _number, _frame: stop.tell())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
