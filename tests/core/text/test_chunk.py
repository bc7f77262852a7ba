import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.text.chunk import chunk_text, token_estimate

line_ends = st.sampled_from(["\n", "\r\n", "\n\n", "\r", "\n- ", "\n# "])
pieces = st.one_of(
    line_ends,
    st.text("ab c。，", max_size=30),
    st.text("汉字かな글", max_size=60),
    st.text("🦊é\u2028\x0b", max_size=10),
    st.just("x" * 300),
)
documents = st.lists(pieces, max_size=40).map("".join)
sizes = st.integers(8, 60)


@settings(deadline=None)
@given(documents, sizes, st.integers(0, 80), st.booleans())
def test_chunks_are_exact_slices_with_true_lines_within_the_budget(
    text: str, size: int, overlap: int, by_entry: bool
) -> None:
    chunks = chunk_text(text, size=size, overlap=overlap, by_entry=by_entry)
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.start_line == text.count("\n", 0, chunk.start) + 1
        assert chunk.end_line == text.count("\n", 0, chunk.end) + 1
        assert token_estimate(chunk.text) <= size
        assert chunk.text.strip()
        assert not chunk.text.endswith("\n")
    assert all(a.start < b.start and a.end < b.end for a, b in itertools.pairwise(chunks))
    if by_entry is False and overlap == 0:
        assert all(a.end <= b.start for a, b in itertools.pairwise(chunks))
    covered = {i for c in chunks for i in range(c.start, c.end)}
    assert all(i in covered for i, character in enumerate(text) if not character.isspace())


@settings(deadline=None)
@given(documents, sizes)
def test_a_cut_never_parts_cr_from_lf(text: str, size: int) -> None:
    for chunk in chunk_text(text, size=size, overlap=0):
        assert not (chunk.text.endswith("\r") and text.startswith("\n", chunk.end))


def test_nothing_and_blank_space_give_no_chunks() -> None:
    assert chunk_text("") == []
    assert chunk_text("\n\n   \r\n") == []


def test_blank_lines_at_the_ends_do_not_count() -> None:
    (chunk,) = chunk_text("\n\n- one\r\n- two\r\n\r\n")
    assert (chunk.text, chunk.start_line, chunk.end_line) == ("- one\r\n- two", 3, 4)


def test_a_lone_carriage_return_is_no_line_end() -> None:
    (chunk,) = chunk_text("a\rb\nc")
    assert (chunk.start_line, chunk.end_line) == (1, 2)


def test_the_next_chunk_repeats_the_last_lines() -> None:
    text = "".join(f"line {i:02} with five words\n" for i in range(20))
    first, second, *_ = chunk_text(text, size=32, overlap=8)
    assert second.start_line <= first.end_line < second.end_line


def test_chinese_counts_a_token_a_character() -> None:
    assert token_estimate("汉" * 100) == 100
    assert token_estimate("a" * 100) == 25
    assert max(len(c.text) for c in chunk_text("汉" * 1000, size=128)) == 128
    assert max(len(c.text) for c in chunk_text("a" * 1000, size=128)) == 512


def test_a_long_line_is_cut_at_blanks() -> None:
    chunks = chunk_text("- " + " ".join(f"word{i:04}" for i in range(200)), size=32, overlap=0)
    assert {(c.start_line, c.end_line) for c in chunks} == {(1, 1)}
    assert all(c.text.split()[-1].startswith("word") and len(c.text.split()[-1]) == 8 for c in chunks)


def test_entries_are_chunks_of_their_own() -> None:
    text = "# Title\n\n- one\n- two\n  more of two\n\n## Next\n\n- three\n1. four\n"
    assert [(c.start_line, c.end_line) for c in chunk_text(text, by_entry=True)] == [
        (1, 1),
        (3, 3),
        (4, 5),
        (7, 7),
        (9, 9),
        (10, 10),
    ]


@pytest.mark.parametrize(("size", "overlap"), [(7, 0), (0, 0), (100, -1)])
def test_impossible_sizes_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="expected size"):
        chunk_text("text", size=size, overlap=overlap)
