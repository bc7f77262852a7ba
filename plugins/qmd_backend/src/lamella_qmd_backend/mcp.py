"""One `qmd mcp` for the searches of a program: a child that reads requests from stdin, one JSON line each.

It ends by itself when lamella does, since its stdin closes then.
"""

from __future__ import annotations

import json
import os
import selectors
import time
from collections.abc import Mapping, Sequence
from typing import Any

from lamella_qmd_backend.faults import Kind, QmdFailed, first_line, kind_of
from lamella_qmd_backend.output import Result, results_of
from lamella_qmd_backend.questions import Sub
from lamella_qmd_backend.runner import INDEX, Runner, ends_before, exit_code

MOST_SUBS = 10  # QMD refuses more in one request
_PROTOCOL = "2025-06-18"


class NoServer(Exception):
    """This qmd does not serve what is needed; its command line may. `for_good`: it never will."""

    def __init__(self, reason: str, *, for_good: bool = True) -> None:
        super().__init__(reason)
        self.for_good = for_good


class McpChild:
    """A running `qmd mcp`. Calls come one at a time."""

    def __init__(self, runner: Runner, cap: int, deadline: float) -> None:
        """Start it. Raises `NoServer` when it does not serve structured queries, `QmdFailed` when it
        cannot be started, or not in time."""
        self._runner = runner
        self._cap = cap
        self._last_id = 0
        self._rest = b""
        self._process = runner.start(*INDEX, "mcp", talk=True)
        try:
            self._begin(deadline)
        except QmdFailed as failed:
            code = exit_code(self._process)
            self.close()
            if failed.kind is Kind.TIME:
                raise
            raise NoServer(str(failed), for_good=code is None or 0 <= code <= 128) from failed
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        return exit_code(self._process) is None

    def query(self, subs: Sequence[Sub], collections: Sequence[str], limit: int, deadline: float) -> list[Result]:
        """The results of at most `MOST_SUBS` searches, fused. Raises `QmdFailed`."""
        arguments = {
            "searches": [{"type": sub.kind, "query": sub.text} for sub in subs],
            "collections": list(collections),
            "limit": limit,
            "rerank": False,  # it needs a model
        }
        answer = self._tool("query", arguments, deadline).get("structuredContent")
        items = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(items, list):
            raise QmdFailed("qmd mcp gave no answer that can be read", Kind.OUTPUT)
        return results_of(items)

    def folders(self, deadline: float) -> dict[str, str]:
        """The folders of all collections by name: they tell whose index this is. Raises `QmdFailed`."""
        answer = self._tool("status", {}, deadline).get("structuredContent")
        rows = answer.get("collections") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise QmdFailed("qmd mcp gave no status that can be read", Kind.OUTPUT)
        return {str(row.get("name")): str(row.get("path")) for row in rows if isinstance(row, dict)}

    def close(self) -> None:
        self._runner.finish(self._process)

    def _begin(self, deadline: float) -> None:
        client = {"name": "lamella", "version": "0.1"}
        self._request("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}, deadline)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"}, deadline)
        tools = self._request("tools/list", {}, deadline).get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and tool.get("name") == "query" and "searches" in json.dumps(tool):
                return
        raise NoServer("its MCP server has no tool for structured queries")

    def _tool(self, name: str, arguments: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        result = self._request("tools/call", {"name": name, "arguments": arguments}, deadline)
        if result.get("isError"):
            told = json.dumps(result.get("content"), ensure_ascii=False)
            texts = [part.get("text", "") for part in result.get("content") or () if isinstance(part, dict)]
            raise QmdFailed(f"qmd mcp failed: {first_line(chr(10).join(texts)) or told[:200]}", kind_of(told))
        return result

    def _request(self, method: str, parameters: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": parameters}, deadline)
        while True:
            answer = self._receive(deadline)
            if answer.get("id") != self._last_id:
                continue
            if isinstance(error := answer.get("error"), dict):
                told = str(error.get("message"))
                raise QmdFailed(f"qmd mcp failed: {first_line(told)}", kind_of(told))
            result = answer.get("result")
            if not isinstance(result, dict):
                raise QmdFailed("qmd mcp gave an answer without a result", Kind.OUTPUT)
            return result

    def _send(self, message: Mapping[str, Any], deadline: float) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        data = memoryview(json.dumps(message).encode() + b"\n")
        os.set_blocking(pipe.fileno(), False)
        while data:
            self._wait(pipe.fileno(), selectors.EVENT_WRITE, deadline)
            try:
                data = data[os.write(pipe.fileno(), data) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise self._gone() from error

    def _receive(self, deadline: float) -> dict[str, Any]:
        """The next message; lines that are none are passed over."""
        pipe = self._process.stdout
        assert pipe is not None
        while True:
            line, newline, rest = self._rest.partition(b"\n")
            if newline:
                self._rest = rest
                try:
                    value = json.loads(line.decode("utf-8", "replace"))
                except (ValueError, RecursionError):
                    continue
                if isinstance(value, dict):
                    return value
                continue
            if len(self._rest) > self._cap:
                raise QmdFailed("qmd mcp gave more output than expected", Kind.OUTPUT)
            self._wait(pipe.fileno(), selectors.EVENT_READ, deadline)
            try:
                data = os.read(pipe.fileno(), 1 << 16)
            except OSError as error:
                raise self._gone() from error
            if not data:
                raise self._gone()
            self._rest += data

    def _wait(self, fd: int, event: int, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            try:
                selector.register(fd, event)
            except ValueError as error:  # closed by another thread
                raise self._gone() from error
            while not selector.select(min(0.5, max(0.0, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    raise QmdFailed("qmd mcp took too long", Kind.TIME)

    def _gone(self) -> QmdFailed:
        ends_before(self._process, time.monotonic() + 0.5)
        code = exit_code(self._process)
        if code is None:
            return QmdFailed("qmd mcp closed its pipes")
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return QmdFailed(f"qmd mcp {how}")
