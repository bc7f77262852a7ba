"""`lamella mcp`: the agent's memory for other programs, over the Model Context Protocol."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lamella.cli.common import CommonOptions, agent_options, open_runtime, warn
from lamella.cli.exit_codes import say_error
from lamella.errors import LamellaError, MissingExtra

if TYPE_CHECKING:
    from lamella.mcp.http import Place
    from lamella.mcp.memory import AgentMemory

EXTRA = "lamella[mcp]"
LEAST_SDK = (2, 3)
_FOR_HTTP = ("host", "port", "token_file", "allow_host")


@click.command("mcp")
@agent_options
@click.option("--read-only", is_flag=True, help="Leave out memory_append.")
@click.option("--shared", is_flag=True, help="Leave out what is private: MEMORY.md, transcripts, notes of sessions.")
@click.option("--http", "over_http", is_flag=True, help="Serve over HTTP, at the path /mcp, instead of stdio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8177, show_default=True, help="With --http: port; 0: a free one."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --http: file with the token that clients must show. Or LAMELLA_MCP_TOKEN.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="With --http: a name that clients use for this machine. May be repeated.",
)
@click.pass_context
def mcp(
    ctx: click.Context,
    common: CommonOptions,
    read_only: bool,
    shared: bool,
    over_http: bool,
    host: str,
    port: int,
    token_file: Path | None,
    allow_host: tuple[str, ...],
) -> None:
    """Serve memory to other programs over the Model Context Protocol.

    Over stdio the server ends with its input. Ctrl-C and a termination signal end it too, with exit
    code 0.
    """
    if not over_http:
        given = [name for name in _FOR_HTTP if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT]
        if given:
            raise click.UsageError(f"--{given[0].replace('_', '-')} goes with --http")
    _need_sdk()
    place = _place(host, port, token_file, allow_host) if over_http else None
    _log_to_stderr(common)
    runtime = open_runtime(common, need_workspace=True)
    try:
        from lamella.mcp.memory import AgentMemory
        from lamella.mcp.server import make_server

        memory = AgentMemory(runtime, shared=shared)
        server = make_server(memory, read_only=read_only)
        if place is not None:
            from lamella.mcp.http import run_http

            _open_ahead(memory)
            run_http(server, place, lambda address: click.echo(f"lamella mcp: listening on {address}", err=True))
        else:
            from lamella.mcp.stdio import run_stdio

            if sys.stdin.isatty():
                click.echo("lamella mcp: for programs, which start it themselves; Ctrl-C ends it", err=True)
            run_stdio(server, lambda: _open_ahead(memory))
    finally:
        runtime.close()


def _need_sdk() -> None:
    """Raises `MissingExtra` unless the SDK is installed, in a version that has what is used here."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("mcp")
    except PackageNotFoundError:
        raise MissingExtra("lamella mcp", EXTRA) from None
    release = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if release < LEAST_SDK:
        least = ".".join(map(str, LEAST_SDK))
        raise MissingExtra(f"lamella mcp (mcp {found} is installed, expected {least} or newer)", EXTRA)


def _place(host: str, port: int, token_file: Path | None, names: tuple[str, ...]) -> Place:
    """Where to listen. Raises `UsageError` for a place that is not safe."""
    from lamella.mcp.http import Place, check_place
    from lamella.mcp.token import VARIABLE, check_token, read_token, readable_by_others

    token = ""
    if token_file is not None:
        token = read_token(token_file)
        if os.name != "nt" and readable_by_others(token_file):
            warn(f"warning: other users can read {token_file}; `chmod 600` keeps it yours")
    elif text := os.environ.get(VARIABLE, ""):
        token = check_token(text, VARIABLE)
    place = Place(host, port, token, names)
    check_place(place)
    return place


def _log_to_stderr(common: CommonOptions) -> None:
    """A server runs where nobody passes -v: its warnings are shown anyway."""
    if not common.verbose:
        handler = logging.StreamHandler(sys.stderr)
        handler.setLevel(logging.WARNING)
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        logging.getLogger().addHandler(handler)


def _open_ahead(memory: AgentMemory) -> None:
    """Open memory beside the first messages, and say at once why it cannot be had; the tools say it too."""
    from lamella.plugins.threads import start

    def opened() -> None:
        try:
            memory.open()
        except LamellaError as error:
            say_error(error)

    start(opened)
