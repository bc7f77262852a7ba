"""The journal of memory writes: what it holds, and that kills and other processes cost it nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tool_calls import call, context_in

from lamella.errors import LamellaError
from lamella.memory.journal import NAME, JournalEntry, read_journal
from lamella.memory.writer import MemoryWriter
from lamella.tools.builtin import builtin_tools
from lamella.types.memory import Provenance

NOTE = "memory/2026-05-10.md"
NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
WHO = Provenance("memory_append", "agent:main:main", "s1", "e1", "user")


@pytest.fixture
def writer(tmp_path: Path) -> MemoryWriter:
    (tmp_path / "ws").mkdir()
    return MemoryWriter(tmp_path / "ws", tmp_path / "state", "UTC", clock=lambda: NOON)


def entries(writer: MemoryWriter) -> tuple[JournalEntry, ...]:
    return read_journal(writer.state_dir).entries


# --- what it holds ------------------------------------------------------------------------------------------


def test_a_write_is_kept_with_its_lines_and_neighbours(writer: MemoryWriter) -> None:
    writer.append(NOTE, "- one\n- 茶は四時", WHO)
    writer.replace(NOTE, "# 2026-05-10\r\n\r\n- 1\r\n- 茶は四時\r\n", writer.hash_of(NOTE), WHO)
    made, changed = entries(writer)
    title, text = made.hunks
    assert (title.line, title.added.lines, title.removed.lines) == (1, ("# 2026-05-10", ""), ())
    assert (text.line, text.end_line, text.added.lines) == (3, 4, ("- one", "- 茶は四時"))
    assert text.above == ("# 2026-05-10", "")
    (hunk,) = changed.hunks  # line ends alone are no change
    assert (hunk.line, hunk.removed.lines, hunk.added.lines) == (3, ("- one",), ("- 1",))
    assert (hunk.above, hunk.below) == (("# 2026-05-10", ""), ("- 茶は四時",))
    assert (made.workspace, made.path, made.id != changed.id) == (str(writer.workspace.resolve()), NOTE, True)


def test_a_long_file_adds_to_the_journal_what_changed_and_no_more(writer: MemoryWriter) -> None:
    path = writer.workspace / "MEMORY.md"
    lines = [f"- fact {i} about the boiler" for i in range(20_000)]
    path.write_text("\n".join(lines) + "\n")
    lines[3], lines[19_990] = "- changed at the top", "- changed at the end"
    writer.replace("MEMORY.md", "\n".join(lines), writer.hash_of("MEMORY.md"), WHO)
    assert [h.line for h in entries(writer)[0].hunks] == [4, 19_991]
    assert (writer.state_dir / NAME).stat().st_size < 3000


async def test_the_tools_write_and_edit_are_in_the_journal(writer: MemoryWriter) -> None:
    tools = builtin_tools(writer.workspace, exec_enabled=False, memory_writer=writer)
    context = context_in(writer.workspace, session_id="s1", entry_id="e7")
    await call(tools, "write", context, path="MEMORY.md", content="- tea at four\n- Anna\n")
    await call(tools, "edit", context, path="MEMORY.md", oldText="four", newText="five")
    wrote, edited = entries(writer)
    assert [e.actor for e in (wrote, edited)] == ["write", "edit"]
    assert (edited.session_id, edited.entry_id) == ("s1", "e7")
    assert (edited.hunks[0].removed.lines, edited.hunks[0].added.lines) == (("- tea at four",), ("- tea at five",))


# --- kills and other processes --------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


def test_a_kill_at_every_byte_of_an_append_costs_nothing_else(
    writer: MemoryWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.append(NOTE, "- one", WHO)
    journal, note = writer.state_dir / NAME, writer.workspace / NOTE
    before, text = journal.read_bytes(), note.read_bytes()
    writer.append(NOTE, "- 二", WHO)
    size = journal.stat().st_size - len(before)
    real_write = os.write
    for cut in range(size):
        journal.write_bytes(before)
        note.write_bytes(text)

        def dies(fd: int, data: bytes, cut: int = cut) -> int:
            real_write(fd, bytes(data)[:cut])
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", dies)
            with pytest.raises(Killed):
                writer.append(NOTE, "- 二", WHO)
        kept = read_journal(writer.state_dir)
        assert note.read_bytes() == text
        assert journal.read_bytes()[: len(before)] == before
        assert len(kept.entries) + kept.damaged == 1 + (cut > 0)
        if cut % 25 == 0 or cut > size - 4:
            writer.append(NOTE, "- three", WHO)
            after = read_journal(writer.state_dir)
            assert (after.entries[:-1], after.damaged) == (kept.entries, kept.damaged)
            writer.undo(after.entries[-1].id, WHO)
            assert note.read_bytes() == text


WRITE_MANY = """
import sys
from pathlib import Path
from lamella.memory.journal import read_journal
from lamella.memory.writer import MemoryWriter
from lamella.types.memory import Provenance
workspace, state, name = sys.argv[1:]
writer = MemoryWriter(Path(workspace), Path(state), "UTC")
for i in range(12):
    writer.append("memory/2026-05-10.md", f"- {name} {i}", Provenance(name))
    if i % 3 == 0:
        own = [e for e in read_journal(Path(state)).entries if e.actor == name and e.mode == "append"]
        writer.undo(own[-1].id, Provenance(name))
"""


def test_processes_write_and_undo_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    command = [sys.executable, "-c", WRITE_MANY, str(tmp_path / "ws"), str(tmp_path / "state")]
    for process in [subprocess.Popen([*command, name]) for name in ("a", "b")]:
        assert process.wait() == 0
    lines = (tmp_path / "ws" / NOTE).read_text().splitlines()
    for name in ("a", "b"):
        assert [x for x in lines if x.startswith(f"- {name} ")] == [f"- {name} {i}" for i in range(12) if i % 3]
    journal = read_journal(tmp_path / "state")
    assert (len(journal.entries), journal.damaged) == (32, 0)
    assert len({e.id for e in journal.entries}) == 32


def test_a_journal_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(LamellaError, match=NAME):
        read_journal(tmp_path)
