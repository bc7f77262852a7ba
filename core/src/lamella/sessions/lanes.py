"""Lanes within a process: the turns of one session follow each other in the order in which they were asked for.

The lock of a transcript keeps processes apart, but it does not know who came first.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from weakref import WeakValueDictionary

from attrs import define

from lamella.errors import UsageError

_TAKEN: ContextVar[tuple[Place, ...]] = ContextVar("lamella_lanes", default=())


@define(slots=True, eq=False)
class Place:
    """Somebody's place in a lane. Not taken until `take` has returned."""

    name: str
    _lane: asyncio.Lock
    held: bool = False

    async def take(self) -> None:
        """Wait until all who came before have left.

        Raises `UsageError` when one of them waits for this: a turn that asks for another turn of its own session.
        """
        if any(place.held and place._lane is self._lane for place in _TAKEN.get()):
            raise UsageError(
                f"session {self.name}: a turn is running, and what it does cannot wait for its end",
                hint="Use steer() or follow_up(), or another session key.",
            )
        await self._lane.acquire()
        self.held = True

    def enter(self) -> None:
        """What this task does from here on, and the tasks that it starts, is done in this place."""
        _TAKEN.set((*(place for place in _TAKEN.get() if place.held), self))

    def leave(self) -> None:
        """Let the next one in. Does nothing when the place was never taken."""
        if self.held:
            self.held = False
            self._lane.release()


class Lanes:
    """The lanes of a process, by name. Each event loop has its own."""

    def __init__(self) -> None:
        self._lanes: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    def place(self, name: str) -> Place:
        """A place at the end of a lane. Call it in a running event loop."""
        key = id(asyncio.get_running_loop()), name
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = asyncio.Lock()
        return Place(name, lane)
