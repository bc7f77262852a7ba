"""Running plain functions of others: with a time limit, and so that nothing that they raise ends the program.

They run in threads that never keep the program from ending. `SystemExit` and the like come out as
`Escaped`. `lamella.plugins.tasks` does the same within an event loop, which this module does not load.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from lamella.errors import LamellaError

T = TypeVar("T")


class Escaped(Exception):
    """Code of others raised something that would end a program, a task or an iteration."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"raised {type(error).__name__}({_text(error)!r})")


def describe(error: BaseException) -> str:
    """An error of code of others, in one line."""
    text = _text(error) if isinstance(error, Escaped) else f"{type(error).__name__}: {_text(error)}"
    hint = error.hint if isinstance(error, LamellaError) else ""
    return f"{text} ({hint})" if hint else text


def _text(error: BaseException) -> str:
    """What an error says, which is code of others too."""
    try:
        return " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - `__str__` of others may raise anything
        return "(it cannot be shown)"


class OutOfTime(Exception):
    """There was no answer within the limit."""


def start(function: Callable[[], T]) -> Future[T]:
    """Run in a daemon thread of its own: a function that hangs must not block others, or the exit."""
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(context.run(function))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(harmless(error))

    threading.Thread(target=work, name="lamella-hook", daemon=True).start()
    return future


def harmless(error: BaseException) -> Exception:
    """The error itself, or `Escaped` for one that a future or a task cannot simply carry."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return Escaped(error)


def run_with_limit(function: Callable[[], T], seconds: float) -> T:
    """The result of a function. Raises `OutOfTime` after the limit; a late result is dropped."""
    future = start(function)
    try:
        return future.result(timeout=seconds)
    except TimeoutError:
        if future.done():
            raise  # its own
        raise OutOfTime from None
