"""Following folders: whether anything in them has changed, to the moment of asking.

The system reports changes a little late. So each watch has a file of its own, in a folder of its own:
to ask is to rename that file and to wait for the report of it. Reports come in order, so everything
that happened before has been reported by then.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from attrs import frozen

log = logging.getLogger(__name__)

# How long the report of the renamed file is waited for. Usually it takes a tenth of a millisecond.
_ECHO_SECONDS = 0.05
_MOST_MISSED = 3
# When watching has failed (no watches left, or a file system without reports), it is tried again after this.
_RETRY_SECONDS = 60.0

T = TypeVar("T")
Reports: TypeAlias = Generator[set[tuple[Any, str]], None, None]


@frozen(slots=True)
class Root:
    """A folder to follow, which need not exist: all of it, or only the entries of these `names` in it."""

    path: Path
    names: frozenset[str] = frozenset()

    @property
    def deep(self) -> bool:
        return not self.names

    def concerns(self, changed: str) -> bool:
        return self.deep or Path(changed).name in self.names

    def identity(self) -> tuple[int, int] | None:
        """What tells a folder from another one that took its place; None when there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino


class Watch:
    """Follows `roots`, also when they come, go, and are replaced. Threads may share it.

    Without the first root nothing is followed. `problem` says why nothing is, or is empty. `clock`
    gives seconds.
    """

    def __init__(self, roots: Sequence[Root], clock: Callable[[], float] = time.monotonic) -> None:
        self.problem = ""
        self._roots = tuple(roots)
        self._clock = clock
        self._lock = threading.Lock()
        self._begun = False
        self._streams: list[tuple[Root, Reports]] = []
        self._identities: list[tuple[int, int] | None] = []
        self._echo: _Echo | None = None
        self._missed = 0
        self._retry_at = 0.0

    @property
    def active(self) -> bool:
        """Whether changes are followed now."""
        return bool(self._streams)

    def begin(self) -> None:
        """Begin to follow; before that, `changed` is always true."""
        with self._lock:
            self._begun = True
            self._open()

    def changed(self) -> bool:
        """Whether anything may have changed since the last call; true whenever that is not certain."""
        with self._lock:
            if not self._begun:
                return True
            if [root.identity() for root in self._roots] != self._identities:
                self._open()
                return True
            if not self._streams:
                if self.problem and self._clock() >= self._retry_at:
                    self._open()
                return True
            return self._guarded(self._reported, otherwise=True)

    def close(self) -> None:
        """Stop following. `begin` begins again."""
        with self._lock:
            self._begun = False
            self._shut()

    # --- with the lock held -----------------------------------------------------------------------------

    def _open(self) -> None:
        self._shut()
        self.problem, self._missed = "", 0
        self._identities = [root.identity() for root in self._roots]
        if self._identities[0] is not None:
            self._guarded(self._open_streams, otherwise=None)

    def _open_streams(self) -> None:
        self._echo = _Echo()
        for root, identity in zip(self._roots, self._identities, strict=True):
            if identity is not None:
                self._streams.append((root, _reports(root, self._echo.folder)))

    def _reported(self) -> bool:
        assert self._echo is not None
        name = self._echo.next()
        found = [self._collect(root, reports, name) for root, reports in self._streams]
        return any(found)

    def _collect(self, root: Root, reports: Reports, echo: str) -> bool:
        """Take all reports up to that of the echo; whether any is about something that counts."""
        until = self._clock() + _ECHO_SECONDS
        paths: set[str] = set()
        while echo not in paths and self._clock() < until:
            paths.update(path for _, path in next(reports))
        if echo not in paths:
            self._missed += 1
            if self._missed >= _MOST_MISSED:
                raise TimeoutError("the system reports them too late")
            return True
        self._missed = 0
        own = str(Path(echo).parent)
        return any(root.concerns(path) for path in paths if not path.startswith(own))

    def _guarded(self, action: Callable[[], T], *, otherwise: T) -> T:
        """Do something with the library, which has errors of its own; after one, nothing is followed for a while."""
        try:
            return action()
        except Exception as error:
            log.warning("changes of files cannot be followed", exc_info=True)
            self._shut()
            self.problem = f"changes of files cannot be followed: {error or type(error).__name__}"
            self._retry_at = self._clock() + _RETRY_SECONDS
            return otherwise

    def _shut(self) -> None:
        for _, reports in self._streams:
            reports.close()
        self._streams = []
        if self._echo is not None:
            self._echo.close()
            self._echo = None


class _Echo:
    """A file that gets another name whenever it is asked for one."""

    def __init__(self) -> None:
        self._holder = tempfile.TemporaryDirectory(prefix="lamella-watch-", ignore_cleanup_errors=True)
        self.folder = Path(self._holder.name).resolve()
        self._number = 0
        self._path.touch()

    def next(self) -> str:
        old = self._path
        self._number += 1
        os.rename(old, self._path)  # noqa: PTH104
        return str(self._path)

    def close(self) -> None:
        self._holder.cleanup()

    @property
    def _path(self) -> Path:
        return self.folder / str(self._number)


def _reports(root: Root, echo: Path) -> Reports:
    """Sets of (kind, path) of what has happened in two folders, empty when nothing happened for a millisecond."""
    from watchfiles import watch

    reports = watch(
        root.path,
        echo,
        watch_filter=None,
        debounce=0,  # we know what we wait for, and debounce elsewhere
        step=0,
        rust_timeout=1,
        yield_on_timeout=True,
        recursive=root.deep,
        ignore_permission_denied=True,
    )
    next(reports)  # nothing is reported of what came before this
    return reports
