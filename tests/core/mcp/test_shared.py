"""What a shared memory shows, whatever backend answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve
from mcp.server.mcpserver.exceptions import ToolError

from lamella import Runtime
from lamella.errors import LamellaError, MemoryPathError
from lamella.mcp.memory import MOST_QUERY_CHARS, MOST_READ_CHARS, AgentMemory
from lamella.mcp.tools import tools_of
from lamella.mcp.work import Work
from lamella.memory.reading import read_memory
from lamella.types.memory import MemoryHit, MemoryResults, MemoryText, MemoryWrite, Provenance, SearchQuery

NOTE = "# Session\n\n- Session key: `agent:main:main`\n\nThe party is a secret.\n"


class Careless:
    """A memory that leaves nothing out by itself."""

    name = "careless"
    slot = "memory"

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.asked: list[SearchQuery] = []
        self.written: list[str | None] = []

    def search(self, query: SearchQuery) -> MemoryResults:
        self.asked.append(query)
        names = ("MEMORY.md", "memory/2026-05-10-party.md", "memory/open.md")
        return MemoryResults(tuple(MemoryHit(name, 1, 1, 0.9, "x") for name in names), "careless")

    def read(self, path: str, *, start_line: int = 1, lines: int | None = None) -> MemoryText:
        return read_memory(self.workspace, path, start_line=start_line, lines=lines)

    def append(self, text: str, *, path: str | None = None, provenance: Provenance) -> MemoryWrite:
        self.written.append(path)
        return MemoryWrite(path or "memory/today.md", 1, 1, len(text))

    def close(self) -> None:
        pass


@pytest.fixture
def careless(tmp_path: Path) -> Careless:
    workspace = tmp_path / "ws"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("Lasting.\n")
    (workspace / "memory" / "2026-05-10-party.md").write_text(NOTE)
    (workspace / "memory" / "open.md").write_text("Open to all.\n")
    return Careless(workspace)


def memory_of(careless: Careless, tmp_path: Path, *, shared: bool) -> AgentMemory:
    runtime = Runtime.open(workspace=careless.workspace, environ={"LAMELLA_HOME": str(tmp_path / "state")})
    runtime.__dict__["memory"] = careless  # as if a plugin had opened it
    return AgentMemory(runtime, shared=shared)


def test_hits_are_left_out_also_where_the_backend_does_not(careless: Careless, tmp_path: Path) -> None:
    everything = memory_of(careless, tmp_path, shared=False).search("x", 5, 0.2)
    shown = memory_of(careless, tmp_path, shared=True).search("x", 5, 0.2)
    assert [hit.path for hit in everything.hits] == ["MEMORY.md", "memory/2026-05-10-party.md", "memory/open.md"]
    assert [hit.path for hit in shown.hits] == ["memory/open.md"]
    assert careless.asked == [
        SearchQuery("x", 5, 0.2),
        evolve(
            SearchQuery("x", 5, 0.2),
            sources=("memory",),
            exclude=("MEMORY.md", "memory.md", "memory/2026-05-10-party.md"),
        ),
    ]


@pytest.mark.parametrize("path", ["MEMORY.md", "memory.md", "./MEMORY.md", "memory/2026-05-10-party.md"])
def test_private_files_are_not_read(careless: Careless, tmp_path: Path, path: str) -> None:
    memory = memory_of(careless, tmp_path, shared=True)
    for read in (lambda: memory.get(path, 1, 10), lambda: memory.note(path)):
        with pytest.raises(MemoryPathError, match="not shown where others read along"):
            read()
    alone = memory_of(careless, tmp_path, shared=False)
    assert alone.get(path, 1, 10).text
    assert alone.note(path)


def test_an_absolute_path_is_no_way_around(careless: Careless, tmp_path: Path) -> None:
    memory = memory_of(careless, tmp_path, shared=True)
    with pytest.raises(MemoryPathError, match="not shown"):
        memory.get(str(careless.workspace / "MEMORY.md"), 1, 10)


def test_notes_are_listed_without_private_ones(careless: Careless, tmp_path: Path) -> None:
    assert [n.name for n in memory_of(careless, tmp_path, shared=True).notes()] == ["memory/open.md"]
    assert len(memory_of(careless, tmp_path, shared=False).notes()) == 3


def test_long_texts_are_cut_at_lines(careless: Careless, tmp_path: Path) -> None:
    line = "行" * 99
    (careless.workspace / "memory" / "long.md").write_text(f"{line}\n" * 1_000, encoding="utf-8")
    memory = memory_of(careless, tmp_path, shared=False)
    found = memory.get("memory/long.md", 11, 900)
    assert found.text == "\n".join([line] * (MOST_READ_CHARS // 100))
    assert (found.start_line, found.end_line, found.total_lines) == (11, 210, 1_000)
    assert found.truncated
    memory.search("问" * 100_000, 5, 0.2)
    assert careless.asked[-1].text == "问" * MOST_QUERY_CHARS


def test_a_missing_workspace_is_said(tmp_path: Path) -> None:
    runtime: Any = Runtime.open(workspace=tmp_path / "none", environ={"LAMELLA_HOME": str(tmp_path / "state")})
    with pytest.raises(LamellaError, match="does not exist"):
        AgentMemory(runtime).notes()


@pytest.mark.parametrize(
    ("hit", "expected"),
    [
        (MemoryHit("a.md", 1, 1, float("nan"), "x"), "a hit of a.md has the score nan"),
        ("text", "a hit is str, expected MemoryHit"),
        (OSError(28, "No space left on device"), "memory failed: OSError: [Errno 28] No space left on device"),
    ],
)
async def test_what_a_memory_does_wrong_is_told(careless: Careless, tmp_path: Path, hit: Any, expected: str) -> None:
    def search(_query: SearchQuery) -> MemoryResults:
        if isinstance(hit, Exception):
            raise hit
        return MemoryResults((hit,), "careless")

    careless.search = search  # type: ignore[method-assign]
    (tool, *_) = tools_of(memory_of(careless, tmp_path, shared=False), Work())
    with pytest.raises(ToolError) as told:
        await tool.run({"query": "x"}, cast("Any", None))
    assert expected in str(told.value)


@pytest.mark.parametrize("path", ["MEMORY.md", "memory.md", "./MEMORY.md", "memory/2026-05-10-party.md"])
def test_what_is_not_shown_is_not_written_to(careless: Careless, tmp_path: Path, path: str) -> None:
    shared = memory_of(careless, tmp_path, shared=True)
    with pytest.raises(MemoryPathError, match="not shown where others read along"):
        shared.append("a rule for the owner", path)
    assert careless.written == []
    shared.append("open", "memory/open.md")
    shared.append("today", None)
    memory_of(careless, tmp_path, shared=False).append("mine", path)
    assert careless.written == ["memory/open.md", None, path]
