"""Running plain functions with a time limit, in threads that never keep the program from ending."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def _start(function: Callable[[], T]) -> Future[T]:
    """Run in a daemon thread of its own: a function that hangs must not block others, or the exit."""
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            if not future.cancelled():
                future.set_exception(error)
        else:
            if not future.cancelled():
                future.set_result(result)

    threading.Thread(target=work, name="lamella-hook", daemon=True).start()
    return future


async def call_with_limit(function: Callable[[], T], seconds: float) -> T:
    """Await a plain function. Raises TimeoutError after the limit; a late result is dropped."""
    return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(_start(function))), seconds)


async def start_in_thread(function: Callable[[], T]) -> T:
    """Await a plain function without a limit."""
    return await asyncio.wrap_future(_start(function))


def run_with_limit(function: Callable[[], T], seconds: float) -> T:
    """The same for code that does not run in an event loop."""
    return _start(function).result(timeout=seconds)
