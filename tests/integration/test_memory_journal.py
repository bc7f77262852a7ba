"""`lamella memory log`, `why`, `undo` and `sessions recall`, as a person uses them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli import Ran
from inside import lamella

ASKED = "Remember that the boiler is serviced by Anna."


class Desk:
    """A workspace and a state folder with one turn that wrote, one line typed by hand, one from a command."""

    def __init__(self, folder: Path) -> None:
        self.home, self.workspace = folder / "state", folder / "notes"
        self.workspace.mkdir()
        self.run("ask", ASKED, "--model", "offline", check=True)
        self.run("memory", "add", "--", "- 茶在四点, password: hunter22", check=True)
        (self.note,) = (self.workspace / "memory").glob("*.md")
        self.name = f"memory/{self.note.name}"
        self.note.write_text(self.note.read_text(encoding="utf-8") + "typed by hand\n", encoding="utf-8")

    def run(self, *arguments: str | Path, check: bool = False) -> Ran:
        command = [*arguments[:2], "--workspace", self.workspace, *arguments[2:]]
        return lamella(*command, home=self.home, check=check)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_log_shows_who_wrote_what_newest_first(desk: Desk) -> None:
    shown = desk.run("memory", "log", check=True).out
    assert shown.index("by cli") < shown.index("by memory_append in agent:main:main")
    assert "+ - 茶在四点, password: ***" in shown
    assert "hunter22" not in shown


def test_the_log_can_be_filtered(desk: Desk) -> None:
    def actors(*options: str) -> list[str]:
        return [e["actor"] for e in desk.run("memory", "log", "--json", *options, check=True).json]

    everything = desk.run("memory", "log", "--json", check=True).json
    assert actors() == ["cli", "memory_append"]
    assert actors("-n", "1") == ["cli"]
    assert actors("--session", "agent:main:main") == actors("--session", everything[1]["sessionId"][:8])
    assert actors("--session", "agent:main:main") == ["memory_append"]
    assert actors("--session", "") == []
    assert actors("--file", desk.name) == actors("--file", str(desk.note)) == ["cli", "memory_append"]
    assert actors("--file", "MEMORY.md") == []
    assert actors("--since", "2000-01-01") == ["cli", "memory_append"]
    assert actors("--since", "2999-01-01T10:00+02:00") == []
    for wrong in ("yesterday", "2026-13-01", ""):
        ran = desk.run("memory", "log", "--since", wrong)
        assert (ran.code, "expected a day or time" in ran.err) == (2, True)


def test_why_quotes_the_conversation_or_says_by_hand(desk: Desk) -> None:
    lines = desk.note.read_text(encoding="utf-8").splitlines()
    place = {line: number for number, line in enumerate(lines, 1)}
    wrote = next(line for line in lines if "boiler" in line)
    shown = desk.run("memory", "why", f"{desk.name}:{place[wrote]}", check=True).out
    assert f"> {ASKED}" in shown
    assert "Written by memory_append in agent:main:main" in shown
    by_hand = desk.run("memory", "why", f"{desk.name}#L{place['typed by hand']}-L9", check=True).out
    assert "Edited by hand" in by_hand
    by_command = desk.run("memory", "why", f"{desk.note}:{place['typed by hand'] - 1}", check=True).out
    assert "Written by cli" in by_command
    assert "hunter22" not in by_command


@pytest.mark.parametrize(
    ("place", "code", "message"),
    [
        ("memory/2000-01-01.md:1", 4, "missing"),
        ("NOTE:99", 2, "has no line 99"),
        ("NOTE:0", 2, "has no line 0"),
        ("NOTE", 2, "expected FILE:LINE"),
        ("../x.md:1", 1, "not a memory file"),
    ],
)
def test_why_tells_what_is_wrong(desk: Desk, place: str, code: int, message: str) -> None:
    ran = desk.run("memory", "why", place.replace("NOTE", desk.name))
    assert (ran.code, message in ran.err) == (code, True), ran.err


def test_a_write_is_undone_once_and_only_over_its_own_lines(desk: Desk) -> None:
    first = desk.run("memory", "log", "--json", check=True).json[1]["id"]
    before = desk.note.read_text(encoding="utf-8")
    desk.note.write_text(before.replace("Anna", "Berta"), encoding="utf-8")
    refused = desk.run("memory", "undo", first)
    assert (refused.code, refused.out) == (1, "")
    assert "-- the boiler is serviced by Anna" in refused.err
    assert "+- the boiler is serviced by Berta" in refused.err
    desk.note.write_text(before, encoding="utf-8")
    desk.run("memory", "undo", first[:8], check=True)
    left = desk.note.read_text(encoding="utf-8")
    assert "boiler" not in left
    assert left.endswith("- 茶在四点, password: hunter22\ntyped by hand\n")
    newest, *_ = desk.run("memory", "log", check=True).out.split("\n\n")
    assert f"undoes {first}" in newest
    again = desk.run("memory", "undo", first)
    assert (again.code, "undone already" in again.err) == (2, True)
    unknown = desk.run("memory", "undo", "nothing")
    assert (unknown.code, "memory log" in unknown.err) == (2, True)


def test_the_journal_needs_no_memory_plugin_and_tells_of_damage(desk: Desk) -> None:
    (journal,) = desk.home.rglob("memory-journal.jsonl")
    with journal.open("ab") as stream:
        stream.write(b'{"id": "torn')
    ran = desk.run("memory", "log", "--no-plugin", "memory-core", check=True)
    assert "by cli" in ran.out
    assert "cannot be read: 1" in ran.err


def test_recall_quotes_a_session_or_an_archived_transcript(desk: Desk, tmp_path: Path) -> None:
    shown = desk.run("sessions", "recall", "agent:main:main", "who services the boiler", check=True).out
    assert f"> {ASKED}" in shown
    (transcript,) = desk.home.rglob("sessions/*.jsonl")
    archived = tmp_path / f"{transcript.name}.reset.2026-05-10T00-00-00.000Z"
    shutil.copy(transcript, archived)
    found = desk.run("sessions", "recall", archived, "boiler", "--json", check=True).json
    entry = found["results"][0]["entryId"]
    assert entry in shown
    read = desk.run("sessions", "recall", archived, "--entry", entry[:10], "--offset", "9", "--json", check=True).json
    assert read["results"][0]["text"] == ASKED[9:]
    assert desk.run("sessions", "recall", archived, "boiler", "--folded", check=True).out == "Nothing found.\n"
    assert desk.run("sessions", "recall", archived, "zebra", check=True).out == "Nothing found.\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("agent:main:main",), 2),
        (("agent:main:main", "x", "--entry", "e"), 2),
        (("agent:main:main", "--entry", "nobody"), 4),
        (("agent:main:nobody", "x"), 4),
        (("no/such.jsonl", "x"), 4),
    ],
)
def test_recall_tells_what_is_wrong(desk: Desk, arguments: tuple[str, ...], code: int) -> None:
    ran = desk.run("sessions", "recall", *arguments)
    assert ran.code == code, ran.err
