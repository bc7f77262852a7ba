"""What status tells of a session's compactions: how full it is, what each freed, and what is unusual."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, open_agent, scripted
from attrs import evolve
from builders import assistant, user

from lamella.config.schema import Settings
from lamella.sessions.keys import parse_key
from lamella.sessions.status import session_status
from lamella.sessions.store import Located
from lamella.sessions.watch import KEPT_COMPACTIONS, CompactionNote, findings, notes_of, silent_leaks, with_note
from lamella.types import events as e

NOTE = CompactionNote(1, 10, "threshold", 24_000, 12_000, 2_000, 1_000, 24_000, "written", "scripted/script")


def codes(*notes: CompactionNote) -> list[str]:
    return [finding.code for finding in findings(notes)]


def test_a_good_compaction_is_nothing_to_tell() -> None:
    assert codes(NOTE) == codes(NOTE, evolve(NOTE, turn=13)) == []


@pytest.mark.parametrize(
    ("note", "cause"),
    [
        (evolve(NOTE, after=19_201), "what is kept word for word (compaction.keep_recent_tokens) takes 16201"),
        (evolve(NOTE, after=22_000, fixed=18_000), "the system prompt and the tools take 18000"),
        (evolve(NOTE, after=22_000, summary=15_000), "the summary takes 15000"),
    ],
)
def test_a_compaction_that_frees_little_is_told_with_its_likely_cause(note: CompactionNote, cause: str) -> None:
    (finding,) = findings([note])
    assert finding.code == "compaction_freed_little"
    assert cause in finding.message
    assert codes(evolve(note, after=19_200)) == []  # 20 % are enough


def test_compactions_that_come_close_are_told_with_their_likely_cause() -> None:
    growing = [NOTE, evolve(NOTE, turn=12)]
    (finding,) = findings(growing)
    assert finding.code == "compactions_close"
    assert "2 turns apart: a turn adds about 6000 tokens" in finding.message
    slow = [evolve(NOTE, after=18_000, fixed=16_000), evolve(NOTE, turn=12, before=18_100)]
    assert "the system prompt and the tools take 16000" in findings(slow)[0].message


def test_compactions_without_a_flush_are_counted_with_the_last_reason() -> None:
    notes = [evolve(NOTE, flush="none: slot"), evolve(NOTE, turn=20), evolve(NOTE, turn=30, flush="failed: 503")]
    (finding,) = findings(notes)
    assert finding.message == "2 of the last 3 compactions had no flush; the last one: failed: 503"


def test_an_entry_keeps_the_newest_notes_and_survives_others() -> None:
    entry: dict[str, Any] = {"compactions": [{"of": "another version"}, 7]}
    for turn in range(20):
        entry["compactions"] = with_note(entry, evolve(NOTE, turn=turn))
    assert [n.turn for n in notes_of(entry)] == list(range(20 - KEPT_COMPACTIONS, 20))
    assert notes_of({"compactions": "none"}) == []


def test_prompts_of_flushes_that_were_stored_by_others_are_leaks() -> None:
    prompt = "Pre-compaction memory flush. Store durable memories now. If nothing to store, reply with NO_REPLY."
    assert silent_leaks([user(prompt), assistant("NO_REPLY"), user("What is NO_REPLY?")]) == 1


def status(entry: dict[str, Any]) -> Any:
    return session_status(Located("agent:main:main", entry, Path("x.jsonl"), True), Settings(), {})


def test_status_grades_the_share_and_counts_to_flush_and_compaction() -> None:
    found = status({"usedTokens": 100_000, "contextTokens": 128_000, "reserveTokens": 20_000})
    assert (found.to_flush, found.to_compaction, found.level) == (4_000, 8_000, "watch")
    assert [status({"usedTokens": n, "contextTokens": 100}).level for n in (69, 70, 80, 81)] == [
        "ok",
        "watch",
        "watch",
        "high",
    ]


def test_status_tells_bytes_of_a_turn() -> None:
    assert status({"turns": 4, "transcriptBytes": 9_000, "turnsFromBytes": 1_000}).bytes_per_turn == 2_000
    assert status({"transcriptBytes": 9_000}).bytes_per_turn is None


async def test_a_turn_tells_and_records_what_is_unusual(tmp_path: Path) -> None:
    """Two compactions in neighbouring turns."""
    settings = {"compaction.reserve_tokens": 200, "compaction.keep_recent_tokens": 150, "context.estimator": "pi"}
    replies = [{"text": "word " * 80, "usage": {"input": 850, "totalTokens": 850}}, "SUMMARY", "PREFIX"]
    model = scripted(replies * 4, context_window=1_000)
    told = Recorder()
    async with open_agent(tmp_path, model, settings=settings) as runtime:
        runtime.listeners.append(told)
        located = runtime.store.start(parse_key("agent:main:main"))
        file = runtime.store.open(located, cwd="")
        for number in range(4):
            file.append_message(user(f"ask {number}"))
            file.append_message(assistant("word " * 80))
        file.close()
        for number in range(3):
            await runtime.ask(f"turn {number}")
        found = session_status(runtime.store.require(parse_key("agent:main:main")), runtime.settings, {})
    assert found.turns == 3
    assert found.compaction_count == len(found.compactions) >= 2
    assert found.bytes_per_turn
    assert "compactions_close" in [finding.code for finding in found.findings]
    assert "compactions_without_flush" in [finding.code for finding in found.findings]
    assert "compactions_close" in [notice.code for notice in told.of(e.Notice)]
