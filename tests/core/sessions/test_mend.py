"""Mending transcripts: afterwards they are whole, and every reader has the context that it had before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import transcript
from hypothesis import given
from hypothesis import strategies as st
from pi_golden import session_cases

from lamella.errors import SessionError
from lamella.sessions.mend import defects, mended_lines
from lamella.sessions.reader import Transcript, parse_transcript
from lamella.sessions.transcript import SessionFile

PATH = Path("s.jsonl")


def lines_of(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def mended(data: bytes) -> Transcript:
    """A transcript that was mended; asserts that it is whole and stays the same when it is mended again."""
    whole = b"\n".join(mended_lines(parse_transcript(PATH, data))) + b"\n"
    found = parse_transcript(PATH, whole)
    assert defects(found) == []
    assert not found.needs_rewrite
    assert b"\n".join(mended_lines(found)) + b"\n" == whole
    return found


def context(folder: Path, data: bytes) -> Any:
    file = folder / "s.jsonl"
    file.write_bytes(data)
    opened = SessionFile.open(file, whole=True)
    return opened.context().messages, opened.leaf_id, opened.state


def test_nothing_is_changed_in_a_whole_file() -> None:
    data = lines_of(transcript(["one", "两"]))
    header, *entries = mended_lines(parse_transcript(PATH, data))
    assert json.loads(header) == transcript([])[0]
    assert entries == data.splitlines()[1:]


def test_an_entry_below_a_lost_line_hangs_from_its_parent() -> None:
    rows = [json.dumps(row).encode() for row in transcript(["one", "two", "three"])]
    rows[2] = rows[2][:-30]
    found = mended(b"\n".join(rows) + b"\n")
    assert [(h.id, h.parentId) for h in found.lines.heads] == [("m0", None), ("m2", "m0")]


def test_a_lost_header_is_made_again() -> None:
    found = mended(lines_of(transcript(["one"])[1:]))
    assert (found.header.id, found.header_found) == ("s", True)


def test_an_id_that_is_there_twice() -> None:
    rows = transcript(["one", "two"])
    found = mended(lines_of([*rows, {**rows[1], "parentId": "m1", "message": {"role": "user", "content": "again"}}]))
    assert [h.id for h in found.lines.heads] == ["m0-0", "m1", "m0"]


def test_a_cycle_is_cut_where_readers_end() -> None:
    rows = transcript(["one", "two", "three"])
    rows[1]["parentId"] = "m2"
    found = mended(lines_of(rows))
    assert [(h.id, h.parentId) for h in found.lines.heads] == [("m0", None), ("m1", "m0"), ("m2", "m1")]


def test_bookkeeping_that_took_the_id_of_what_was_said_hides_nothing(tmp_path: Path) -> None:
    header, said = transcript(["one"])
    data = lines_of([header, said, {**said, "type": "label", "parentId": said["id"]}])
    whole = b"\n".join(mended_lines(parse_transcript(PATH, data))) + b"\n"
    assert [m.content for m in context(tmp_path, whole)[0]] == [m.content for m in context(tmp_path, data)[0]] != []


@pytest.mark.parametrize("source", [s for _, s in session_cases()], ids=lambda s: s.stem)
def test_files_of_pi_keep_their_context(source: Path, tmp_path: Path) -> None:
    data = source.read_bytes()
    found = mended(data)
    assert context(tmp_path, b"\n".join(mended_lines(found)) + b"\n") == context(tmp_path, data)


_ids = st.sampled_from(["a", "b", "c", "d"])
_entries = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["message", "label", "custom"]),
        "id": _ids,
        "parentId": _ids | st.none() | st.just("lost"),
        "timestamp": st.just("2026-05-10T08:00:00.000Z"),
        "message": st.builds(lambda t: {"role": "user", "content": t}, st.text(max_size=3)),
    }
)
_parts = st.one_of(
    _entries.map(lambda row: json.dumps(row).encode()),
    st.sampled_from([b"", b"{", b"[1]", b"\x00\x00", b"\xff", b'{"type":"x"}', b'{"type":"session","id":"z"}']),
)


@given(st.lists(_parts, max_size=10), st.booleans(), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_every_reader_has_the_same_context(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], header: bool, end: bytes, complete: bool
) -> None:
    first = (
        [b'{"type":"session","version":3,"id":"s","timestamp":"2026-05-10T08:00:00.000Z","cwd":""}'] if header else []
    )
    data = end.join([*first, *parts]) + (end if complete else b"")
    try:
        found = parse_transcript(PATH, data)
    except SessionError:
        return  # no transcript at all
    folder = tmp_path_factory.mktemp("mended", numbered=True)
    whole = mended(data)
    if found.lines:
        assert context(folder, b"\n".join(mended_lines(whole)) + b"\n")[:1] == context(folder, data)[:1]
