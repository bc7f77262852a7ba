"""`lamella chat`: a conversation at the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamella.cli.ask import finish, say_if_no_memory
from lamella.cli.choice import SessionChoice, session_options
from lamella.cli.commands import run_command
from lamella.cli.common import CommonOptions, Out, agent_options, open_runtime, warn
from lamella.cli.exit_codes import say_error
from lamella.cli.render import Renderer, short_arguments
from lamella.cli.turns import interruptible
from lamella.errors import LamellaError
from lamella.types.tools import Tool

if TYPE_CHECKING:
    from lamella.runtime import Runtime
    from lamella.session import Session


@click.command()
@agent_options
@session_options
def chat(common: CommonOptions, wanted: SessionChoice) -> int:
    """Talk to the agent. /help lists the commands; Ctrl-C stops a turn, Ctrl-D leaves.

    Tools that write files ask first, unless tools.allow_without_asking names them.
    """
    return run_chat(common, wanted)


def run_chat(common: CommonOptions, wanted: SessionChoice, *, must_exist: bool = False) -> int:
    """Run the conversation until its end; returns the exit code.

    With `must_exist`, raises `SessionNotFound` when the key has no session yet. The event loop runs
    during turns only: between them the terminal has the program to itself, so that line editing,
    Ctrl-C and Ctrl-D work as everywhere.
    """
    asking = Asking()
    runtime = open_runtime(common, model=wanted.model, system_prompt=wanted.system, confirm=asking.confirm)
    asking.allowed = set(runtime.settings.tools.allow_without_asking)
    if must_exist:
        runtime.store.require(runtime.key(wanted.key))
    runtime.listeners.append(Renderer(stream=True))
    session = wanted.open(runtime)
    with contextlib.closing(runtime), contextlib.closing(session), asyncio.Runner() as runner:
        say_if_no_memory(runtime)
        if sys.stdin.isatty():
            chosen = runtime.model
            warn(f"{chosen.provider}/{chosen.id} · {session.key.text} · /help")
        with line_editing(runtime.paths.home / "chat_history"):
            while (line := read_line("you> ")) is not None:
                text = line.strip()
                if text in ("/quit", "/exit"):
                    break
                if text:
                    asking.session = session
                    runner.run(_turn(runtime, session, text, wanted.timeout))
    return 0


async def _turn(runtime: Runtime, session: Session, text: str, timeout: float | None) -> None:
    """One command or turn; errors are told and the conversation goes on."""
    try:
        async with interruptible(session, timeout):
            if await run_command(runtime, session, text):
                return
            result = await session.receive(text)
        if result.handled:
            Out.write(result.text)
        finish(result)
    except LamellaError as error:
        say_error(error)


def read_line(prompt: str, *, keep: bool = True) -> str | None:
    """A line from the user, kept in the history or not; None at the end of input.

    Ctrl-C gives an empty line, or the end when nothing was typed.
    """
    if not sys.stdin.isatty():
        return sys.stdin.readline() or None
    sys.stderr.flush()
    with contextlib.suppress(ImportError):
        import readline

        readline.set_auto_history(keep)
    try:
        # input() edits lines only when it writes to the terminal itself.
        with contextlib.redirect_stdout(Out.stream or sys.stdout):
            return input(prompt)
    except EOFError:
        warn("")
        return None
    except KeyboardInterrupt:
        warn("")
        return "" if _typed() else None


def _typed() -> bool:
    with contextlib.suppress(ImportError, AttributeError):
        import readline

        return bool(readline.get_line_buffer())
    return False


@contextlib.contextmanager
def line_editing(file: Path) -> Iterator[None]:
    """Line editing with a history that outlasts the conversation, where readline is there."""
    try:
        import readline
    except ImportError:
        yield
        return
    if sys.stdin.isatty():
        with contextlib.suppress(OSError):
            readline.read_history_file(file)
        readline.set_history_length(1000)
    try:
        yield
    finally:
        if sys.stdin.isatty():
            with contextlib.suppress(OSError):  # a history that cannot be kept is no reason to fail
                file.parent.mkdir(parents=True, exist_ok=True)
                readline.write_history_file(file)
                file.chmod(0o600)


class Asking:
    """Asks before a tool that writes. "always" is remembered for the conversation."""

    def __init__(self) -> None:
        self.allowed: set[str] = set()
        self.session: Session | None = None
        self._one_at_a_time = asyncio.Lock()

    async def confirm(self, tool: Tool, arguments: Mapping[str, object]) -> bool:
        if tool.name in self.allowed or tool.owner == "memory-core":
            return True
        async with self._one_at_a_time:
            if tool.name in self.allowed:
                return True
            if not sys.stdin.isatty():
                warn(f"{tool.name} was not run: there is nobody to ask (tools.allow_without_asking allows it)")
                return False
            warn(f"{tool.name} {short_arguments(arguments)}")
            answer = self._ask()
        if answer in ("a", "always"):
            self.allowed.add(tool.name)
        return answer in ("y", "yes", "a", "always")

    def _ask(self) -> str:
        """The answer, read while the loop stands still; Ctrl-C stops the turn."""
        previous = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            line = read_line("run it? [y]es, [a]lways, [n]o: ", keep=False)
        finally:
            signal.signal(signal.SIGINT, previous)
        if line is None and self.session is not None:
            self.session.abort()
        return (line or "").strip().lower()
