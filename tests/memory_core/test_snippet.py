from hypothesis import given
from hypothesis import strategies as st

from lamella.text.files import split_lines
from lamella_memory_core.ranking.snippet import make_snippet

lines = st.lists(st.text("abc okapi汉字🦊\r", max_size=60), min_size=1, max_size=20)


@given(lines, st.integers(20, 200), st.integers(1, 50))
def test_a_snippet_is_within_its_lines_and_the_limit(content: list[str], limit: int, first: int) -> None:
    text = "\n".join(content)
    snippet = make_snippet(text, first, ["okapi", "汉字"], limit)
    assert len(snippet.text) <= limit
    every = split_lines(text)
    cited = "\n".join(every[snippet.start_line - first : snippet.end_line - first + 1])
    if snippet.start_line < snippet.end_line or len(cited) <= limit:
        assert snippet.text == cited
    else:
        assert snippet.text.removeprefix("…").removesuffix("…") in cited


def test_the_lines_with_the_words_are_shown() -> None:
    text = "\n".join([*["filler line"] * 30, "the okapi", "ate figs", *["filler line"] * 30])
    snippet = make_snippet(text, 101, ["okapi", "figs"], 60)
    assert "the okapi\nate figs" in snippet.text
    assert snippet.start_line <= 131 and snippet.end_line >= 132


def test_a_long_line_is_cut_around_the_word() -> None:
    snippet = make_snippet("filler " * 300 + "okapi " + "filler " * 300, 5, ["okapi"], 100)
    assert "okapi" in snippet.text
    assert snippet.text.startswith("…") and snippet.text.endswith("…")
    assert (snippet.start_line, snippet.end_line, len(snippet.text)) == (5, 5, 100)


def test_a_short_passage_is_shown_whole_with_plain_line_ends() -> None:
    assert make_snippet("a\r\nb\r\n", 3, ["b"], 100).text == "a\nb"
