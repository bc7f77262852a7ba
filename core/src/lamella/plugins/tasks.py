"""Running code of others within an event loop; see `lamella.plugins.threads`.

Coroutines run in tasks of their own. A cancellation that nobody asked for comes out as `Escaped`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lamella.plugins.threads import Escaped, OutOfTime, harmless, start

T = TypeVar("T")

# What a cancelled coroutine gets to tidy up before it is left behind.
GRACE_SECONDS = 0.5


async def contained(work: Awaitable[T]) -> T:
    """Await something of others; `SystemExit` becomes `Escaped`, since no task can carry it."""
    try:
        return await work
    except SystemExit as error:
        raise Escaped(error) from error


def result_of(task: asyncio.Future[T]) -> T:
    """The result of a finished task of others; whatever it raised is raised as an `Exception`."""
    if task.cancelled():
        raise Escaped(asyncio.CancelledError())
    error = task.exception()
    if error is not None:
        raise harmless(error)
    return task.result()


async def give_up(task: asyncio.Future[T]) -> None:
    """Cancel a task of others and wait a moment for its end; one that does not heed is left behind."""
    task.cancel()
    task.add_done_callback(lambda t: None if t.cancelled() else t.exception())  # nobody will ask for it
    await asyncio.wait({task}, timeout=GRACE_SECONDS)


async def await_with_limit(work: Awaitable[T], seconds: float) -> T:
    """Await something of others. Raises `OutOfTime` after the limit, also when it ignores its
    cancellation."""
    task = asyncio.ensure_future(contained(work))
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return result_of(task)
    finally:
        if not task.done():
            await give_up(task)
    raise OutOfTime


async def call_with_limit(function: Callable[[], T], seconds: float) -> T:
    """Await a plain function. Raises `OutOfTime` after the limit; a late result is dropped."""
    future = asyncio.wrap_future(start(function))
    try:
        await asyncio.wait({future}, timeout=seconds)
        if future.done():
            return result_of(future)
    finally:
        future.cancel()
    raise OutOfTime


async def start_in_thread(function: Callable[[], T]) -> T:
    """Await a plain function without a limit."""
    return await asyncio.wrap_future(start(function))
