"""Keeping an index in step with its files while a program runs, and knowing when it is.

A search need not look at the files when they are followed, nothing has been reported since the last
look, and that look was not long ago: a report that got lost does no harm for more than a minute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from attrs import define, field

from lamella.text.days import unix_ms
from lamella.types.memory import ProgressListener, SyncProgress, SyncReport, WatchEvent, WatchReason
from lamella_memory_core.following.watch import Watch

# How long a look at the files is trusted while they are followed.
TRUST_SECONDS = 60.0
# How often reports are asked for in the background.
_TICK_SECONDS = 0.25
# Where changes cannot be followed, the files are looked at this often instead.
_UNFOLLOWED_SECONDS = 30.0
# Changes that never pause are taken in after so many times the quiet time.
_MOST_PATIENCE = 10
_CLOSING_SECONDS = 2.0
_NOTHING = -1  # a mark before all changes

log = logging.getLogger(__name__)


@define(slots=True)
class Schedule:
    """Tells when a sync is due. Pure: moments are given, in seconds of any clock.

    `quiet`: how long nothing must have changed; changes that never pause are taken in all the same.
    """

    quiet: float
    last_sync: float
    _first_change: float | None = None
    _last_change: float = 0.0

    def changed(self, now: float) -> None:
        """Something has changed."""
        self._first_change = now if self._first_change is None else self._first_change
        self._last_change = now

    def due(self, now: float, interval: float) -> WatchReason | None:
        """Why a sync is due now, or None. `interval` 0: never."""
        if self._first_change is not None:
            pause = now - self._last_change >= self.quiet
            if pause or now - self._first_change >= _MOST_PATIENCE * self.quiet:
                return "change"
        return "interval" if interval and now - self.last_sync >= interval else None

    def synced(self, now: float) -> None:
        """A sync begins that sees everything up to now."""
        self._first_change, self.last_sync = None, now


@define(slots=True)
class Freshness:
    """Counts changes, and up to which one the index holds them all. Threads may share it."""

    _changes: int = 0
    _confirmed: int = _NOTHING
    _confirmed_at: float = 0.0
    _lock: threading.Lock = field(factory=threading.Lock, eq=False, repr=False)

    def note_change(self) -> None:
        with self._lock:
            self._changes += 1

    def mark(self) -> int:
        """The newest change; to be given to `confirm` after a look at the files that begins now."""
        with self._lock:
            return self._changes

    def confirm(self, mark: int, now: float) -> None:
        """The index holds everything that happened up to `mark`."""
        with self._lock:
            if mark >= self._confirmed:
                self._confirmed, self._confirmed_at = mark, now

    def holds(self, now: float) -> bool:
        """Whether the index holds all changes, as far as is known, and that is not long ago."""
        with self._lock:
            return self._confirmed == self._changes and now - self._confirmed_at < TRUST_SECONDS


class Upkeep:
    """Follows the files of a memory, and brings its index up to date after changes and at intervals.

    `sync` brings it up to date, tells a listener how far it is, and ends when that raises. `watch` is
    None when files are not to be followed. `quiet` and `interval` (0: never) in seconds.
    """

    def __init__(
        self, sync: Callable[[ProgressListener], SyncReport], watch: Watch | None, quiet: float, interval: float
    ) -> None:
        self._sync = sync
        self._watch = watch
        self._quiet = quiet
        self._interval = interval
        self._freshness = Freshness()
        self._one_looks = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    # --- for searches -----------------------------------------------------------------------------------

    def look(self) -> int:
        """Take what has been reported; the mark for `confirm`, to be got before the files are looked at."""
        with self._one_looks:  # what one takes, the next one must find counted
            if self._watch is None or self._watch.changed():
                self._freshness.note_change()
            return self._freshness.mark()

    def confirm(self, mark: int) -> None:
        """The index held all files as they were at `mark`."""
        self._freshness.confirm(mark, time.monotonic())

    def holds_all(self) -> bool:
        """Whether the index is sure to hold all files as they are; call `look` before."""
        return self._watch is not None and self._watch.exact and self._freshness.holds(time.monotonic())

    # --- in the background --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin to follow the files in the background, unless that goes on already or is not wanted."""
        if self._thread is None and not self._stopped.is_set() and (self._watch is not None or self._interval):
            self._thread = threading.Thread(target=self._follow, name="lamella-upkeep", daemon=True)
            self._thread.start()

    def run(self, told: Callable[[WatchEvent], None], stopped: threading.Event) -> None:
        """Sync at once, then after changes and at intervals, until `stopped` is set."""
        self._open_watch()
        self._keep(told, stopped, seen=self._bring_up_to_date("start", told, stopped))

    def facts(self) -> dict[str, Any]:
        """For `lamella memory status`."""
        return {
            "wanted": self._watch is not None,
            "active": self._watch is not None and self._watch.active,
            "problem": (self._watch.problem if self._watch is not None else "") or None,
            "debounceMs": round(self._quiet * 1000),
            "intervalMinutes": self._interval / 60,
        }

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopped.set()

    def close(self) -> None:
        """Stop following; wait a moment for a sync in work."""
        self.stop()
        if self._thread is not None:
            self._thread.join(_CLOSING_SECONDS)
        if self._watch is not None:
            self._watch.close()

    def _follow(self) -> None:
        self._open_watch()
        self._keep(lambda _event: None, self._stopped, seen=_NOTHING)

    def _open_watch(self) -> None:
        if self._watch is not None:
            self._watch.begin()
            self._freshness.note_change()  # what came before was not reported

    def _keep(self, told: Callable[[WatchEvent], None], stopped: threading.Event, seen: int) -> None:
        """`seen`: the newest change that a sync has taken in already."""
        schedule = Schedule(self._quiet, time.monotonic())
        followed = self._watch is not None and self._watch.active
        while not stopped.wait(min(_TICK_SECONDS, self._quiet)):
            following, mark = self._look_if_watched(), self._freshness.mark()
            if (following and mark != seen) or following != followed:
                schedule.changed(time.monotonic())
            seen, followed = mark, following
            reason = schedule.due(time.monotonic(), self._interval_now())
            if reason:
                schedule.synced(time.monotonic())
                seen = self._bring_up_to_date(reason, told, stopped)

    def _look_if_watched(self) -> bool:
        """Take what has been reported; whether changes are followed."""
        if self._watch is None:
            return False
        self.look()
        return self._watch.active

    def _interval_now(self) -> float:
        """As configured; where changes should be followed and cannot be, the files are looked at instead."""
        if self._watch is None or self._watch.active:
            return self._interval
        return min(self._interval or _UNFOLLOWED_SECONDS, _UNFOLLOWED_SECONDS)

    def _bring_up_to_date(
        self, reason: WatchReason, told: Callable[[WatchEvent], None], stopped: threading.Event
    ) -> int:
        """Returns the newest change that was known when it began."""
        mark = self.look()

        def go_on(_progress: SyncProgress) -> None:
            if stopped.is_set():
                raise _Stopped

        try:
            report = self._sync(go_on)
        except _Stopped:
            return mark
        except Exception as error:  # the next sync may go well
            log.warning("the memory index is not up to date", exc_info=True)
            told(WatchEvent(reason, unix_ms(), error=str(error) or type(error).__name__))
            return mark
        if not report.problem:
            self.confirm(mark)
        told(WatchEvent(reason, unix_ms(), report))
        return mark


class _Stopped(Exception):
    """The sync is not to go on."""
