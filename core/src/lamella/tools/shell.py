"""The tool `exec`: a shell command in the workspace.

Output goes to a file, not through a pipe: a command that leaves a process behind then cannot keep
the call waiting, and no amount of output fills memory.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from lamella.errors import ToolError
from lamella.text.truncate import MAX_BYTES, Truncation, format_size, truncate_tail
from lamella.tools.read import facts
from lamella.tools.schemas import parameters, string
from lamella.tools.workspace import Workspace
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext

MAX_OUTPUT_FILE_BYTES = 256 * 1024 * 1024
_POLL_SECONDS = 0.05
_UPDATE_SECONDS = 1.0
_READ_BYTES = 4 * 1024 * 1024
_COUNT_BYTES = 1024 * 1024
# Colours and cursor movement, and control characters other than tab and line ends.
_TERMINAL_CODES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f]")


@frozen(slots=True)
class _Ending:
    """How a command ended: its exit code, or why it was killed."""

    exit_code: int | None
    killed: str = ""


def exec_tool(workspace: Workspace) -> Tool:
    """The tool. Commands run with the rights and the environment of lamella itself."""

    async def run(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        descriptor, name = tempfile.mkstemp(prefix="lamella-exec-", suffix=".log")
        output = Path(name)
        keep = False
        try:
            try:
                ending = await _run(arguments["command"], workspace.root, descriptor, output, arguments, context)
            finally:
                os.close(descriptor)
            result, keep = _result(output, ending)
            return result
        finally:
            if not keep:
                output.unlink(missing_ok=True)

    return Tool(
        name="exec",
        label="Run a command",
        description=(
            "Run a shell command in the workspace and show its output (standard output and error together). "
            "Long output is cut from the front and kept whole in a file. There is no time limit unless you set one."
        ),
        parameters=parameters(
            ("command",),
            command=string("Command for the shell"),
            timeout={"type": "number", "exclusiveMinimum": 0, "description": "Seconds after which it is killed"},
        ),
        run=run,
        writes=True,
        owner="core",
    )


async def _run(
    command: str, folder: Path, descriptor: int, output: Path, arguments: Mapping[str, Any], context: ToolContext
) -> _Ending:
    shell = shutil.which("bash") or "/bin/sh"
    try:
        process = await asyncio.create_subprocess_exec(
            shell,
            "-c",
            command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,  # a group of its own, so that all of it can be killed
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"The command could not be started: {error}") from error
    try:
        return await _watch(process, output, arguments.get("timeout"), context)
    finally:
        if process.returncode is None:
            _kill_group(process.pid)
            await process.wait()


async def _watch(
    process: asyncio.subprocess.Process, output: Path, timeout: float | None, context: ToolContext
) -> _Ending:
    """Wait for the end of the command, or for a reason to kill it."""
    exited = asyncio.create_task(process.wait())
    try:
        deadline = time.monotonic() + timeout if timeout else None
        next_update = time.monotonic() + _UPDATE_SECONDS
        while True:
            await asyncio.wait({exited}, timeout=_POLL_SECONDS)
            if exited.done():
                return _Ending(process.returncode)
            if context.cancelled.is_set():
                return _Ending(None, "Command aborted")
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return _Ending(None, f"Command timed out after {timeout:g} seconds")
            if output.stat().st_size > MAX_OUTPUT_FILE_BYTES:
                return _Ending(None, f"Command killed: more than {format_size(MAX_OUTPUT_FILE_BYTES)} of output")
            if now >= next_update:
                next_update = now + _UPDATE_SECONDS
                context.update(ToolResult(_tail(output).content))
    finally:
        exited.cancel()


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself in between


def _result(output: Path, ending: _Ending) -> tuple[ToolResult, bool]:
    """The result, and whether the file with the full output is still needed."""
    cut = _tail(output)
    text = cut.content
    details: dict[str, Any] = {}
    if cut.truncated:
        first = cut.total_lines - cut.output_lines + 1
        details = {"truncation": facts(cut), "fullOutputPath": str(output)}
        text += f"\n\n[{_shown_part(cut, first)}. Full output: {output}]"
    ended = _ended(ending)
    if ended:
        text = f"{text.rstrip()}\n\n{ended}" if text.strip() else ended
    if ending.exit_code is not None:
        details["exitCode"] = ending.exit_code
    return ToolResult(text or "(no output)", details, is_error=bool(ended)), cut.truncated


def _ended(ending: _Ending) -> str:
    if ending.killed:
        return ending.killed
    code = ending.exit_code or 0
    if code < 0:
        return f"Command was killed by signal {-code}"
    return f"Command exited with code {code}" if code else ""


def _shown_part(cut: Truncation, first: int) -> str:
    if cut.last_line_partial:
        return f"Showing the last {format_size(cut.output_bytes)} of line {cut.total_lines}"
    by_bytes = f" ({format_size(MAX_BYTES)} limit)" if cut.truncated_by == "bytes" else ""
    return f"Showing lines {first}-{cut.total_lines} of {cut.total_lines}{by_bytes}"


def _tail(output: Path) -> Truncation:
    """The end of the output, within the common limits."""
    size = output.stat().st_size
    with output.open("rb") as file:
        file.seek(max(size - _READ_BYTES, 0))
        text = file.read().decode("utf-8", errors="replace")
    cut = truncate_tail(_TERMINAL_CODES.sub("", text))
    return evolve(cut, total_lines=_count_lines(output), total_bytes=size) if size > _READ_BYTES else cut


def _count_lines(output: Path) -> int:
    count, last = 0, b"\n"
    with output.open("rb") as file:
        while piece := file.read(_COUNT_BYTES):
            count += piece.count(b"\n")
            last = piece[-1:]
    return count + (last != b"\n")
