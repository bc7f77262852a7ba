"""Running `lamella mcp` as other programs do, with the SDK's own client on the other side."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
from attrs import frozen
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, InitializeResult

COMMAND = [sys.executable, "-m", "lamella", "mcp"]


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a server: no key, nothing of lamella's but its home."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.startswith("LAMELLA_")}
    return {**clean, "LAMELLA_HOME": str(home), **more}


@contextlib.asynccontextmanager
async def over_stdio(
    *arguments: str | Path,
    home: Path,
    command: str = sys.executable,
    first: tuple[str, ...] = ("-m", "lamella"),
    **env: str,
) -> AsyncIterator[tuple[ClientSession, InitializeResult]]:
    """A client of a server of its own."""
    command, *first = COMMAND
    started = StdioServerParameters(command=command, args=[*first, *map(str, arguments)], env=environment(home, **env))
    async with stdio_client(started) as (read, write), ClientSession(read, write) as session:
        yield session, await session.initialize()


@contextlib.asynccontextmanager
async def over_http(url: str, token: str = "") -> AsyncIterator[tuple[ClientSession, InitializeResult]]:
    """A client of a running server."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        streamable_http_client(url, http_client=http) as streams,
        ClientSession(*streams[:2]) as session,
    ):
        yield session, await session.initialize()


@frozen
class HttpServer:
    """A server that listens at `url`."""

    url: str
    process: subprocess.Popen[bytes]

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].split("/")[0])


@contextlib.contextmanager
def serving(*arguments: str | Path, home: Path, **env: str) -> Iterator[HttpServer]:
    """A server over HTTP on a free port."""
    command = [*COMMAND, "--http", "--port", "0", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment(home, **env))
    assert process.stderr is not None
    said = []
    try:
        for line in process.stderr:
            said.append(line.decode())
            if "listening on " in said[-1]:
                break
        assert said and "listening on " in said[-1], said
        threading.Thread(target=process.stderr.read, daemon=True).start()  # or it would wait for a reader
        yield HttpServer(said[-1].split("listening on ")[1].strip(), process)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def text_of(result: CallToolResult) -> str:
    """What a model is shown of a result."""
    return "\n".join(block.text for block in result.content if block.type == "text")


def answer(result: CallToolResult) -> Any:
    """The structured answer of a call that succeeded, which is also its text."""
    assert not result.is_error, text_of(result)
    assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def lines(*messages: dict[str, Any]) -> bytes:
    """Messages as they go over stdio, after the handshake."""
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return b"".join(json.dumps(m, ensure_ascii=False).encode() + b"\n" for m in (INITIALIZE, ready, *messages))


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    """A request to call a tool."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
