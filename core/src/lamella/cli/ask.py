"""`lamella ask`: one question, one answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lamella.cli.choice import SessionChoice, session_options
from lamella.cli.common import CommonOptions, Out, agent_options, argument_text, json_option, open_runtime, warn
from lamella.cli.exit_codes import INTERRUPTED, say_error
from lamella.cli.render import Renderer
from lamella.cli.turns import interruptible, load_images
from lamella.errors import UsageError
from lamella.types.events import Notice
from lamella.types.message_json import dump_usage

if TYPE_CHECKING:
    from lamella.agent.turn import TurnResult
    from lamella.runtime import Runtime


@click.command()
@click.argument("text")
@agent_options
@session_options
@click.option("--image", type=click.Path(path_type=Path, dir_okay=False), multiple=True, help="Add an image file.")
@click.option("-q", "--quiet", is_flag=True, help="Only warnings and errors on stderr.")
@json_option
def ask(
    common: CommonOptions,
    text: str,
    wanted: SessionChoice,
    image: tuple[Path, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Ask one question and print the answer. TEXT - reads the question from standard input.

    /new or /reset before it begins a new session, also alone.

    Tools that write files run without asking; `--no-plugin` and `tools.deny` restrict them.
    """
    text = sys.stdin.read() if text == "-" else argument_text(text)
    if not text.strip():
        raise UsageError("the question is empty")
    images = load_images(image)
    runtime = open_runtime(common, model=wanted.model, system_prompt=wanted.system)
    stream = Out.is_terminal() and not as_json
    runtime.listeners.append(Renderer(stream=stream, quiet=quiet or as_json))
    told: list[Notice] = []
    runtime.listeners.append(lambda event: told.append(event) if isinstance(event, Notice) else None)

    async def run() -> TurnResult:
        async with runtime, wanted.open(runtime) as session:
            say_if_no_memory(runtime)
            async with interruptible(session, wanted.timeout):
                return await session.receive(text, images=images)

    result = asyncio.run(run())
    if as_json:
        Out.json(result_json([*runtime.notices, *(n for n in told if n not in runtime.notices)], result))
    elif result.text and (not stream or result.handled):
        Out.write(result.text)
    return finish(result)


def say_if_no_memory(runtime: Runtime) -> None:
    """One line when the agent has no memory and nobody chose that."""
    slot = runtime.settings.plugins.slots.memory
    if runtime.memory is not None or slot == "none":
        return
    there = any(record.name == slot and record.state != "off" for record in runtime.catalog.records)
    if there or any("plugins.slots.memory" in notice.message for notice in runtime.notices):
        runtime.notify("no_memory", "going on without memory")  # why has been told already
    else:
        runtime.notify("no_memory", f"no memory is installed; to add one: pip install lamella-{slot}")


def finish(result: TurnResult) -> int:
    """The exit code of a turn; its error goes to stderr."""
    if result.error is None:
        if not (result.text or result.silent or result.handled):
            warn("The model gave no answer.")
        return 0
    if result.aborted:
        warn("Interrupted; what had arrived is kept.")
        return INTERRUPTED
    say_error(result.error)
    return result.error.exit_code


def result_json(notices: Sequence[Notice], result: TurnResult) -> dict[str, Any]:
    reply = result.reply
    error = result.error
    return {
        "text": result.text,
        "sessionId": result.session_id,
        "provider": reply.provider if reply else None,
        "model": reply.model if reply else None,
        "stopReason": reply.stop_reason if reply else None,
        "usage": dump_usage(result.usage),
        "compactions": result.compactions,
        "silent": result.silent,
        "notices": [{"code": n.code, "message": n.message} for n in notices],
        "error": {"type": type(error).__name__, "message": str(error)} if error else None,
    }
