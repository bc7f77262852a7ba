"""What the server offers, without the protocol: one agent's memory, its notes and its transcripts.

Methods block and may be called from any thread. What goes wrong is a `LamellaError`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from attrs import evolve

from lamella.errors import LamellaError, MemoryPathError, UsageError
from lamella.memory.paths import CURATED, CURATED_LOWER, memory_file
from lamella.memory.reading import load
from lamella.memory.results import checked_results
from lamella.memory.scan import FoundFile, scan_memory
from lamella.memory.session_notes import is_private, private_notes
from lamella.text.files import decode_text
from lamella.types.memory import MemoryResults, MemoryService, MemoryText, MemoryWrite, Provenance, SearchQuery

if TYPE_CHECKING:
    from lamella.runtime import Runtime

ACTOR = "mcp"
# The largest note that is given whole, in bytes; parts of larger ones can be read by lines.
MOST_NOTE_BYTES = 1_000_000
# A question is matched by its words; nobody asks with more characters than these.
MOST_QUERY_CHARS = 8_000
# What one answer with lines of a file may hold, in characters.
MOST_READ_CHARS = 20_000

_CURATED = (CURATED, CURATED_LOWER)
_NOTES = ("memory",)


class AgentMemory:
    """One agent's memory. `shared`: others read along, so what is private to the user is left out, as in
    group chats: `MEMORY.md`, transcripts, and notes of private sessions."""

    def __init__(self, runtime: Runtime, *, shared: bool = False) -> None:
        self.runtime = runtime
        self.shared = shared
        self._opening = threading.Lock()

    def open(self) -> MemoryService:
        """The agent's long-term memory, opened once. Raises `MemoryUnavailable`, which says what to install."""
        with self._opening:
            return self.runtime.require_memory()

    def search(self, query: str, max_results: int, min_score: float) -> MemoryResults:
        """Find passages, best first."""
        words = query[:MOST_QUERY_CHARS].strip()
        if not words:
            raise UsageError("query is empty: expected words, names, dates, or a question")
        wanted = SearchQuery(words, max_results, min_score)
        memory = self.open()
        if not self.shared:
            return checked_results(memory.search(wanted))
        hidden = frozenset((*_CURATED, *private_notes(self.runtime.workspace)))
        found = checked_results(memory.search(evolve(wanted, sources=_NOTES, exclude=tuple(sorted(hidden)))))
        # Once more here: a backend may not know how to leave files out.
        return evolve(found, hits=tuple(hit for hit in found.hits if hit.path not in hidden))

    def get(self, path: str, start_line: int, lines: int) -> MemoryText:
        """Lines of a memory file, at most `MOST_READ_CHARS` characters of them."""
        found = self.open().read(path, start_line=start_line, lines=lines)
        if self.shared:
            self._check_shown(found.path)
        return _shortened(found)

    def append(self, text: str, path: str | None) -> MemoryWrite:
        """Append to a memory file, to today's note without a path. A shared memory takes nothing into files that
        it does not show: what others write there would reach the user's own prompts."""
        if self.shared and path is not None:
            self._check_shown(self._name_of(path))
        return self.open().append(text, path=path, provenance=Provenance(ACTOR, trigger="user"))

    def notes(self) -> list[FoundFile]:
        """The Markdown files of the workspace that are memory and may be seen, in order of their names."""
        workspace = self.runtime.workspace
        hidden = {*_CURATED, *private_notes(workspace)} if self.shared else set()
        return [note for note in scan_memory(workspace).files if note.name not in hidden]

    def note(self, name: str) -> str | None:
        """The text of one note; None when there is none of that name.

        Raises `MemoryPathError` for a name that no memory file has or that must not be seen, `UsageError`
        for a note that is too large.
        """
        file = memory_file(self.runtime.workspace, name)
        if self.shared:
            self._check_shown(file.name)
        try:
            content = load(file)
        except OSError as error:
            raise LamellaError(f"cannot read {file.name}: {error.strerror}") from error
        if content is None:
            return None
        if len(content.data) > MOST_NOTE_BYTES:
            raise UsageError(
                f"{file.name} has {len(content.data):,} bytes, more than {MOST_NOTE_BYTES:,}",
                hint="memory_get reads parts of it.",
            )
        return decode_text(content.data).text

    def _check_shown(self, name: str) -> None:
        """Raises `MemoryPathError` for a file that only the user may see."""
        if name.lower() == CURATED_LOWER or self._is_private(name):
            raise MemoryPathError(f"{name} is not shown where others read along")

    def _name_of(self, path: str) -> str:
        try:
            return memory_file(self.runtime.workspace, path).name
        except MemoryPathError:  # of a memory that keeps no files, perhaps
            return path

    def _is_private(self, name: str) -> bool:
        try:
            return is_private(memory_file(self.runtime.workspace, name))
        except MemoryPathError:  # not in the workspace's memory, where the notes of sessions are
            return False


def _shortened(found: MemoryText) -> MemoryText:
    """At most `MOST_READ_CHARS` characters: whole lines, or the beginning of the first one."""
    if len(found.text) <= MOST_READ_CHARS:
        return found
    end = found.text.rfind("\n", 0, MOST_READ_CHARS + 1)
    text = found.text[:end] if end > 0 else found.text[:MOST_READ_CHARS]
    last = found.start_line + text.count("\n")
    return evolve(found, text=text, end_line=last, truncated=True)
