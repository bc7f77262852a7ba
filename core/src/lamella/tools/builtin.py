"""The tools that come with lamella: files of the workspace, the session's past, and a shell where it is allowed."""

from __future__ import annotations

from pathlib import Path

from lamella.memory.writer import MemoryWriter
from lamella.sessions.store import SessionStore
from lamella.tools.edit import edit_tool
from lamella.tools.files import FileChanger, write_tool
from lamella.tools.read import ls_tool, read_tool
from lamella.tools.recall import recall_tool
from lamella.tools.search import find_tool, grep_tool
from lamella.tools.shell import exec_tool
from lamella.tools.workspace import Workspace
from lamella.types.tools import Tool


def builtin_tools(
    workspace: Path,
    *,
    exec_enabled: bool,
    memory_writer: MemoryWriter | None = None,
    sessions: SessionStore | None = None,
) -> tuple[Tool, ...]:
    """`read`, `write`, `edit`, `grep`, `find`, `ls`, with `sessions` `session_recall`, and `exec` if it is enabled.

    File tools reach only files inside `workspace`. Memory files are changed through
    `memory_writer`; without one they can be read only. `exec` is not confined.
    """
    place = Workspace(workspace)
    changer = FileChanger(place, memory_writer)
    tools = (
        read_tool(place, exec_enabled=exec_enabled),
        write_tool(changer),
        edit_tool(changer),
        grep_tool(place),
        find_tool(place),
        ls_tool(place),
        *([recall_tool(sessions)] if sessions is not None else []),
    )
    return (*tools, exec_tool(place)) if exec_enabled else tools
