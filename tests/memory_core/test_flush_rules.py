"""The memory flush: when one is due, which gates it has, and what it asks the model.

OpenClaw's recorded decisions (tests/data/context/flush.json), edge cases E25 to E35, and cases K61 and K68.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from builders import CASES, assistant, result, user
from openclaw_vectors import recorded

from lamella.config.budget import budget, flush_trigger
from lamella.config.schema import CompactionSection
from lamella.config.structure import structure
from lamella.memory.writer import MemoryWriter
from lamella.text.estimate import estimate_tokens
from lamella.types.host import TurnInfo
from lamella.types.messages import UserMessage, text_of
from lamella_memory_core.flush.prompt import flush_prompt, flush_system_prompt
from lamella_memory_core.flush.turn import FLUSHED, closed_gate, newest_part
from lamella_memory_core.flush.write import Written, write_tool

KEY = "agent:main:main"
ROWS = recorded("flush.json")
NOON = datetime(2026, 5, 10, 12, tzinfo=UTC)
TURN = TurnInfo(KEY, "s", "main", Path())


# --- the decision ------------------------------------------------------------------------------------------


def decide(
    stored: Mapping[str, Any] | None, settings: CompactionSection, window: int, tokens: int | None = None
) -> bool:
    """The decision from an entry alone, as OpenClaw makes it; lamella's engine always has a count of tokens."""
    if stored is None:
        return False
    if tokens is None and stored.get("totalTokensFresh") is not False:
        tokens = stored.get("totalTokens")
    return bool(flush_trigger(budget(settings, window), tokens, 0)) and not closed_gate(stored, TURN)


@pytest.mark.parametrize("row", [r for r in ROWS if r["group"] == "flush.should"], ids=lambda r: r["name"])
def test_e25_to_e29_decisions_as_recorded(row: dict[str, Any]) -> None:
    given = row["input"]
    settings = CompactionSection(
        reserve_tokens=1,
        reserve_tokens_floor=given["reserveTokensFloor"],
        flush_soft_tokens=given["softThresholdTokens"],
    )
    decision = decide(given["entry"], settings, given["contextWindowTokens"], given.get("tokenCount"))
    assert decision is row["output"]


def test_e26_a_small_window_flushes() -> None:
    limits = budget(CompactionSection(), 20_000)
    assert 0 < limits.flush_at < limits.limit
    assert flush_trigger(limits, limits.flush_at, 0) == "tokens"
    assert flush_trigger(limits, limits.flush_at - 1, 0) == ""


def test_e28_the_next_cycle_flushes_again() -> None:
    stored = {"memoryFlushCompactionCount": 1, "compactionCount": 1}
    assert closed_gate(stored, TURN) == FLUSHED
    assert closed_gate({**stored, "compactionCount": 2}, TURN) == ""


@pytest.mark.parametrize(
    ("bytes_grown", "limit", "due"), [(2_097_152, 2_097_152, True), (2_097_151, 2_097_152, False), (10**9, 0, False)]
)
def test_e30_e31_the_size_trigger(bytes_grown: int, limit: int, due: bool) -> None:
    limits = budget(CompactionSection(flush_transcript_bytes=limit), 200_000)
    assert (flush_trigger(limits, 1, bytes_grown) == "transcript") is due


def test_e31_a_size_that_is_no_number_is_refused_with_the_keys_name() -> None:
    from lamella.config.schema import Settings

    _, problems = structure(Settings, {"compaction": {"flush_transcript_bytes": "0"}})
    assert [p.path for p in problems] == ["compaction.flush_transcript_bytes"]


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ({"trigger": "heartbeat"}, "gate: heartbeat turn"),
        ({"trigger": "memory"}, "gate: memory turn"),
        ({"workspace_writable": False}, "gate: the workspace is read-only"),
        ({"trigger": "cron"}, ""),
    ],
)
def test_e32_gates(turn: dict[str, Any], reason: str) -> None:
    assert closed_gate({"sessionId": "s"}, evolve(TURN, **turn)) == reason


def test_a_session_without_an_entry_is_not_flushed() -> None:
    assert closed_gate({}, TURN) == "gate: the session has no entry"


@pytest.mark.parametrize("case", json.loads((CASES / "K61" / "entries.json").read_text()), ids=lambda c: c["name"])
def test_k61_never_flushed_is_absence(case: dict[str, Any]) -> None:
    wanted = case["flush"]
    if case["name"] == "mark 0 without time (legacy initialisation)":
        wanted = False  # as OpenClaw's own function decides; lamella never writes such a mark
    assert decide(case["entry"], CompactionSection(), 200_000) is wanted


def test_the_part_that_is_flushed_fits_and_begins_with_the_user() -> None:
    """Texts that would fill it alone are cut; what is left out is the oldest."""
    talk: list[Any] = [user("oldest " * 400), assistant("said " * 400), user("x" * 90_000), result("c1", "y" * 90_000)]
    talk += [assistant("then"), user("newest")]
    part = newest_part(talk, 4_000)
    assert text_of(part[-1].content) == "newest"  # type: ignore[union-attr]
    assert isinstance(part[0], UserMessage)
    assert all(0 < len(text_of(m.content)) <= 1_000 for m in part)  # type: ignore[union-attr]
    assert [m.role for m in part[-4:]] == ["user", "toolResult", "assistant", "user"]
    assert sum(map(estimate_tokens, part)) <= 4_000
    assert newest_part([assistant("a" * 90_000)], 4_000)
    assert newest_part([], 4_000) == []


# --- the prompt --------------------------------------------------------------------------------------------


def writer(folder: Path, tz: str = "UTC", now: datetime = NOON) -> MemoryWriter:
    (folder / "ws").mkdir(exist_ok=True)
    return MemoryWriter(folder / "ws", folder / "state", tz, clock=lambda: now)


@pytest.mark.parametrize("row", [r for r in ROWS if r["group"] == "flush.path"], ids=lambda r: r["name"])
def test_e33_the_day_is_the_users(row: dict[str, Any], tmp_path: Path) -> None:
    now = datetime.fromtimestamp(row["input"]["nowMs"] / 1000, UTC)
    zone = row["input"]["tz"]
    assert writer(tmp_path, zone, now).today() == row["output"]
    assert row["output"] in flush_prompt(writer(tmp_path, zone, now), zone, now=now)


TABLE = json.loads((CASES / "K68" / "table.json").read_text())


@pytest.mark.parametrize("row", [r for r in TABLE if r["tz"] != "Not/AZone"], ids=lambda r: f"{r['now']} {r['tz']}")
def test_k68_the_prompt_names_the_day(row: dict[str, Any], tmp_path: Path) -> None:
    now = datetime.fromisoformat(row["now"])
    prompt = flush_prompt(writer(tmp_path, row["tz"], now), row["tz"], now=now)
    assert set(re.findall(r"memory/[\w-]+\.md", prompt)) == {row["file"]}
    assert "YYYY" not in prompt
    assert f"Current time: {row['file'][7:17]} " in prompt
    assert writer(tmp_path, row["tz"], now).today() == row["file"]


def test_k68_a_write_after_midnight_is_kept(tmp_path: Path) -> None:
    late = datetime(2026, 5, 11, 0, 0, 10, tzinfo=UTC)
    tool = write_tool(writer(tmp_path, now=late), Written("memory/2026-05-10.md", lambda: None))
    from lamella.types.tools import ToolContext

    context = ToolContext("c", tmp_path / "ws", KEY)
    for day in ("2026-05-10", "2026-05-11"):
        tool.run({"path": f"memory/{day}.md", "content": "- late"}, context)
        assert "- late" in (tmp_path / "ws" / "memory" / f"{day}.md").read_text()


def test_e34_rules_that_a_prompt_lacks_are_added_once(tmp_path: Path) -> None:
    mine = "Note what matters for YYYY-MM-DD."
    prompt = flush_prompt(writer(tmp_path), "UTC", mine, now=NOON)
    assert prompt.startswith("Note what matters for 2026-05-10.")
    for rule in ("memory/2026-05-10.md", "only appends", "read-only now", "NO_REPLY"):
        assert prompt.count(rule) == 1
    assert flush_prompt(writer(tmp_path), "UTC", prompt, now=NOON) == prompt
    system = flush_system_prompt("memory/2026-05-10.md", "Be short.")
    assert system.startswith("Be short.")
    assert "NO_REPLY" in system


def test_e35_a_prompt_with_a_time_gets_no_second_one(tmp_path: Path) -> None:
    prompt = flush_prompt(writer(tmp_path), "UTC", "Current time: noon. Save things.", now=NOON)
    assert prompt.count("Current time:") == 1


def test_the_end_of_the_note_is_shown_so_that_nothing_is_written_twice(tmp_path: Path) -> None:
    saves = writer(tmp_path)
    (tmp_path / "ws" / "memory").mkdir()
    (tmp_path / "ws" / "memory" / "2026-05-10.md").write_text("first line\n" + "- filler\n" * 400 + "- last line\n")
    shown = flush_prompt(saves, "UTC", now=NOON).partition("<already-saved>\n")[2]
    assert shown.startswith("- filler\n")
    assert shown.endswith("- last line\n</already-saved>")
    assert len(shown) < 2_100
