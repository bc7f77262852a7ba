"""Search over transcripts: every word, on every branch, once, with a passage around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import assistant, transcript, user, write_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamella.sessions.archive import put_aside
from lamella.sessions.search import search, searchable
from lamella.sessions.transcript import SessionFile
from lamella.sessions.writer import rewrite


def texts(folder: Path, wanted: str, limit: int = 100) -> list[str]:
    found, skipped = search(searchable(folder), wanted, limit)
    assert skipped == []
    return [match.quote.text for match in found]


def test_branches_that_were_left_are_searched_too(tmp_path: Path) -> None:
    file = SessionFile.create(tmp_path / "s.jsonl")
    first = file.append_message(user("begin"))
    file.append_message(assistant("the left branch"))
    file.branch(first.id)
    file.append_message(assistant("the branch that goes on"))
    assert sorted(texts(tmp_path, "branch")) == ["the branch that goes on", "the left branch"]


def test_what_a_fork_shares_with_its_origin_is_found_once(tmp_path: Path) -> None:
    file = SessionFile.create(tmp_path / "a.jsonl")
    file.append_message(user("boiler one"))
    file.fork(tmp_path / "b.jsonl").append_message(user("boiler two"))
    assert sorted(texts(tmp_path, "boiler")) == ["boiler one", "boiler two"]


def test_archives_are_searched_and_copies_are_not(tmp_path: Path) -> None:
    for name, kind in (("a", "reset"), ("b", "deleted")):
        put_aside(write_lines(tmp_path / f"{name}.jsonl", transcript([f"word {name}"])), kind)  # type: ignore[arg-type]
    rewrite(write_lines(tmp_path / "c.jsonl", transcript(["word c"])), [b'{"type":"session","id":"c"}'])
    assert sorted(texts(tmp_path, "word")) == ["word a", "word b"]


def test_the_newest_come_first_and_no_more_than_asked_for(tmp_path: Path) -> None:
    file = SessionFile.create(tmp_path / "s.jsonl")
    for day in range(1, 6):
        file.append("message", {"message": {"role": "user", "content": f"tea {day}"}}, now=f"2026-05-0{day}T08:00:00Z")
    assert texts(tmp_path, "tea", 2) == ["tea 5", "tea 4"]


def test_a_file_that_is_no_transcript_is_named_and_the_rest_is_searched(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", transcript(["the word"]))
    (tmp_path / "b.jsonl").write_text("nothing\n")
    found, skipped = search(searchable(tmp_path), "word", 5)
    assert [f.path.name for f in found] == ["a.jsonl"]
    assert [s.path.name for s in skipped] == ["b.jsonl"]
    assert searchable(tmp_path / "none") == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.text("ab 数据é👩‍👧\nﬃ", max_size=700),
    st.text("ab 数据é👩‍👧\nﬃ", max_size=700),
    st.sampled_from(["Needle", "针", "ﬁn"]),
)
def test_the_passage_holds_the_word_and_is_part_of_the_entry(
    tmp_path: Path, before: str, after: str, word: str
) -> None:
    path = tmp_path / "s.jsonl"
    path.unlink(missing_ok=True)
    text = f"x{before}{word}{after}"
    write_lines(path, transcript([text]))
    (match,) = search([path], word.upper(), 5)[0]
    quote = match.quote
    assert word in quote.text
    assert text[quote.start :].startswith(quote.text)
    assert quote.start + len(quote.text) + quote.left == len(text)


@pytest.mark.parametrize("text", ["straße", "STRASSE", "Ｓｔｒａｓｓｅ"])
def test_case_and_width_do_not_count(text: str, tmp_path: Path) -> None:
    write_lines(tmp_path / "s.jsonl", transcript([text]))
    assert texts(tmp_path, "strasse") == [text]
