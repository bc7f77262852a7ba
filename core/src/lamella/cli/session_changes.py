"""`lamella sessions reset`, `compact`, `rename`: what changes one session."""

from __future__ import annotations

import asyncio

import click

from lamella.cli.common import CommonOptions, Out, agent_options, argument_text, json_option, open_runtime, warn
from lamella.cli.session_upkeep import NOT_DONE, yes_option


@click.command()
@click.argument("key", default="")
@agent_options
@yes_option
@json_option
def reset(common: CommonOptions, key: str, yes: bool, as_json: bool) -> None:
    """Begin a new session under a KEY, as /new does. The old transcript is put aside."""
    runtime = open_runtime(common, need_workspace=True)
    located = runtime.store.require(runtime.key(key))
    before = str(located.entry.get("sessionId") or "")

    async def run() -> str:
        async with runtime, runtime.session(located.key) as session:
            session.reset()
            return await session.begin()

    after = asyncio.run(run()) if yes else None
    if as_json:
        Out.json({"done": yes, "key": located.key, "previousSessionId": before, "sessionId": after})
    elif yes:
        Out.write(f"{located.key} has session {after} now; it had {before}.")
    else:
        Out.write(f"{located.key} would leave session {before} ({located.path.name}). {NOT_DONE}")


@click.command()
@click.argument("key", metavar="KEY")
@click.argument("instructions", default="")
@agent_options
@click.option("--model", default="", metavar="PROVIDER/MODEL", help="Model to use.")
@json_option
def compact(common: CommonOptions, key: str, instructions: str, model: str, as_json: bool) -> int:
    """Compact a session's history now; INSTRUCTIONS say what the summary should pay attention to.

    The transcript keeps everything. Exit code 1 when nothing was compacted.
    """
    runtime = open_runtime(common, model=model, need_workspace=True)
    located = runtime.store.require(runtime.key(key))

    async def run() -> tuple[str, int, int, str | None]:
        async with runtime, runtime.session(located.key) as session:
            outcome = await session.compact(argument_text(instructions))
            return outcome.error, outcome.tokens_before, outcome.tokens_after, outcome.entry_id

    error, before, after, entry_id = asyncio.run(run())
    if as_json:
        fields = {"key": located.key, "entryId": entry_id, "tokensBefore": before, "tokensAfter": after}
        Out.json({**fields, "error": error or None})
    elif error:
        warn(f"{located.key}: {error}")
    else:
        Out.write(f"{located.key}: {before} tokens became {after}.")
    return 1 if error else 0


@click.command()
@click.argument("key", metavar="KEY")
@click.argument("name", metavar="NAME")
@agent_options
def rename(common: CommonOptions, key: str, name: str) -> None:
    """Give a session a NAME for people; an empty one takes it away. The key stays."""
    runtime = open_runtime(common)
    located = runtime.store.require(runtime.key(key))
    label = " ".join(argument_text(name).split())
    with runtime.store.lock(located):
        if located.path.is_file():
            file = runtime.store.open(located, cwd=str(runtime.workspace))
            try:
                file.set_name(label)
            finally:
                file.close()
        runtime.store.index.patch(located.key, {"label": label or None}, touch=False)
    Out.write(f"{located.key} is called {label}." if label else f"{located.key} has no name.")
