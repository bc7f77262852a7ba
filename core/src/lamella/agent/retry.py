"""Waiting: after transient errors, and for work that an abort should end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from lamella.config.schema import RetrySection
from lamella.errors import ModelAborted, ModelError

T = TypeVar("T")


def retry_delay_ms(settings: RetrySection, attempt: int, error: ModelError) -> int:
    """Milliseconds before the given attempt (from 1): doubled each time, or what the server asked
    for, but never more than the limit."""
    delay = settings.base_delay_ms << (attempt - 1)
    if error.retry_after is not None:
        delay = max(delay, int(error.retry_after * 1000))
    return min(delay, settings.max_delay_ms)


async def wait(delay_ms: int, aborted: asyncio.Event) -> bool:
    """Wait; False when the run was aborted meanwhile."""
    try:
        await asyncio.wait_for(aborted.wait(), delay_ms / 1000)
    except TimeoutError:
        return True
    return False


async def unless_aborted(work: Awaitable[T], aborted: asyncio.Event) -> T:
    """The result of `work`; raises `ModelAborted` as soon as the run is aborted."""
    task = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(aborted.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ModelAborted("the run was aborted")
        return task.result()
    finally:
        stop.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
