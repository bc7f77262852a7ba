"""Kills what runs when lamella itself is killed, and can do nothing any more.

A shell reads from a pipe whose other end only lamella holds. Each line tells which process groups run; when the pipe
closes, those of the last line are killed.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import subprocess
import threading

_SCRIPT = 'while read -r line; do groups=$line; done; for group in $groups; do kill -s KILL -- "-$group"; done'

log = logging.getLogger(__name__)


class Guard:
    """The groups that run, for all of a program. Where there is no shell, it guards nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def add(self, group: int) -> None:
        """Kill this group, too, when lamella ends."""
        with self._lock:
            if self._owner != os.getpid():  # a fork has a guard of its own
                self._owner, self._groups, self._shell = os.getpid(), set(), _start()
            elif self._shell is not None and self._shell.poll() is not None:  # somebody killed it
                self._shell = _start()
            self._groups.add(group)
            self._tell()

    def remove(self, group: int) -> None:
        """This group has ended, and its number may be another's."""
        with self._lock:
            self._groups.discard(group)
            self._tell()

    def close(self) -> None:
        """End the shell, as the end of the program does."""
        with self._lock:
            shell, self._shell = self._shell, None
            if shell is not None and shell.stdin is not None and self._owner == os.getpid():
                shell.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    shell.wait(1.0)

    def _tell(self) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            line = " ".join(map(str, self._groups))
            with contextlib.suppress(OSError):  # the shell is gone, and started again with the next group
                os.write(self._shell.stdin.fileno(), f"{line}\n".encode())


def _start() -> subprocess.Popen[bytes] | None:
    if os.name == "nt":  # pragma: no cover
        return None
    quiet = subprocess.DEVNULL
    try:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=quiet,
            stderr=quiet,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        log.debug("no shell guards the programs that run: %s", error)
        return None
    assert shell.stdin is not None
    os.set_blocking(shell.stdin.fileno(), False)
    return shell


GUARD = Guard()
atexit.register(GUARD.close)
