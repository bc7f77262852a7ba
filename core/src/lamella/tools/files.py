"""Changing files: ordinary ones atomically, memory files only through their writer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamella.errors import LamellaError, ToolError
from lamella.memory.hunks import content_hash
from lamella.memory.paths import memory_name
from lamella.memory.writer import MemoryWriter
from lamella.text.files import write_atomic
from lamella.tools.schemas import parameters, string
from lamella.tools.workspace import Workspace
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext


class FileChanger:
    """Writes files of a workspace, one change at a time."""

    def __init__(self, workspace: Workspace, memory_writer: MemoryWriter | None = None) -> None:
        self.workspace = workspace
        self.lock = threading.Lock()  # tools run in threads; an edit reads, thinks and writes
        self._memory_writer = memory_writer

    def save(self, path: Path, data: bytes, before: bytes | None, tool: str, context: ToolContext) -> None:
        """Put `data` in place of `before` (None: no file). The caller holds `lock`."""
        memory = memory_name(self.workspace.root, path)
        if memory is not None:
            self._save_memory(memory, data, before, tool, context)
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, data)
        except OSError as error:
            raise ToolError(f"Cannot write {self.workspace.display(path)}: {error.strerror}") from error

    def _save_memory(self, name: str, data: bytes, before: bytes | None, tool: str, context: ToolContext) -> None:
        if self._memory_writer is None:
            raise ToolError(f"{name} is a memory file and no memory writer is at hand; it was not changed")
        expected = None if before is None else content_hash(before)
        provenance = context.provenance(tool)
        try:
            self._memory_writer.replace(name, data.decode("utf-8"), expected, provenance)
        except LamellaError as error:
            raise ToolError(f"{name} was not changed: {error}") from error


def encode(text: str, shown: str) -> bytes:
    """UTF-8 bytes of a model's text. Raises `ToolError` for halves of characters."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(f"The text for {shown} holds half of a character (a lone surrogate); send it again") from None


def write_tool(changer: FileChanger) -> Tool:
    """The tool `write`: a whole file, atomically, with its folders."""

    def write(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        raw = arguments["path"]
        path = changer.workspace.resolve(raw)
        if path.is_dir():
            raise ToolError(f"{raw} is a directory, not a file")
        data = encode(arguments["content"], raw)
        with changer.lock:
            changer.save(path, data, _current(path, raw), "write", context)
        return ToolResult(f"Wrote {len(data)} bytes to {changer.workspace.display(path)}.")

    return Tool(
        name="write",
        label="Write a file",
        description="Write a text file in the workspace. Creates missing folders; replaces an existing file whole.",
        parameters=parameters(
            ("path", "content"),
            path=string("File to write, relative to the workspace"),
            content=string("The file's whole content"),
        ),
        run=write,
        writes=True,
        owner="core",
    )


def _current(path: Path, shown: str) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"Cannot replace {shown}: {error.strerror}") from error
