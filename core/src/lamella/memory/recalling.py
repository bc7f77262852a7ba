"""The search that recalls something before a turn: in the background, with a deadline, and one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from lamella.errors import LamellaError
from lamella.memory.errand import Errand, StillRunning
from lamella.types.events import Notice
from lamella.types.host import Host, Trigger

T = TypeVar("T")

# Turns that somebody waits for with a prompt of his own; those of heartbeats and flushes have fixed texts.
RECALLING_TRIGGERS: tuple[Trigger, ...] = ("user", "cron")


class RecallSearch(Generic[T]):
    """Searches of one plugin, for one turn after another."""

    def __init__(self) -> None:
        self._searching: Errand[T] | None = None

    async def run(
        self,
        search: Callable[[], T],
        milliseconds: int,
        host: Host,
        failed: Callable[[LamellaError], None] = lambda _error: None,
    ) -> T | None:
        """What `search` gives, if it comes in time; what comes late is dropped, and nothing is begun before that.

        `host` is told why there is nothing; `failed` gets what the search raised.
        """
        if self._searching is not None and not self._searching.done:
            host.emit(Notice("recall_skipped", "nothing is recalled: the search of an earlier turn goes on"))
            return None
        self._searching = Errand(search, "lamella-recall")
        try:
            return await self._searching.outcome(milliseconds / 1000)
        except StillRunning:
            host.emit(Notice("recall_late", f"nothing is recalled: the search took more than {milliseconds} ms"))
        except LamellaError as error:
            failed(error)
            host.emit(Notice("recall_failed", f"nothing is recalled: {error}"))
        return None
