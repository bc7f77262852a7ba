"""`lamella chat`: a conversation at the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lamella.cli.ask import finish, resolve_key, say_if_no_memory, session_options
from lamella.cli.commands import run_command
from lamella.cli.common import CommonOptions, Out, agent_options, open_runtime, warn
from lamella.cli.render import Renderer, short_arguments
from lamella.cli.turns import interruptible
from lamella.errors import LamellaError, ModelError
from lamella.types.tools import Tool

if TYPE_CHECKING:
    from lamella.runtime import Runtime
    from lamella.session import Session


@click.command()
@agent_options
@session_options
def chat(
    common: CommonOptions,
    key: str,
    latest: bool,
    new: bool,
    model: str,
    system: str,
    thinking: Any,
    trigger: Any,
    timeout: float | None,
) -> int:
    """Talk to the agent. /help lists the commands; Ctrl-C stops a turn, Ctrl-D leaves.

    Tools that write files ask first, unless tools.allow_without_asking names them.
    """
    return run_chat(
        common,
        key=key,
        latest=latest,
        new=new,
        model=model,
        system=system,
        thinking=thinking,
        trigger=trigger,
        timeout=timeout,
    )


def run_chat(
    common: CommonOptions,
    *,
    key: str = "",
    latest: bool = False,
    new: bool = False,
    model: str = "",
    system: str = "",
    thinking: Any = None,
    trigger: Any = "user",
    timeout: float | None = None,
) -> int:
    """Run the conversation until its end; returns the exit code."""
    asking = Asking()
    runtime = open_runtime(common, model=model, system_prompt=system, confirm=asking.confirm)
    asking.allowed = set(runtime.settings.tools.allow_without_asking)
    runtime.listeners.append(Renderer(stream=True))

    async def run() -> int:
        async with (
            runtime,
            runtime.session(resolve_key(runtime, key, latest), new=new, trigger=trigger, thinking=thinking) as session,
        ):
            say_if_no_memory(runtime)
            if sys.stdin.isatty():
                chosen = runtime.model
                warn(f"{chosen.provider}/{chosen.id} · {session.key.text} · /help")
            return await _talk(runtime, session, timeout)

    return asyncio.run(run())


async def _talk(runtime: Runtime, session: Session, timeout: float | None) -> int:
    while True:
        line = await read_line("you> ")
        if line is None:
            return 0
        text = line.strip()
        if not text:
            continue
        if text in ("/quit", "/exit"):
            return 0
        try:
            async with interruptible(session, timeout):
                handled, prompt = await run_command(runtime, session, text)
                if handled and not prompt:
                    continue
                result = await session.prompt(prompt or text)
            if result.handled:
                Out.write(result.text)
            finish(result)
        except ModelError as error:
            warn(f"Error: {error}")
        except LamellaError as error:
            warn(f"Error: {error}" + (f"\n  {error.hint}" if error.hint else ""))


async def read_line(prompt: str) -> str | None:
    """A line from the user, with history and editing at a terminal; None at the end of input."""
    terminal = sys.stdin.isatty()
    if terminal:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 - gives input() editing and history

    def read() -> str | None:
        if not terminal:
            line = sys.stdin.readline()
            return line if line else None
        sys.stderr.flush()
        try:
            return input(prompt)
        except EOFError:
            return None

    return await asyncio.to_thread(read)


class Asking:
    """Asks before a tool that writes. "always" is remembered for the conversation."""

    def __init__(self) -> None:
        self.allowed: set[str] = set()
        self._one_at_a_time = asyncio.Lock()

    async def confirm(self, tool: Tool, arguments: Mapping[str, object]) -> bool:
        if tool.name in self.allowed or tool.owner == "memory-core":
            return True
        async with self._one_at_a_time:
            if not sys.stdin.isatty():
                warn(f"{tool.name} was not run: there is nobody to ask (tools.allow_without_asking allows it)")
                return False
            warn(f"{tool.name} {short_arguments(arguments)}")
            answer = (await read_line("run it? [y]es, [a]lways, [n]o: ") or "").strip().lower()
        if answer in ("a", "always"):
            self.allowed.add(tool.name)
        return answer in ("y", "yes", "a", "always")
