from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lamella.text.chunk import chunk_text
from lamella_memory_core.ranking.passages import Passage, Piece, Sizes, joined

LINES = "".join(f"line {i} says something of its own\n" for i in range(60))


def pieces(source: str, *, size: int = 32, overlap: int = 8, file: int = 0, first: int = 0) -> dict[int, Piece]:
    cut = chunk_text(source, size=size, overlap=overlap)
    return {i: Piece(i, file, c.start_line, c.end_line, c.start, c.end, c.text) for i, c in enumerate(cut, first)}


def lines(passage: Passage) -> tuple[int, int]:
    return passage.start_line, passage.end_line


def test_neighbours_become_one_in_the_order_of_the_file() -> None:
    found = pieces(LINES)
    (one,) = joined([4, 3, 5], found, Sizes(1200, 0), 6)
    assert lines(one) == (found[3].start_line, found[5].end_line)
    assert one.text == LINES[found[3].start : found[5].end]
    assert one.positions == (4, 3, 5)


def test_what_would_be_too_long_stays_apart() -> None:
    found = pieces(LINES)
    first, second = joined([3, 4], found, Sizes(150, 0), 6)
    assert (lines(first)[0], lines(second)[0]) == (found[3].start_line, found[4].start_line)


def test_distant_hits_and_other_files_stay_apart() -> None:
    found = pieces(LINES) | pieces(LINES, file=1, first=100)
    assert len(joined([2, 4, 101], found, Sizes(1200, 0), 6)) == 3
    assert len(joined([2, 4, 101], found, Sizes(1200, 0), 2)) == 2


def test_a_short_passage_gets_what_goes_on_beside_it() -> None:
    found = pieces(LINES)
    (grown,) = joined([3], found, Sizes(1200, 250), 6)
    assert len(grown.text) >= 250
    assert found[3].text in grown.text
    assert grown.positions == (3,)
    better = {i: evolve(p, worth=float(i == 2)) for i, p in found.items()}
    (grown,) = joined([3], better, Sizes(1200, 150), 6)
    assert lines(grown) == (found[2].start_line, found[3].end_line)
    entries = {i: Piece(i, 0, i + 1, i + 1, i * 10, i * 10 + 9, "- entry 1") for i in range(5)}
    (alone,) = joined([2], entries, Sizes(1200, 250), 6)
    assert alone.text == "- entry 1"


def test_a_short_passage_grows_within_its_paragraph() -> None:
    """Sentences a line, each a piece: text up to a blank line, a heading or a list item goes on."""
    source = "# One\nA b.\nC d.\n\nE f.\n- g\n"
    texts = [(1, "# One"), (2, "A b."), (3, "C d."), (5, "E f."), (6, "- g")]
    found = {}
    for position, (line, text) in enumerate(texts):
        start = source.index(text)
        found[position] = Piece(position, 0, line, line, start, start + len(text), text)
    (paragraph,) = joined([1], found, Sizes(1200, 600), 6)
    assert paragraph.text == "# One\nA b.\nC d."
    (last,) = joined([3], found, Sizes(1200, 600), 6)
    assert last.text == "E f."


def test_blank_lines_between_pieces_keep_their_number() -> None:
    parts = {0: Piece(0, 0, 1, 1, 0, 3, "one"), 1: Piece(1, 0, 4, 4, 6, 9, "two")}
    (both,) = joined([1, 0], parts, Sizes(), 6)
    assert both.text == "one\n\n\ntwo"
    assert both.text.count("\n") == both.end_line - both.start_line


@given(
    st.lists(st.sampled_from(["", "短い文。", "a line", "word " * 60, "- entry"]), max_size=40).map("\n".join),
    st.data(),
)
def test_passages_are_slices_within_the_limit(source: str, data: st.DataObject) -> None:
    found = pieces(source)
    order = data.draw(st.permutations(sorted(found)))
    sizes = Sizes(300, 120)
    for passage in joined(order, found, sizes, 50):
        cited = "\n".join(source.split("\n")[passage.start_line - 1 : passage.end_line])
        assert passage.text in cited
        assert len(passage.text) <= sizes.most
    covered = {p for passage in joined(order, found, sizes, 50) for p in passage.positions}
    assert covered <= set(order)
