"""Transcripts in every state that crashes and other programs leave them in."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from builders import CASES, assistant, transcript, user, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.errors import EntryNotFound, SessionNotFound, TranscriptError
from lamella.sessions.transcript import SessionFile
from lamella.types.entries import POSITION_TYPE
from lamella.types.messages import AssistantMessage, Usage, UserMessage, text_of


def texts(file: SessionFile) -> list[str]:
    return [text_of(m.content) for m in file.context().messages if hasattr(m, "content")]


def copy(case: str, tmp_path: Path) -> Path:
    source = CASES / case
    target = tmp_path / source.name
    target.write_bytes(source.read_bytes())
    return target


# --- life of a file -------------------------------------------------------------------------------


def test_the_file_appears_with_the_first_message(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    file = SessionFile.create(path, session_id="s", cwd="/w")
    file.append_model_change("p", "m")
    file.append_thinking_level("low")
    assert not path.exists()
    file.append_message(user("hello"))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [r["type"] for r in rows] == ["session", "model_change", "thinking_level_change", "message"]
    assert [r.get("parentId") for r in rows[1:]] == [None, rows[1]["id"], rows[2]["id"]]
    assert SessionFile.open(path).context().state.thinking_level == "low"


def test_a_new_session_never_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("my notes\n")
    with pytest.raises(Exception, match="already exists"):
        SessionFile.create(path).append_message(user("x"))
    assert path.read_text() == "my notes\n"


def test_an_empty_file_becomes_the_session(tmp_path: Path) -> None:
    path = copy("K08/empty.jsonl", tmp_path)
    file = SessionFile.open(path)
    assert texts(file) == []
    file.append_message(user("first"))
    assert texts(SessionFile.open(path)) == ["first"]


def test_garbage_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"this is not a session\nat all\n")
    with pytest.raises(TranscriptError, match="is not a transcript"):
        SessionFile.open(path)
    assert path.read_bytes() == b"this is not a session\nat all\n"


def test_missing_files_are_said(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        SessionFile.open(tmp_path / "none.jsonl")


# --- crashes ----------------------------------------------------------------------------------------


def test_a_file_cut_at_any_byte_goes_on(tmp_path: Path) -> None:
    whole = (CASES / "K09/full.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    before = len(b"".join(lines[:-2]))
    path = tmp_path / "s.jsonl"
    for size in range(before, len(whole) + 1):
        path.write_bytes(whole[:size])
        known = texts(SessionFile.open(path, whole=True))
        file = SessionFile.open(path)
        assert texts(file) == known
        file.append_message(user("after the cut"))
        file.close()
        again = SessionFile.open(path, whole=True)
        assert texts(again) == [*known, "after the cut"], size
        assert path.read_bytes().startswith(whole[:size])  # nothing that was there is changed


def test_the_torn_line_is_reported_not_lost(tmp_path: Path) -> None:
    path = copy("K09/torn.jsonl", tmp_path)
    assert [d.code for d in SessionFile.open(path, whole=True).damage] == ["torn_line"]
    assert [d.code for d in SessionFile.open(path).damage] == ["torn_line"]


@pytest.mark.parametrize("name", ["broken_header.jsonl", "no_header.jsonl"])
def test_a_lost_header_loses_no_message(name: str, tmp_path: Path) -> None:
    path = copy(f"K08/{name}", tmp_path)
    original = path.read_bytes()
    file = SessionFile.open(path)
    before = texts(file)
    assert len(before) == 6
    assert "no_header" in [d.code for d in file.damage]
    assert path.read_bytes() == original  # reading never writes
    file.append_message(user("and on"))
    assert texts(SessionFile.open(path)) == [*before, "and on"]
    assert [p.read_bytes() for p in tmp_path.glob("*.bak.*")] == [original]
    assert [d.code for d in SessionFile.open(path).damage] == []


def test_damaged_lines_in_the_middle_are_stepped_over(tmp_path: Path) -> None:
    rows = transcript(["one", "two", "three"])
    path = tmp_path / "s.jsonl"
    lines = [json.dumps(r).encode() for r in rows]
    noise = [b"\x00" * 512, b"{half", b"null", b"[1]", b'"text"', b'{"type":"message"}', b"{}", b""]
    path.write_bytes(b"\n".join([lines[0], lines[1], *noise, *lines[2:]]) + b"\n")
    file = SessionFile.open(path, whole=True)
    assert texts(file) == ["one", "two", "three"]
    codes = [d.code for d in file.damage]
    assert codes == ["nul_block", "bad_json", "not_an_object", "not_an_object", "not_an_object", "no_id", "no_type"]
    assert [d.line for d in file.damage] == [3, 4, 5, 6, 7, 8, 9]
    assert texts(SessionFile.open(path)) == ["one", "two", "three"]


def test_damaged_lines_are_bridged_as_far_as_they_tell_their_parent(tmp_path: Path) -> None:
    lines = [json.dumps(r).encode() for r in transcript(["one", "two", "three", "four", "five"])]
    path = tmp_path / "s.jsonl"

    def read(*damaged: bytes) -> list[str]:
        path.write_bytes(b"\n".join([*lines[:2], *damaged, *lines[4:]]) + b"\n")
        return texts(SessionFile.open(path))

    assert read(lines[2][:-20], lines[3][:-20]) == ["one", "four", "five"]
    assert read(lines[2][:-20], lines[3][30:]) == ["four", "five"]  # nobody knows where it hung
    circle = lines[3].replace(b'"parentId": "m1"', b'"parentId": "m2"')[:-20]
    assert circle != lines[3][:-20]
    assert read(lines[2], circle) == ["four", "five"]


def test_nul_padding_before_a_line_is_removed(tmp_path: Path) -> None:
    rows = [json.dumps(r).encode() for r in transcript(["one", "two"])]
    path = tmp_path / "s.jsonl"
    path.write_bytes(rows[0] + b"\n" + rows[1] + b"\n" + b"\x00" * 64 + rows[2] + b"\n")
    assert texts(SessionFile.open(path)) == ["one", "two"]


def test_bom_and_crlf_are_read_and_appended_to(tmp_path: Path) -> None:
    path = copy("K20/bom_crlf.jsonl", tmp_path)
    before = texts(SessionFile.open(path))
    assert before
    assert not any("\ufeff" in t for t in before)
    file = SessionFile.open(path)
    file.append_message(user("more"))
    assert texts(SessionFile.open(path)) == [*before, "more"]


def test_lone_surrogates_are_replaced_on_reading_and_writing(tmp_path: Path) -> None:
    path = copy("K19/surrogates.jsonl", tmp_path)
    file = SessionFile.open(path)
    for text in texts(file):
        text.encode("utf-8")
    file.append_message(user("half \ud83d and whole 😀"))
    assert texts(SessionFile.open(path))[-1] == "half \ufffd and whole 😀"


def test_numbers_out_of_range_count_as_none(tmp_path: Path) -> None:
    digits = "1" * 5000
    usage = f'"usage": {{"totalTokens": 1e400, "input": {digits}, "output": 3}}'
    reply = f'{{"role": "assistant", "content": [], "timestamp": -1e400, {usage}}}'
    path = write_lines(tmp_path / "s.jsonl", transcript(["hi", "?"]))
    lines = path.read_text().splitlines()
    row = json.loads(lines[-1])
    lines[-1] = f'{{"type": "message", "id": "{row["id"]}", "parentId": "{row["parentId"]}", "message": {reply}}}'
    path.write_text("\n".join(lines) + "\n")
    last = SessionFile.open(path).context().messages[-1]
    assert isinstance(last, AssistantMessage)
    assert last.timestamp is None
    assert last.usage == Usage(output=3)


@pytest.mark.parametrize("depth", [101, 400, 900, 990, 50_000])
def test_a_line_that_nests_deeply_does_not_end_reading(depth: int, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.jsonl", transcript(["hi", "?", "go on"]))
    lines = path.read_text().splitlines()
    row = json.loads(lines[2])
    row["message"] = {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "n", "arguments": "?"}]}
    lines[2] = json.dumps(row).replace('"?"', '{"a": ' + "[" * depth + "]" * depth + "}")
    path.write_text("\n".join(lines) + "\n")
    messages = SessionFile.open(path).context().messages
    assert [text_of(m.content) for m in messages if isinstance(m, UserMessage)] == ["hi", "go on"]
    assert not [m for m in messages if isinstance(m, AssistantMessage) and m.tool_calls]


def test_a_newer_version_and_string_content_are_readable(tmp_path: Path) -> None:
    rows = transcript(["hello"])
    rows[0]["version"] = 7
    rows.append(
        {
            "type": "message",
            "id": "x1",
            "parentId": rows[-1]["id"],
            "timestamp": "",
            "message": {"role": "assistant", "content": "plain"},
        }
    )
    path = write_lines(tmp_path / "s.jsonl", rows)
    assert texts(SessionFile.open(path)) == ["hello", "plain"]
    assert SessionFile.open(path).header.version == 7


def test_unknown_entries_and_fields_survive_a_rewrite(tmp_path: Path) -> None:
    rows = transcript(["one"])
    rows[0].update(version=2, future={"a": 1})
    rows.insert(1, {"type": "hologram", "id": "h1", "parentId": None, "timestamp": "", "beam": [1, 2]})
    rows[2]["parentId"] = "h1"
    rows[2]["odd"] = "kept"
    path = write_lines(tmp_path / "s.jsonl", rows)
    file = SessionFile.open(path)
    file.append_message(user("two"))  # version 2: the file is rewritten
    stored = [json.loads(line) for line in path.read_text().splitlines()]
    assert stored[0]["future"] == {"a": 1}
    assert stored[0]["version"] == 3
    assert stored[1]["beam"] == [1, 2]
    assert stored[2]["odd"] == "kept"


# --- the tree ----------------------------------------------------------------------------------------


def test_bookkeeping_does_not_choose_the_branch(tmp_path: Path) -> None:
    path = copy("K13/fork.jsonl", tmp_path)
    before = path.read_bytes()
    for whole in (True, False):
        file = SessionFile.open(path, whole=whole)
        said = "\n".join(texts(file))
        summaries = [m.summary for m in file.context().messages if m.role == "compactionSummary"]
        assert all(t in said for t in ("Row 1 is done.", "Row 2 is done.", "Row 3 next."))
        assert summaries == ["harvest plan agreed, row 1 first"]
    entry = file.append_message(user("go on"))
    assert entry.parent_id == "n4"
    assert path.read_bytes().startswith(before)


@pytest.mark.parametrize("name", ["cycle", "self", "dup", "missing"])
def test_broken_links_end(name: str, tmp_path: Path) -> None:
    path = copy(f"K14/{name}.jsonl", tmp_path)
    whole, tail = SessionFile.open(path, whole=True), SessionFile.open(path)
    assert texts(whole) == texts(tail)
    assert texts(whole)
    assert len(texts(whole)) == len(set(texts(whole)))
    assert texts(whole)[-1] == {"self": "two"}.get(name, "three")
    codes = [d.code for d in whole.damage]
    assert codes.count("missing_parent" if name == "missing" else "parent_cycle") == 1
    if name == "missing":  # as Pi has it in o30_orphan_parent: the branch begins below what is missing
        assert texts(whole) == ["two", "three"]


def test_a_compaction_sees_only_the_active_branch(tmp_path: Path) -> None:
    from lamella.agent.cut import prepare_compaction
    from lamella.text.estimate import estimate_tokens

    file = SessionFile.open(copy("K15/branch.jsonl", tmp_path))
    prepared = prepare_compaction(file.context(), keep_recent_tokens=1, reserve_tokens=100, estimate=estimate_tokens)
    assert prepared is not None
    assert "purple" not in str(prepared)
    assert "purple" not in "\n".join(texts(file))


def test_moving_back_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    file = SessionFile.create(path)
    first = file.append_message(user("one"))
    file.append_message(assistant("reply"))
    file.append_message(user("two"))
    marker = file.branch(first.id)
    assert marker.text("customType") == POSITION_TYPE
    assert texts(SessionFile.open(path)) == ["one"]
    assert texts(SessionFile.open(path, whole=True)) == ["one"]
    file.append_message(user("other"))
    assert texts(SessionFile.open(path)) == ["one", "other"]
    with pytest.raises(EntryNotFound):
        file.branch("nope")


def test_moving_to_the_start_begins_a_second_root(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    file = SessionFile.create(path)
    file.append_message(user("one"))
    file.branch(None)
    assert texts(file) == []
    file.append_message(user("fresh"))
    assert texts(SessionFile.open(path)) == ["fresh"]


def test_labels_names_and_forks(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    file = SessionFile.create(path, cwd="/w")
    first = file.append_message(user("one"))
    file.set_label(first.id, "here")
    second = file.append_message(assistant("reply"))
    file.set_name("a\nname")
    file.append_message(user("later"))
    forked = file.fork(tmp_path / "f.jsonl", entry_id=second.id)
    again = SessionFile.open(tmp_path / "f.jsonl")
    assert again.header.parent_session == str(path)
    assert texts(again) == ["one", "reply"]
    assert again.labels == {first.id: "here"}
    assert forked.leaf_id == again.leaf_id
    assert file.name == "a name"
    file.set_name("")
    assert SessionFile.open(path).name is None
    file.set_label(first.id, None)
    assert SessionFile.open(path).labels == {}
    with pytest.raises(EntryNotFound):
        file.set_label("nope", "x")


# --- invariants ------------------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Random entries: forks, labels, compactions with good and bad links, repeated ids."""
    count = draw(st.integers(1, 14))
    ids = [f"e{i}" for i in range(count)]
    rows: list[dict[str, Any]] = [{"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/"}]
    for i in range(count):
        parent = draw(st.sampled_from([None, *ids[: i + 1], "gone"])) if i else None
        if draw(st.integers(0, 3)):
            parent = ids[i - 1] if i else None
        entry = {"id": draw(st.sampled_from([ids[i]] * 9 + ids[:1])), "parentId": parent, "timestamp": ""}
        kind = draw(st.sampled_from(["user", "assistant", "label", "compaction", "model", "level", "custom"]))
        match kind:
            case "user":
                entry |= {"type": "message", "message": {"role": "user", "content": f"u{i}"}}
            case "assistant":
                content = [{"type": "text", "text": f"a{i}"}]
                message = {"role": "assistant", "content": content, "provider": "p", "model": f"m{i}"}
                entry |= {"type": "message", "message": message}
            case "label":
                entry |= {"type": "label", "targetId": ids[0], "label": "x"}
            case "compaction":
                kept = draw(st.sampled_from([*ids, "gone"]))
                entry |= {"type": "compaction", "summary": f"s{i}", "firstKeptEntryId": kept, "tokensBefore": 1}
            case "model":
                entry |= {"type": "model_change", "provider": "q", "modelId": f"n{i}"}
            case "level":
                entry |= {"type": "thinking_level_change", "thinkingLevel": "low"}
            case _:
                entry |= {"type": "custom", "customType": "x"}
        rows.append(entry)
    return rows


@settings(max_examples=400, deadline=None)
@given(rows=trees())
def test_reading_from_the_end_equals_reading_all(rows: list[dict[str, Any]], tmp_path_factory: Any) -> None:
    path = write_lines(tmp_path_factory.mktemp("t") / "s.jsonl", rows)
    whole, tail = SessionFile.open(path, whole=True), SessionFile.open(path)
    assert tail.leaf_id == whole.leaf_id
    assert tail.context().messages == whole.context().messages
    assert tail.state == whole.state


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300))
def test_no_bytes_make_reading_fail_otherwise(data: bytes, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("t") / "s.jsonl"
    path.write_bytes(data)
    with contextlib.suppress(TranscriptError):
        SessionFile.open(path).context()
    assert path.read_bytes() == data


def test_a_repeated_id_behind_the_kept_context_counts_by_its_last_line(tmp_path: Path) -> None:
    rows = transcript(["a", "b"])
    reply = {"role": "assistant", "content": [], "provider": "p", "model": "late"}
    rows.append({"type": "message", "id": "m0", "parentId": None, "timestamp": "", "message": reply})
    rows += [{**r, "id": f"k{i}", "parentId": "m1"} for i, r in enumerate(transcript(["kept"])[1:])]
    rows.append(
        {"type": "compaction", "id": "c", "parentId": "k0", "summary": "s", "firstKeptEntryId": "k0", "tokensBefore": 1}
    )
    path = write_lines(tmp_path / "s.jsonl", rows)
    assert SessionFile.open(path, whole=True).state.model_id == "late"
    assert SessionFile.open(path).state.model_id == "late"


def test_a_compaction_repeats_model_and_level_and_reads_no_further(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    file = SessionFile.create(path)
    file.append_model_change("p", "m")
    file.append_thinking_level("high")
    for i in range(200):
        file.append_message(user(f"old {i} " + "x" * 500))
    kept = file.append_message(user("kept"))
    file.append_compaction("summary", kept.id, 1000)
    file.append_message(user("after"))
    again = SessionFile.open(path)
    assert [m.role for m in again.context().messages] == ["compactionSummary", "user", "user"]
    assert (again.state.model_id, again.state.thinking_level) == ("m", "high")
    assert len(again.branch_entries()) < 10
    assert len(again.path_of()) == 207
    assert texts(again) == ["kept", "after"]


def test_a_writer_that_is_behind_is_told(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.jsonl", transcript(["one"]))
    mine, theirs = SessionFile.open(path), SessionFile.open(path)
    theirs.append_message(user("theirs"))
    assert mine.changed_on_disk
    with pytest.raises(TranscriptError, match="changed by another process"):
        mine.append_message(user("mine"))
    assert texts(SessionFile.open(path)) == ["one", "theirs"]
    assert isinstance(mine.context().messages[0], UserMessage)
