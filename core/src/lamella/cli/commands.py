"""Slash commands of chat."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING

from lamella.cli.common import Out, warn
from lamella.cli.status import memory_backend, status_text
from lamella.config.structure import near_match
from lamella.errors import LamellaError
from lamella.plugins.threads import describe
from lamella.sessions.status import session_status

if TYPE_CHECKING:
    from lamella.runtime import Runtime
    from lamella.session import Session
    from lamella.types.hooks import Command

log = logging.getLogger(__name__)

BUILT_IN = {
    "help": "this list",
    "new": "start a new session; text after it is its first message",
    "reset": "the same as /new",
    "compact": "compact the history now; text after it says what to pay attention to",
    "status": "how full the session is",
    "context": "what the next request would contain",
    "memory": "search memory for the text after it",
    "quit": "leave",
}


async def run_command(runtime: Runtime, session: Session, text: str) -> bool:
    """Run a slash command. Returns whether it was one; requests for a new session are the session's own business."""
    if not text.startswith("/") or text.startswith("//") or session.reset_request(text) is not None:
        return False
    word, _, rest = text[1:].partition(" ")
    name, rest = word.lower().removesuffix(":"), rest.strip()
    if name == "help":
        Out.write(help_text(runtime))
    elif name == "compact":
        await session.compact(rest)  # its events say how it went
    elif name == "status":
        found = runtime.store.locate(session.key)
        if found is None:
            Out.write("This session has not started yet.")
        else:
            state = session_status(found, runtime.settings, memory_backend(runtime))
            Out.write(status_text(state, runtime.agent.timezone))
    elif name == "context":
        from lamella.cli.common import print_table
        from lamella.cli.context import OVERVIEW_HEADINGS, overview, overview_head, overview_rows

        found_context = await overview(runtime, session.key.text)
        Out.write(overview_head(found_context))
        print_table(overview_rows(found_context), OVERVIEW_HEADINGS)
    elif name == "memory":
        _search(runtime, rest)
    elif name in runtime.commands:
        await _run_of_plugin(runtime.commands[name], rest)
    else:
        known = [*BUILT_IN, *runtime.commands]
        warn(f"unknown command /{name}{near_match(name, known)}; /help lists the commands")
    return True


async def _run_of_plugin(command: Command, rest: str) -> None:
    """Run a plugin's command; what it raises is told, and the conversation goes on."""
    try:
        answer = command.run(rest)
        answer = await answer if inspect.isawaitable(answer) else answer
    except LamellaError:
        raise
    except (Exception, SystemExit) as error:
        log.warning("command /%s failed", command.name, exc_info=True)
        warn(f"command /{command.name} failed: {describe(error)}")
        return
    if answer:
        Out.write(str(answer))


def _search(runtime: Runtime, query: str) -> None:
    from lamella.types.memory import SearchQuery

    if not query:
        warn("/memory needs something to search for")
        return
    try:
        results = runtime.require_memory().search(SearchQuery(query))
    except LamellaError as error:
        warn(f"{error}" + (f" ({error.hint})" if error.hint else ""))
        return
    Out.write(
        "\n".join(f"{hit.citation}  {' '.join(hit.snippet.split())[:200]}" for hit in results.hits) or "nothing found"
    )


def help_text(runtime: Runtime) -> str:
    lines = [f"/{name:<10} {text}" for name, text in BUILT_IN.items()]
    lines += [f"/{name:<10} {command.summary}" for name, command in sorted(runtime.commands.items())]
    return "\n".join(lines)
