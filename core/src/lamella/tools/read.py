"""The tools `read` and `ls`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamella.errors import ToolError
from lamella.text.truncate import (
    MAX_BYTES,
    MAX_LINES,
    Truncation,
    format_size,
    split_lines,
    truncate_head,
    utf8_length,
)
from lamella.tools.schemas import integer, parameters, string
from lamella.tools.workspace import Workspace, read_file
from lamella.types.messages import ImageBlock, TextBlock
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext

MAX_IMAGE_BYTES = int(4.5 * 1024 * 1024)  # encoded; the strictest provider takes 5 MB
MAX_TEXT_FILE_BYTES = 64 * 1024 * 1024
MAX_ENTRIES = 500
SNIFFED_BYTES = 8192  # of a file's beginning, to tell what it is


def read_tool(workspace: Workspace, *, exec_enabled: bool) -> Tool:
    """The tool `read`: a text file within limits, or an image."""

    def read(arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        path = workspace.file(arguments["path"])
        shown = workspace.display(path)
        start = read_file(path, shown, SNIFFED_BYTES)
        mime_type = image_type(start)
        if mime_type:
            return _image(path, shown, mime_type)
        if is_binary(start):
            raise ToolError(
                f"{shown} is a binary file ({format_size(path.stat().st_size)}); read shows text and images"
            )
        text = _text(path, shown)
        return _window(text, arguments.get("offset") or 1, arguments.get("limit"), shown, exec_enabled)

    return Tool(
        name="read",
        label="Read a file",
        description=(
            f"Read a file of the workspace. Text is cut to {MAX_LINES} lines or {format_size(MAX_BYTES)}, whichever "
            "comes first; go on with offset. Images (png, jpg, gif, webp) are shown to you."
        ),
        parameters=parameters(
            ("path",),
            path=string("File to read, relative to the workspace"),
            offset=integer("Line to start at, counted from 1"),
            limit=integer("Most lines to show", minimum=1),
        ),
        run=read,
        owner="core",
    )


def ls_tool(workspace: Workspace) -> Tool:
    """The tool `ls`: the names in one folder."""

    def ls(arguments: Mapping[str, Any], _context: ToolContext) -> ToolResult:
        raw = arguments.get("path") or "."
        limit = arguments.get("limit") or MAX_ENTRIES
        folder = workspace.folder(raw)
        try:
            entries = sorted(folder.iterdir(), key=lambda entry: (entry.name.casefold(), entry.name))
        except OSError as error:
            raise ToolError(f"Cannot list {raw}: {error.strerror}") from error
        names = [entry.name + ("/" if entry.is_dir() else "") for entry in entries[:limit]]
        if not names:
            return ToolResult("(empty directory)")
        notes, details = [], {}
        if len(entries) > limit:
            notes.append(f"{limit} entries limit reached. Use limit={limit * 2} for more")
            details["entryLimitReached"] = limit
        return listing("\n".join(names), notes, details)

    return Tool(
        name="ls",
        label="List a folder",
        description=f"List the names in a folder, hidden ones too, folders with a slash (at most {MAX_ENTRIES}).",
        parameters=parameters(
            path=string("Folder, relative to the workspace (default: the workspace itself)"),
            limit=integer("Most entries to show", minimum=1),
        ),
        run=ls,
        owner="core",
    )


def listing(text: str, notes: list[str], details: dict[str, Any]) -> ToolResult:
    """A list as a result: cut to the byte limit, notes in brackets at the end."""
    cut = truncate_head(text, max_lines=len(split_lines(text)))
    if cut.truncated:
        notes = [*notes, f"{format_size(MAX_BYTES)} limit reached"]
        details = {**details, "truncation": facts(cut)}
    body = f"{cut.content}\n\n[{'. '.join(notes)}]" if notes else cut.content
    return ToolResult(body, details or None)


def facts(cut: Truncation) -> dict[str, Any]:
    """What is told about a cut beside the text itself, which the result already holds."""
    return {key: value for key, value in cut.to_json().items() if key != "content"}


def is_binary(start: bytes) -> bool:
    """Whether a file that begins with these bytes is no text."""
    return b"\0" in start


def image_type(start: bytes) -> str | None:
    """The MIME type of an image that models can see, told by its first bytes."""
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return None


def _image(path: Path, shown: str, mime_type: str) -> ToolResult:
    encoded_size = -(-path.stat().st_size // 3) * 4
    if encoded_size > MAX_IMAGE_BYTES:
        raise ToolError(
            f"{shown} is too large to show: {format_size(encoded_size)} when encoded, "
            f"at most {format_size(MAX_IMAGE_BYTES)}. lamella does not resize images; make a smaller copy first."
        )
    data = base64.b64encode(read_file(path, shown)).decode("ascii")
    return ToolResult((TextBlock(f"Image {shown} [{mime_type}]"), ImageBlock(data, mime_type)))


def _text(path: Path, shown: str) -> str:
    size = path.stat().st_size
    if size > MAX_TEXT_FILE_BYTES:
        raise ToolError(
            f"{shown} has {format_size(size)}; read takes files up to {format_size(MAX_TEXT_FILE_BYTES)}. "
            "Search it with grep."
        )
    return read_file(path, shown).decode("utf-8", errors="replace")


def _window(text: str, first: int, limit: int | None, shown: str, exec_enabled: bool) -> ToolResult:
    """Lines from `first` on, at most `limit`, cut to the common limits, with a note on how to go on."""
    lines = split_lines(text)
    total = len(lines)
    if first > max(total, 1):
        raise ToolError(f"Offset {first} is beyond end of file ({total} lines total)")
    stop = total if limit is None else min(first - 1 + limit, total)
    selected = "\n".join(lines[first - 1 : stop])
    if stop == total and text.endswith("\n"):
        selected += "\n"
    cut = truncate_head(selected)
    if cut.first_line_exceeds_limit:
        return ToolResult(_long_line_note(first, lines[first - 1], shown, exec_enabled), {"truncation": facts(cut)})
    last = first + cut.output_lines - 1
    if cut.output_lines < cut.total_lines:
        by_bytes = f" ({format_size(MAX_BYTES)} limit)" if cut.truncated_by == "bytes" else ""
        note = f"\n\n[Showing lines {first}-{last} of {total}{by_bytes}. Use offset={last + 1} to continue.]"
        return ToolResult(cut.content + note, {"truncation": facts(cut)})
    if stop < total:
        note = f"\n\n[{total - stop} more lines in file. Use offset={stop + 1} to continue.]"
        return ToolResult(cut.content + note)
    return ToolResult(cut.content)


def _long_line_note(number: int, line: str, shown: str, exec_enabled: bool) -> str:
    advice = "Search it with grep."
    if exec_enabled:
        advice = f"Use exec: sed -n '{number}p' {shown} | head -c {MAX_BYTES}"
    return f"[Line {number} is {format_size(utf8_length(line))}, exceeds {format_size(MAX_BYTES)} limit. {advice}]"
