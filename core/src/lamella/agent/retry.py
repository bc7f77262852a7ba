"""Waiting after transient errors."""

from __future__ import annotations

import asyncio

from lamella.config.schema import RetrySection
from lamella.errors import ModelError


def retry_delay_ms(settings: RetrySection, attempt: int, error: ModelError) -> int:
    """Milliseconds before the given attempt (from 1): doubled each time, or what the server asked
    for, but never more than the limit."""
    delay = settings.base_delay_ms * 2 ** (attempt - 1)
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
