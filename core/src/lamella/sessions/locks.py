"""Locks between processes, for transcripts and sessions.json.

Two locks are taken in this order:

1. An operating-system lock on `.locks/<name>` in the same folder. It vanishes with its process, so
   a killed owner never blocks anyone, and taking it is free of races.
2. The file `<name>.lock` beside the locked file, as OpenClaw writes it: exclusive create, content
   `{"pid", "createdAt", "starttime"}`. It keeps OpenClaw out while lamella works, and lamella out
   while OpenClaw does. A left-over is removed only when its owner is gone (dead, or its pid now
   belongs to another process), when it is older than the stale limit, or when it cannot be read
   and has not just been made. One that lamella itself wrote (`"lockedBy": "lamella"`) is a
   left-over for whoever holds lock 1. Only the holder of lock 1 removes left-overs.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import filelock
from attrs import frozen

from lamella.errors import SessionError, SessionLocked
from lamella.text.days import parse_iso_ms, utc_iso

LOCK_FOLDER = ".locks"
STALE_SECONDS = 30 * 60.0
# An owner writes its payload right after creating the file; an unreadable one may be in between.
UNREADABLE_STALE_SECONDS = 10.0
_POLL_SECONDS = 0.05


@frozen(slots=True)
class LockOwner:
    """What a lock file says of its owner; all None when it cannot be read."""

    pid: int | None = None
    created_at: float | None = None
    start_time: int | None = None
    lamella: bool = False

    def __str__(self) -> str:
        return f"process {self.pid}" if self.pid is not None else "an unknown process"


def process_start_time(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; None where the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rfind(b")") + 2 :].split()
    return int(fields[19]) if len(fields) > 19 else None


def _is_zombie(pid: int) -> bool:
    """Ended, but not yet waited for by its parent."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat[stat.rfind(b")") + 2 :][:1] == b"Z"


def process_alive(pid: int) -> bool:
    """Whether a process with this pid exists and has not ended."""
    if pid <= 0 or _is_zombie(pid):
        return False
    if os.name == "nt":  # pragma: no cover - os.kill would end the process there
        return _alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return isinstance(pid, int) and pid < 2**31
    return True


def _alive_on_windows(pid: int) -> bool:  # pragma: no cover
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    handle = kernel.OpenProcess(0x1000, False, pid)
    if handle:
        kernel.CloseHandle(handle)
    return bool(handle)


def read_owner(path: Path) -> LockOwner | None:
    """The owner named in a lock file; None when the file is gone."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        value = json.loads(raw)
    except ValueError:
        return LockOwner()
    if not isinstance(value, dict) or not isinstance(value.get("pid"), int):
        return LockOwner()
    start = value.get("starttime", value.get("startTime"))
    return LockOwner(
        value["pid"],
        _moment(value.get("createdAt")),
        start if isinstance(start, int) else None,
        value.get("lockedBy") == "lamella",
    )


def _moment(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    moment = parse_iso_ms(value)
    return None if moment is None else moment / 1000


def is_stale(owner: LockOwner, *, now: float, modified: float, stale_after: float = STALE_SECONDS) -> bool:
    """Whether the holder of the system lock may remove a lock file.

    `modified` is the file's mtime; times in Unix seconds.
    """
    if owner.lamella:
        return True
    if owner.pid is None:
        return now - modified > min(stale_after, UNREADABLE_STALE_SECONDS)
    if owner.pid == os.getpid():
        return True  # we hold the system lock, so this is a left-over of our own
    if _is_gone(owner):
        return True
    if owner.start_time is not None and process_start_time(owner.pid) is not None:
        return False
    created = owner.created_at if owner.created_at is not None else modified
    return now - created > stale_after


def _is_gone(owner: LockOwner) -> bool:
    """Whether the process that a lock file names has ended, or its number belongs to another one now."""
    if owner.pid is None:
        return False
    if not process_alive(owner.pid):
        return True
    current = process_start_time(owner.pid)
    return owner.start_time is not None and current is not None and owner.start_time != current


def holder(path: Path) -> LockOwner | None:
    """Who works on a file at this moment, as its lock file tells; None when nobody does.

    Only a glance: nothing is locked, and nothing is removed.
    """
    owner = read_owner(_lock_file(path))
    return None if owner is None or _is_gone(owner) else owner


def _lock_file(path: Path) -> Path:
    return path.parent.resolve() / f"{path.name}.lock"


class PathLock:
    """Exclusive use of one file by one process (and one `PathLock` object in it).

    Raises `SessionLocked` when the lock is not free within `timeout` seconds.
    """

    def __init__(self, path: Path, *, timeout: float = 10.0, stale_after: float = STALE_SECONDS) -> None:
        folder = path.parent.resolve()
        self.path = path
        self.timeout = timeout
        self.stale_after = stale_after
        self._system = filelock.FileLock(folder / LOCK_FOLDER / path.name, thread_local=False)
        self._file = _lock_file(path)
        self._held = False

    @property
    def held(self) -> bool:
        return self._held

    def acquire(self) -> None:
        """Take the lock; waits in this thread."""
        self._acquire(self.timeout)

    async def acquire_in_loop(self) -> None:
        """Take the lock; the event loop goes on meanwhile, and a cancelled wait leaves nothing locked."""
        import asyncio  # a table of sessions needs no event loop

        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return self._acquire(0)
            except SessionLocked:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    def _acquire(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        Path(self._system.lock_file).parent.mkdir(parents=True, exist_ok=True)
        try:
            self._system.acquire(timeout=timeout, poll_interval=_POLL_SECONDS)
        except filelock.Timeout:
            owner = read_owner(self._file)
            raise SessionLocked(self.path, self.timeout, str(owner) if owner else "") from None
        try:
            self._claim(deadline)
        except BaseException:
            self._system.release()
            raise
        self._held = True

    def release(self) -> None:
        if self._held:
            self._held = False
            with contextlib.suppress(FileNotFoundError):
                self._file.unlink()
            self._system.release()

    def _claim(self, deadline: float) -> None:
        payload: dict[str, object] = {"pid": os.getpid(), "createdAt": utc_iso(), "lockedBy": "lamella"}
        start = process_start_time(os.getpid())
        if start is not None:
            payload["starttime"] = start
        while True:
            try:
                fd = os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            except FileExistsError:
                self._wait_or_remove(deadline)
                continue
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(json.dumps(payload).encode())
            except OSError as error:
                self._file.unlink(missing_ok=True)
                raise SessionError(
                    f"{self.path} cannot be locked: {error.strerror or error}", hint="Check disk space and permissions."
                ) from error
            return

    def _wait_or_remove(self, deadline: float) -> None:
        owner = read_owner(self._file)
        if owner is None:
            return
        try:
            modified = self._file.stat().st_mtime
        except FileNotFoundError:
            return
        if is_stale(owner, now=time.time(), modified=modified, stale_after=self.stale_after):
            with contextlib.suppress(FileNotFoundError):
                self._file.unlink()
            return
        if time.monotonic() >= deadline:
            raise SessionLocked(self.path, self.timeout, str(owner))
        time.sleep(_POLL_SECONDS)

    def __enter__(self) -> PathLock:
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


@contextlib.contextmanager
def locked(path: Path, *, timeout: float = 10.0) -> Iterator[None]:
    """Hold the lock of `path` for a block."""
    with PathLock(path, timeout=timeout):
        yield
