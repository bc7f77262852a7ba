"""A bar on stderr for work that takes a while: only at a terminal, and only when it does take a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

Advance = Callable[[str, int, int], None]


@contextmanager
def progress_bar(*, wanted: bool = True) -> Iterator[Advance]:
    """Within the block, call with what is done, how much of it, and of how much.

    Nothing is drawn unless `wanted` and stderr is a terminal; the library is loaded with the first call.
    """
    if not (wanted and sys.stderr.isatty()):
        yield lambda _what, _done, _total: None
        return
    bar = _Bar()
    try:
        yield bar.advance
    finally:
        bar.close()


class _Bar:
    """One line at a time: another kind of work takes its place."""

    def __init__(self) -> None:
        self._drawn: Progress | None = None
        self._what = ""

    def advance(self, what: str, done: int, total: int) -> None:
        drawn = self._drawn or self._draw()
        if what != self._what:
            for task in drawn.task_ids:
                drawn.remove_task(task)
            drawn.add_task(what, total=total)
            self._what = what
        drawn.update(drawn.task_ids[0], completed=done, total=total)

    def close(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()

    def _draw(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._drawn = Progress(*columns, console=Console(file=sys.stderr), transient=True)
        self._drawn.start()
        return self._drawn
