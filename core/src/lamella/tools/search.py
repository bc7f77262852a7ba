"""The tools `grep` and `find`, without outside programs."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from lamella.errors import ToolError
from lamella.text.files import split_lines
from lamella.text.truncate import MAX_LINE_CHARS, format_size, truncate_line
from lamella.tools.globs import glob_regex, matches_glob
from lamella.tools.patterns import search_pattern
from lamella.tools.read import SNIFFED_BYTES, is_binary, listing
from lamella.tools.schemas import boolean, integer, parameters, string
from lamella.tools.walk import Found, walk
from lamella.tools.workspace import Workspace, read_file
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext

MAX_MATCHES = 100
MAX_FOUND = 1000
MAX_SECONDS = 30.0
MAX_FILE_BYTES = 16 * 1024 * 1024
_MAX_CONTEXT = 50
_SEARCHED_CHARS = 10_000  # of one line; bounds what a costly pattern can do


def grep_tool(workspace: Workspace) -> Tool:
    """The tool `grep`: lines that match a pattern, in text files that .gitignore does not leave out."""

    def grep(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        start = workspace.existing(arguments.get("path") or ".")
        search = _Search(
            pattern=search_pattern(
                arguments["pattern"],
                literal=bool(arguments.get("literal")),
                ignore_case=bool(arguments.get("ignoreCase")),
            ),
            context=min(arguments.get("context") or 0, _MAX_CONTEXT),
            limit=arguments.get("limit") or MAX_MATCHES,
        )
        for found in _interruptible(_searched_files(workspace, start, arguments.get("glob")), search, context):
            search.file(found)
            if search.full:
                break
        return search.result()

    return Tool(
        name="grep",
        label="Search in files",
        description=(
            "Search the text files of the workspace for a regular expression (Python syntax) or a plain text. "
            "Shows path:line: text. Hidden files are searched, what .gitignore lists is not. "
            f"At most {MAX_MATCHES} matches; lines are cut to {MAX_LINE_CHARS} characters."
        ),
        parameters=parameters(
            ("pattern",),
            pattern=string("Regular expression, or plain text with literal"),
            path=string("File or folder to search (default: the workspace)"),
            glob=string("Only files that fit, such as *.py or src/**/*.md"),
            ignoreCase=boolean("Whether upper and lower case are the same"),
            literal=boolean("Whether the pattern is plain text"),
            context=integer("Lines to show before and after each match"),
            limit=integer("Most matches to show", minimum=1),
        ),
        run=grep,
        owner="core",
    )


def find_tool(workspace: Workspace) -> Tool:
    """The tool `find`: files and folders whose name or path fits a shell pattern."""

    def find(arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        start = workspace.folder(arguments.get("path") or ".")
        limit = arguments.get("limit") or MAX_FOUND
        wanted = arguments["pattern"]
        pattern, by_name = _glob(wanted), "/" not in wanted
        progress = _Progress()
        names: list[str] = []
        for found in _interruptible(walk(workspace, start), progress, context):
            if matches_glob(pattern, _below(workspace, start, found), by_name=by_name):
                names.append(found.relative + ("/" if found.is_folder else ""))
            if len(names) > limit:
                break
        notes, details = list(progress.notes), {}
        if len(names) > limit:
            notes.insert(0, f"{limit} results limit reached. Use limit={limit * 2} for more, or refine the pattern")
            details["resultLimitReached"] = limit
        if not names and not notes:
            return ToolResult("No files found matching the pattern")
        return listing("\n".join(names[:limit]), notes, details)

    return Tool(
        name="find",
        label="Find files",
        description=(
            "Find files and folders by a shell pattern such as *.md or notes/**/2026-*. A pattern without a "
            "slash is compared with names, one with a slash with paths below the folder. Hidden files are "
            f"found, what .gitignore lists is not. At most {MAX_FOUND} results."
        ),
        parameters=parameters(
            ("pattern",),
            pattern=string("Shell pattern: *, ?, [...], ** and {a,b}"),
            path=string("Folder to look in (default: the workspace)"),
            limit=integer("Most results to show", minimum=1),
        ),
        run=find,
        owner="core",
    )


# --- walking -----------------------------------------------------------------------------------------


@define
class _Progress:
    """How long a search may go on, and what to tell about what it left out."""

    deadline: float = field(factory=lambda: time.monotonic() + MAX_SECONDS)
    notes: list[str] = field(factory=list)


def _interruptible(found: Iterator[Found], progress: _Progress, context: ToolContext) -> Iterator[Found]:
    for item in found:
        if context.cancelled.is_set():
            raise ToolError("Search aborted")
        if time.monotonic() > progress.deadline:
            progress.notes.append(f"Stopped after {MAX_SECONDS:g} seconds; search a smaller folder")
            return
        yield item


def _searched_files(workspace: Workspace, start: Path, glob: str | None) -> Iterator[Found]:
    if start.is_file():
        yield Found(start, workspace.display(start), False)
        return
    pattern = _glob(glob) if glob else None
    by_name = glob is not None and "/" not in glob
    for found in walk(workspace, start):
        if found.is_folder:
            continue
        if pattern is None or matches_glob(pattern, _below(workspace, start, found), by_name=by_name):
            yield found


def _below(workspace: Workspace, start: Path, found: Found) -> str:
    """A found path relative to the folder that is searched."""
    folder = workspace.display(start)
    return found.relative if folder == "." else found.relative[len(folder) + 1 :]


def _glob(pattern: str) -> re.Pattern[str]:
    try:
        return glob_regex(pattern.removeprefix("./"))
    except (ValueError, re.error) as error:
        raise ToolError(f"Bad pattern: {error}") from error


# --- searching ---------------------------------------------------------------------------------------


@frozen(slots=True)
class _Row:
    number: int
    is_match: bool


@define
class _Search(_Progress):
    """The matches so far, as lines of output."""

    pattern: re.Pattern[str] = field(kw_only=True)
    context: int = field(kw_only=True)
    limit: int = field(kw_only=True)
    rows: list[str] = field(factory=list)
    matches: int = 0
    full: bool = False
    some_cut: bool = False
    too_large: int = 0

    def file(self, found: Found) -> None:
        """Search one file. A file that cannot be read or is not text holds no matches."""
        try:
            if found.path.stat().st_size > MAX_FILE_BYTES:
                self.too_large += 1
                return
            data = read_file(found.path, found.relative)
        except (OSError, ToolError):
            return  # vanished meanwhile, or not ours to read
        if is_binary(data[:SNIFFED_BYTES]):
            return
        lines = split_lines(data.decode("utf-8", errors="replace"))
        hits = self._hits(lines)
        if self.context and hits and self.rows:
            self.rows.append("--")
        previous = -1
        for row in _with_context(hits, self.context, len(lines)):
            if self.context and previous >= 0 and row.number > previous + 1:
                self.rows.append("--")
            previous = row.number
            self._show(found.relative, row, lines[row.number])

    def _hits(self, lines: list[str]) -> list[int]:
        hits: list[int] = []
        for number, line in enumerate(lines):
            if not self.pattern.search(line, 0, _SEARCHED_CHARS):
                continue
            if self.matches == self.limit:
                self.full = True
                break
            self.matches += 1
            hits.append(number)
        return hits

    def _show(self, relative: str, row: _Row, line: str) -> None:
        text, cut = truncate_line(line)
        self.some_cut = self.some_cut or cut
        number = row.number + 1
        self.rows.append(f"{relative}:{number}: {text}" if row.is_match else f"{relative}-{number}- {text}")

    def result(self) -> ToolResult:
        notes, details = [], {}
        if self.full:
            notes.append(f"{self.limit} matches limit reached. Use limit={self.limit * 2} for more, or refine pattern")
            details["matchLimitReached"] = self.limit
        if self.some_cut:
            notes.append(f"Some lines cut to {MAX_LINE_CHARS} characters. Use read to see them whole")
            details["linesTruncated"] = True
        if self.too_large:
            notes.append(f"{self.too_large} files over {format_size(MAX_FILE_BYTES)} not searched")
        notes += self.notes
        if not self.rows:
            return ToolResult("No matches found" + (f"\n\n[{'. '.join(notes)}]" if notes else ""))
        return listing("\n".join(self.rows), notes, details)


def _with_context(hits: list[int], context: int, total: int) -> list[_Row]:
    """Matching lines and those around them, each once, in order (numbers from 0)."""
    matching = set(hits)
    around = {n for hit in hits for n in range(max(hit - context, 0), min(hit + context + 1, total))}
    return [_Row(number, number in matching) for number in sorted(around)]
