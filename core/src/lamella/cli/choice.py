"""Which session a command talks in, with which model: the options of `ask` and `chat`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from attrs import fields, frozen

from lamella.cli.common import NumberRange
from lamella.errors import UsageError
from lamella.types.host import Trigger
from lamella.types.model import THINKING_LEVELS, ThinkingLevel

if TYPE_CHECKING:
    from lamella.runtime import Runtime
    from lamella.session import Session

R = TypeVar("R")


@frozen(slots=True)
class SessionChoice:
    """What was asked for. `latest`: the most recent session; `timeout` in seconds for each turn."""

    key: str = ""
    latest: bool = False
    new: bool = False
    model: str = ""
    system: str = ""
    thinking: ThinkingLevel | None = None
    trigger: Trigger = "user"
    timeout: float | None = None

    def open(self, runtime: Runtime) -> Session:
        """The session. Raises `UsageError` when both a key and the latest session are asked for."""
        return runtime.session(self._key(runtime), new=self.new, trigger=self.trigger, thinking=self.thinking)

    def _key(self, runtime: Runtime) -> str:
        if not self.latest:
            return self.key
        if self.key:
            raise UsageError("--key and --continue cannot be used together")
        rows = runtime.store.rows()
        return rows[0].key if rows else ""


def session_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of `SessionChoice`; the command gets `wanted`."""

    @click.option("--key", default="", metavar="KEY", help="Session key (default: agent:<agent>:main).")
    @click.option("--continue", "latest", is_flag=True, help="Go on with the most recent session.")
    @click.option("--new", is_flag=True, help="Start a new session under the key.")
    @click.option("--model", default="", metavar="PROVIDER/MODEL", help="Model to use.")
    @click.option("--system", default="", metavar="TEXT", help="Replace the system prompt.")
    @click.option("--thinking", type=click.Choice(THINKING_LEVELS), help="Thinking level.")
    @click.option(
        "--trigger",
        type=click.Choice(get_args(Trigger)),
        default="user",
        show_default=True,
        help="What sets the turn off.",
    )
    @click.option("--timeout", type=NumberRange(min=0.1), help="Abort a turn after so many seconds.")
    @functools.wraps(command)
    def wrapped(*positional: Any, **options: Any) -> R:
        wanted = SessionChoice(**{a.name: options.pop(a.name) for a in fields(SessionChoice)})
        return command(*positional, wanted=wanted, **options)

    return wrapped
