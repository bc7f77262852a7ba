"""What was said in a session is found and quoted, folded or not, and nothing that was not for a reader."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from builders import assistant, call, result, user
from hypothesis import example, given
from hypothesis import strategies as st

from lamella.errors import EntryNotFound, UsageError
from lamella.sessions.recall import MOST_CHARS, Quote, best_quotes, part_of, read_entry, recall
from lamella.sessions.transcript import SessionFile
from lamella.types.messages import AssistantMessage, CustomMessage, TextBlock, ThinkingBlock

WHEN = "2026-05-10T12:00:00.000Z"
SAID = {"role": "user", "content": "The boiler is old.", "timestamp": 1}
FIELDS = st.sampled_from(["type", "id", "name", "arguments", "text", "thinking", "data", "mimeType"])
JUNK = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from([[], {"a": 1}, [[1]]])


@pytest.fixture
def file(tmp_path: Path) -> SessionFile:
    return SessionFile.create(tmp_path / "s.jsonl", session_id="s", cwd="/w")


def fold(file: SessionFile, first_kept: str, *folded: str) -> None:
    file.append_compaction("A summary that mentions the gong.", first_kept, 10, details={"foldedEntryIds": [*folded]})


def found(file: SessionFile, question: str, **options: bool) -> list[str]:
    return [quote.text for quote in recall(file, question, 10, **options)]


# --- what is found ------------------------------------------------------------------------------------------


def test_folded_turns_are_found_by_their_words_in_any_language(file: SessionFile) -> None:
    boiler = file.append_message(user("The boiler was serviced by Anna, order AB-1234.")).id
    chinese = file.append_message(user("会议改到周五下午三点，在二楼。")).id
    kept = file.append_message(user("Now to the gong.")).id
    fold(file, kept, boiler, chinese)
    quote = recall(file, "Who did the servicing of the boiler?", 5)[0]
    assert (quote.entry_id, quote.role, quote.folded, quote.text) == (
        boiler,
        "user",
        True,
        "The boiler was serviced by Anna, order AB-1234.",
    )
    assert quote.time.endswith("Z")
    assert recall(file, "AB-1234", 5)[0].entry_id == boiler
    assert recall(file, "会议在哪天？", 5)[0].entry_id == chinese
    assert found(file, "gong") == ["Now to the gong."]
    assert found(file, "gong", only_folded=True) == []
    assert found(file, "zebra") == []


def test_every_earlier_compaction_counts_also_without_ids(file: SessionFile) -> None:
    file.append_message(user("first: tea"))
    fold(file, file.append_message(user("second: tea")).id)
    fold(file, file.append_message(user("third: tea")).id)
    assert sorted(found(file, "tea", only_folded=True)) == ["first: tea", "second: tea"]


def test_calls_and_results_are_found_and_thinking_is_not(file: SessionFile) -> None:
    reply = assistant("", call("c", "grep", pattern="needle"))
    thought = AssistantMessage((ThinkingBlock("a secret needle"), TextBlock("Looking.")), "p", "m", "x")
    file.append_message(thought)
    file.append_message(reply)
    file.append_message(result("c", "hay.md:3: a needle", "grep"))
    assert sorted(found(file, "needle")) == ['[call] grep(pattern="needle")', "hay.md:3: a needle"]


def test_of_a_long_entry_the_best_passage_is_quoted(file: SessionFile) -> None:
    lines = [f"line {i}: nothing to see" for i in range(4000)]
    lines[2500] = "line 2500: 钥匙在花盆下面"
    file.append_message(result("c", "\n".join(lines)))
    (quote,) = recall(file, "钥匙在哪里？", 5)
    assert "花盆" in quote.text
    assert len(quote.text) < 1000
    assert quote.start + len(quote.text) + quote.left == len("\n".join(lines))


def test_other_branches_are_left_out_and_what_was_folded_beside_is_not(file: SessionFile) -> None:
    root = file.append_message(user("root")).id
    beside = file.append_message(user("a gong from before the rewrite")).id
    file.append_message(user("a gong from elsewhere"))
    file.branch(root)
    fold(file, file.append_message(user("kept")).id, root, beside)
    assert found(file, "gong") == ["a gong from before the rewrite"]


def test_entries_that_were_written_again_are_quoted_once(file: SessionFile) -> None:
    first = file.append_message(user("the gong")).id
    second = file.append_message(result("c", "a long result about the gong")).id
    fold(file, file.append_message(user("kept")).id, first, second)
    file.append_message(user("later"))
    file.replace_messages({first: user("the g.")})
    assert sorted(found(file, "gong")) == ["a long result about the gong", "the gong"]


def test_a_transcript_without_its_header_or_with_torn_lines_is_searched(file: SessionFile) -> None:
    file.append_message(user("the gong"))
    file.append_message(user("the last one"))
    data = file.path.read_bytes()
    file.path.write_bytes(data.split(b"\n", 1)[1][:-9])
    assert found(SessionFile.open(file.path), "gong") == ["the gong"]


@given(role=JUNK | st.sampled_from(["user", "assistant", "toolResult"]), fields=st.dictionaries(FIELDS, JUNK))
@example(role="user", fields={"type": {}})
def test_blocks_of_other_programs_stop_nobody(role: Any, fields: dict[str, Any]) -> None:
    """Whatever stands in a message, what was said beside it is found."""
    block = {"type": "toolCall", "name": "read", **fields}
    other = {"role": role, "content": [block, {"type": "text", "text": "a gong"}], "toolName": fields.get("name")}
    rows = [
        {"type": "session", "version": 3, "id": "s", "timestamp": WHEN, "cwd": "/w"},
        {"type": "message", "id": "00000001", "parentId": None, "timestamp": WHEN, "message": other},
        {"type": "message", "id": "00000002", "parentId": "00000001", "timestamp": WHEN, "message": SAID},
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        said = recall(SessionFile.open(path, whole=True), "boiler", 5)
    assert [quote.text for quote in said] == ["The boiler is old."]


# --- what is not for a reader ---------------------------------------------------------------------------------


def test_silent_turns_and_replies_are_left_out(file: SessionFile) -> None:
    file.append_message(user("tea at four"))
    file.append_message(assistant("Noted about tea. NO_REPLY"))
    file.append_message(assistant("NO_REPLY"))
    file.append_message(user("Pre-compaction memory flush. Store tea now; reply with NO_REPLY."))
    flushed = file.append_message(assistant("", call("c", "write", content="tea"))).id
    file.append_message(result("c", "wrote tea"))
    file.append_message(user("more tea?"))
    file.append_custom_message(CustomMessage("note", "hidden tea", False))
    assert sorted(found(file, "tea")) == ["Noted about tea.", "more tea?", "tea at four"]
    assert found(file, "NO_REPLY") == []
    with pytest.raises(UsageError, match="says nothing that can be quoted"):
        read_entry(file, flushed)


def test_answers_of_recall_itself_are_left_out(file: SessionFile) -> None:
    file.append_message(user("the gong"))
    file.append_message(result("c", "[e1] user\nthe gong", "session_recall"))
    assert found(file, "gong") == ["the gong"]


# --- reading one entry --------------------------------------------------------------------------------------


def test_an_entry_is_read_by_its_id_part_by_part(file: SessionFile) -> None:
    text = "锅炉👩‍👩‍👧" * 3000
    entry = file.append_message(user(text)).id
    fold(file, file.append_message(user("kept")).id, entry)
    parts, offset = [], 0
    while True:
        quote = read_entry(file, entry, offset)
        parts.append(quote.text)
        assert quote.folded
        assert quote.start == offset
        assert 0 < len(quote.text) <= MOST_CHARS
        offset += len(quote.text)
        if not quote.left:
            break
    assert "".join(parts) == text
    with pytest.raises(UsageError, match=f"has {len(text)} characters"):
        read_entry(file, entry, len(text))
    with pytest.raises(EntryNotFound):
        read_entry(file, "nobody")


def test_an_entry_of_another_branch_is_read_too(file: SessionFile) -> None:
    entry = file.append_message(user("left behind")).id
    file.branch(None)
    file.append_message(user("elsewhere"))
    assert read_entry(file, entry).text == "left behind"


# --- always ---------------------------------------------------------------------------------------------------

WORDS = st.lists(st.sampled_from(["tea", "gong", "锅炉", "AB-1", "\n", "boilers"]), min_size=1, max_size=40)


@given(st.lists(WORDS.map(" ".join), max_size=8), WORDS.map(" ".join), st.integers(1, 4))
def test_answers_are_bounded_ordered_and_word_for_word(texts: list[str], question: str, limit: int) -> None:
    said = [Quote(f"e{i}", "", "user", text) for i, text in enumerate(texts)]
    quotes = best_quotes(said, question, limit)
    assert len(quotes) <= limit
    assert len({q.entry_id for q in quotes}) == len(quotes)
    assert [q.score for q in quotes] == sorted((q.score for q in quotes), reverse=True)
    for quote in quotes:
        whole = texts[int(quote.entry_id[1:])]
        assert whole[quote.start : len(whole) - quote.left] == quote.text
        assert quote.score > 0


@given(st.text(min_size=1, max_size=60), st.integers(1, 20))
@example("e" + "\u0301" * 30, 5)
def test_parts_join_to_the_whole(text: str, limit: int) -> None:
    quote, joined = Quote("e", "", "user", text), ""
    while len(joined) < len(text):
        part = part_of(quote, len(joined), limit)
        assert part.start == len(joined)
        assert part.text
        joined += part.text
    assert joined == text
