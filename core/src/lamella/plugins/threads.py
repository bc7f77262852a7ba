"""Running code of others: with a time limit, and so that nothing that it raises ends the program.

Plain functions run in threads that never keep the program from ending, coroutines in tasks of their
own. `SystemExit`, a cancellation that nobody asked for and the like come out as `Escaped`.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

from lamella.errors import LamellaError

T = TypeVar("T")

# What a cancelled coroutine gets to tidy up before it is left behind.
GRACE_SECONDS = 0.5


class Escaped(Exception):
    """Code of others raised something that would end a program, a task or an iteration."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"raised {type(error).__name__}({str(error)!r})")


def describe(error: BaseException) -> str:
    """An error of code of others, in one line."""
    text = str(error) if isinstance(error, Escaped) else f"{type(error).__name__}: {error}"
    hint = error.hint if isinstance(error, LamellaError) else ""
    return f"{text} ({hint})" if hint else text


class OutOfTime(Exception):
    """There was no answer within the limit."""


def _start(function: Callable[[], T]) -> Future[T]:
    """Run in a daemon thread of its own: a function that hangs must not block others, or the exit."""
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(context.run(function))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(_harmless(error))

    threading.Thread(target=work, name="lamella-hook", daemon=True).start()
    return future


def _harmless(error: BaseException) -> Exception:
    """The error itself, or `Escaped` for one that a future or a task cannot simply carry."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return Escaped(error)


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
        raise _harmless(error)
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
    future = asyncio.wrap_future(_start(function))
    try:
        await asyncio.wait({future}, timeout=seconds)
        if future.done():
            return result_of(future)
    finally:
        future.cancel()
    raise OutOfTime


async def start_in_thread(function: Callable[[], T]) -> T:
    """Await a plain function without a limit."""
    return await asyncio.wrap_future(_start(function))


def run_with_limit(function: Callable[[], T], seconds: float) -> T:
    """The same for code that does not run in an event loop. Raises `OutOfTime`."""
    future = _start(function)
    try:
        return future.result(timeout=seconds)
    except TimeoutError:
        if future.done():
            raise  # its own
        raise OutOfTime from None
