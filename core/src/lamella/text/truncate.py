"""Cutting long text to a number of lines and bytes, by whole lines."""

from __future__ import annotations

from typing import Any, Literal

from attrs import frozen

from lamella.text.javascript import cut_utf16, utf16_length

MAX_LINES = 2000
MAX_BYTES = 50 * 1024
MAX_LINE_CHARS = 500


@frozen(slots=True)
class Truncation:
    """A cut text and what was cut. Bytes are UTF-8; a final line feed does not start another line.

    `last_line_partial` is set when only the end of a last line that alone exceeds the limit was
    kept; `first_line_exceeds_limit` when the first line alone does, and nothing was kept.
    """

    content: str
    truncated: bool
    truncated_by: Literal["lines", "bytes"] | None
    total_lines: int
    total_bytes: int
    output_lines: int
    output_bytes: int
    max_lines: int
    max_bytes: int
    last_line_partial: bool = False
    first_line_exceeds_limit: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "content": self.content,
            "truncated": self.truncated,
            "truncatedBy": self.truncated_by,
            "totalLines": self.total_lines,
            "totalBytes": self.total_bytes,
            "outputLines": self.output_lines,
            "outputBytes": self.output_bytes,
            "lastLinePartial": self.last_line_partial,
            "firstLineExceedsLimit": self.first_line_exceeds_limit,
            "maxLines": self.max_lines,
            "maxBytes": self.max_bytes,
        }


def split_lines(text: str) -> list[str]:
    """Lines of a text, split at line feeds only; a final line feed ends the last line."""
    if not text:
        return []
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def utf8_length(text: str) -> int:
    """Length in UTF-8 bytes; lone surrogates count three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def truncate_head(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
    """Keep the first lines that fit. Nothing is kept when the first line alone is too long."""
    lines, total_bytes = split_lines(text), utf8_length(text)
    if len(lines) <= max_lines and total_bytes <= max_bytes:
        return _whole(text, len(lines), total_bytes, max_lines, max_bytes)
    kept, by_bytes = _fitting(lines, max_lines, max_bytes)
    content = "\n".join(kept)
    return Truncation(
        content=content,
        truncated=True,
        truncated_by="bytes" if by_bytes else "lines",
        total_lines=len(lines),
        total_bytes=total_bytes,
        output_lines=len(kept),
        output_bytes=utf8_length(content),
        max_lines=max_lines,
        max_bytes=max_bytes,
        first_line_exceeds_limit=bool(lines) and by_bytes and not kept,
    )


def truncate_tail(text: str, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Truncation:
    """Keep the last lines that fit. Of a last line that alone is too long, its end is kept."""
    lines, total_bytes = split_lines(text), utf8_length(text)
    if len(lines) <= max_lines and total_bytes <= max_bytes:
        return _whole(text, len(lines), total_bytes, max_lines, max_bytes)
    kept, by_bytes = _fitting(lines[::-1], max_lines, max_bytes)
    partial = by_bytes and not kept
    content = _last_bytes(lines[-1], max_bytes) if partial else "\n".join(reversed(kept))
    return Truncation(
        content=content,
        truncated=True,
        truncated_by="bytes" if by_bytes else "lines",
        total_lines=len(lines),
        total_bytes=total_bytes,
        output_lines=1 if partial else len(kept),
        output_bytes=utf8_length(content),
        max_lines=max_lines,
        max_bytes=max_bytes,
        last_line_partial=partial,
    )


def truncate_line(line: str, max_chars: int = MAX_LINE_CHARS) -> tuple[str, bool]:
    """A line cut to `max_chars` UTF-16 units with a mark behind it, and whether it was cut."""
    if utf16_length(line) <= max_chars:
        return line, False
    return f"{cut_utf16(line, max_chars)}... [truncated]", True


def format_size(size: int) -> str:
    """A number of bytes for people: `512B`, `1.5KB`, `2.0MB`."""
    if size < 1024:
        return f"{size}B"
    if size < 1024 * 1024:
        return f"{size / 1024:.1f}KB"
    return f"{size / (1024 * 1024):.1f}MB"


def _whole(text: str, lines: int, size: int, max_lines: int, max_bytes: int) -> Truncation:
    return Truncation(text, False, None, lines, size, lines, size, max_lines, max_bytes)


def _fitting(lines: list[str], max_lines: int, max_bytes: int) -> tuple[list[str], bool]:
    """The first lines within both limits, and whether it was the bytes that ended them."""
    kept: list[str] = []
    used = 0
    for line in lines[:max_lines]:
        size = utf8_length(line) + (1 if kept else 0)
        if used + size > max_bytes:
            return kept, True
        kept.append(line)
        used += size
    return kept, len(kept) == len(lines)  # all lines fit: only the final line feed did not


def _last_bytes(line: str, max_bytes: int) -> str:
    tail = line.encode("utf-8", "surrogatepass")[-max_bytes:] if max_bytes > 0 else b""
    start = 0
    while start < len(tail) and tail[start] & 0xC0 == 0x80:  # never begin inside a character
        start += 1
    return tail[start:].decode("utf-8", "surrogatepass")
