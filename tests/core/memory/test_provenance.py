"""Lines of memory lead back to what was said, however the file was edited since."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from builders import assistant, call, result, user

from lamella.errors import UsageError
from lamella.memory.journal import read_journal
from lamella.memory.paths import memory_file
from lamella.memory.provenance import Why, why
from lamella.memory.writer import MemoryWriter
from lamella.sessions.keys import parse_key
from lamella.sessions.store import SessionStore
from lamella.sessions.transcript import SessionFile
from lamella.types.memory import Provenance

KEY = "agent:main:main"
NOTE = "memory/2026-05-10.md"


class Agent:
    """A workspace, a session with its transcript, and memory writes that come from its turns."""

    def __init__(self, folder: Path) -> None:
        (folder / "ws").mkdir()
        self.writer = MemoryWriter(folder / "ws", folder / "state", "UTC")
        self.store = SessionStore(folder / "sessions")
        self.store.folder.mkdir()
        self.located = self.store.start(parse_key(KEY))
        self.file = self.store.open(self.located, cwd=str(folder))

    @property
    def note(self) -> Path:
        return self.writer.workspace / NOTE

    def turn(self, asked: str, text: str, *, how: str = "append") -> str:
        """A turn that writes; returns the entry that did."""
        self.file.append_message(user(asked))
        entry = self.file.append_message(assistant("Noted.", call("c", "memory_append", text=text))).id
        who = Provenance("memory_append", KEY, self.file.id, entry, "user")
        if how == "append":
            self.writer.append(NOTE, text, who)
        else:
            self.writer.replace(NOTE, text, self.writer.hash_of(NOTE), who)
        self.file.append_message(result("c", "saved", "memory_append"))
        self.file.append_message(assistant("Done."))
        return entry

    def why(self, line: int) -> Why:
        workspace = self.writer.workspace
        found = why(read_journal(self.writer.state_dir), self.store, workspace, memory_file(workspace, NOTE), line)
        assert found is not None
        return found

    def asked(self, text: str) -> str | None:
        """The user's words that the line with this text leads back to; None: edited by hand."""
        lines = self.note.read_text(encoding="utf-8").splitlines()
        found = self.why(lines.index(text) + 1)
        return found.quotes[0].text if found.origin else None


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def test_a_line_leads_to_the_turn_that_wrote_it(agent: Agent) -> None:
    agent.turn("Tea?", "- tea at four")
    entry = agent.turn("锅炉什么时候保养？", "- 锅炉: 五月, 安娜")
    found = agent.why(4)
    assert found.origin is not None
    assert (found.text, found.origin.line, found.origin.entry.actor) == ("- 锅炉: 五月, 安娜", 4, "memory_append")
    assert [q.role for q in found.quotes] == ["user", "assistant"]
    assert found.quotes[0].text == "锅炉什么时候保养？"
    assert found.quotes[1].entry_id == entry
    assert agent.why(1).origin is not None  # the title came with the first write


def test_lines_are_known_after_they_were_moved_and_others_typed_between(agent: Agent) -> None:
    facts = [f"- fact {i}: 事实{i}" for i in range(8)]
    for i, fact in enumerate(facts):
        agent.turn(f"question {i}", fact)
    lines = [*facts, "typed by hand", "- fact 3: but different"]
    for seed in range(5):
        random.Random(seed).shuffle(lines)
        agent.note.write_text("# 2026-05-10\r\n\r\n" + "\r\n".join(lines), encoding="utf-8")
        assert [agent.asked(fact) for fact in facts] == [f"question {i}" for i in range(8)]
        assert agent.asked("typed by hand") is None
        assert agent.asked("- fact 3: but different") is None


def test_a_rewrite_owns_what_it_changed_and_nothing_else(agent: Agent) -> None:
    agent.turn("first", "- a\n- b\n- c")
    agent.turn("second", "# 2026-05-10\n\n- c\n- b, better\n- a\n- d\n", how="replace")
    assert [agent.asked(line) for line in ("- a", "- b, better", "- d")] == ["first", "second", "second"]


def test_equal_lines_are_told_apart_by_their_neighbours(agent: Agent) -> None:
    agent.turn("first", "## tea\n- done\n")
    agent.turn("second", "## boiler\n- done\n")
    agent.note.write_text("## boiler\n- done\n\n## tea\n- done\n")
    assert [agent.why(n).quotes[0].text for n in (2, 5)] == ["second", "first"]
    assert agent.why(3).origin is None  # a blank line between strangers says nothing


def test_of_equal_lines_with_equal_neighbours_the_latest_counts(agent: Agent) -> None:
    agent.turn("first", "- same")
    agent.note.unlink()
    agent.turn("second", "- same")
    assert agent.asked("- same") == "second"


def test_a_write_in_this_workspace_comes_before_one_in_another(agent: Agent, tmp_path: Path) -> None:
    agent.turn("here", "- same")
    (tmp_path / "other").mkdir()
    other = MemoryWriter(tmp_path / "other", tmp_path / "state", "UTC")
    other.append(NOTE, "- same", Provenance("write"))
    assert agent.asked("- same") == "here"
    moved = agent.writer.workspace.rename(tmp_path / "moved")
    agent.writer = MemoryWriter(moved, tmp_path / "state", "UTC")
    assert agent.why(3).origin is not None  # a folder may be moved


def test_what_an_undo_brings_back_comes_from_the_first_write(agent: Agent) -> None:
    agent.turn("first", "- a\n- b")
    agent.turn("second", "# 2026-05-10\n\n- a\n", how="replace")
    agent.writer.undo(read_journal(agent.writer.state_dir).entries[-1].id, Provenance("cli"))
    assert agent.asked("- b") == "first"


def test_secrets_are_masked_and_lines_with_them_are_known(agent: Agent) -> None:
    agent.turn("Keep it", "- wifi password: hunter22")
    found = agent.why(3)
    assert found.origin is not None
    assert found.text == "- wifi password: ***"


def test_a_silent_turn_is_led_back_to_what_the_line_is_about(agent: Agent) -> None:
    for asked in ("The boiler is serviced by Anna.", "安娜的电话是 555-0101。", "Lunch is soup."):
        agent.file.append_message(user(asked))
        agent.file.append_message(assistant("I see."))
    who = Provenance("flush", KEY, agent.file.id, agent.file.leaf_id or "", "memory")
    agent.writer.append(NOTE, "- boiler: serviced, Anna\n- 安娜: 电话 555-0101", who)
    agent.file.append_message(user("The boiler again?"))  # said later: led to nothing
    assert [q.text for q in agent.why(3).quotes] == ["The boiler is serviced by Anna."]
    assert [q.text for q in agent.why(4).quotes] == ["安娜的电话是 555-0101。"]


def test_the_conversation_is_found_after_it_was_folded_branched_and_put_aside(agent: Agent) -> None:
    agent.turn("first", "- a")
    kept = agent.file.append_message(user("next")).id
    agent.file.append_compaction("summary", kept, 100)
    agent.file.branch(None)
    agent.file.append_message(user("elsewhere"))
    assert agent.asked("- a") == "first"
    agent.located.path.rename(agent.located.path.with_name(f"{agent.file.id}.jsonl.reset.2026-05-11T00-00-00.000Z"))
    assert agent.asked("- a") == "first"


def test_what_is_missing_is_said(agent: Agent, tmp_path: Path) -> None:
    agent.turn("first", "- a")
    agent.writer.append(NOTE, "- b", Provenance("cli", trigger="user"))
    agent.writer.append(NOTE, "- c", Provenance("write", KEY, agent.file.id, "no-such-entry"))
    assert agent.why(4).note == "it was not written in a session"
    assert "no-such-entry" in agent.why(5).note
    agent.located.path.unlink()
    assert agent.why(3).note == f"the transcript of session {agent.file.id} is not there any more"
    for line in (0, 6):
        with pytest.raises(UsageError, match=f"no line {line}; it has 5"):
            agent.why(line)


def test_a_path_in_a_session_id_leads_nowhere(agent: Agent, tmp_path: Path) -> None:
    outside = SessionFile.create(tmp_path / "outside.jsonl", session_id="x")
    entry = outside.append_message(user("secret plans")).id
    agent.writer.append(NOTE, "- a", Provenance("write", KEY, "../outside", entry))
    assert agent.why(3).quotes == ()
