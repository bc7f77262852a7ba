"""The contract of `search`: what is found, and how it is told."""

from __future__ import annotations

import unicodedata

import pytest

from lamella.testing.contract.base import ContractBase
from lamella.testing.contract.notebook import Notebook

# Language: (a note of it, a question that the note answers).
LANGUAGES = {
    "Chinese": ("锅炉的检修日期是十月二十日，由技师负责。", "锅炉什么时候检修？"),
    "Japanese": ("ボイラーの点検は十月二十日に行う。", "ボイラーの点検はいつですか？"),
    "Korean": ("보일러 점검 날짜는 10월 20일이다.", "보일러 점검은 언제인가요?"),
    "English": ("The boiler is serviced on 20 October.", "When is the boiler serviced?"),
    "Spanish": ("La caldera se revisa el 20 de octubre.", "¿Cuándo se revisa la caldera?"),
    "German": ("Die Heizung wird am 20. Oktober gewartet.", "Wann wird die Heizung gewartet?"),
    "French": ("La chaudière est révisée le 20 octobre.", "Quand la chaudière est-elle révisée ?"),
    "Russian": ("Котёл обслуживают двадцатого октября.", "Когда обслуживают котёл?"),
}

HOSTILE = {
    "empty": "",
    "blanks": "  \t\n ",
    "one character": "水",
    "quotes": "\"it's\" 'quoted' ``",
    "operators": "AND OR NOT NEAR(a, 2) a* ^b -c +d col:x",
    "brackets": "((([[[{{{",
    "pattern": ".*+?(?P<x>",
    "SQL": "'; DROP TABLE chunks; --",
    "wildcards": "%_%\\%",
    "NUL": "boiler\x00boiler",
    "half a character": "boiler \ud800",
    "direction marks": "\u202eboiler\u202c \u200f",
    "only signs": "!?.,:;---***",
    "emoji": "🦊🦊‍🔥",
    "stop words": "what is the of and",
    "a dash first": "--help -rf",
    "a path": "../../etc/passwd",
}


class SearchContract(ContractBase):
    """Finding passages."""

    def test_results_have_the_form_of_the_protocol(self, notebook: Notebook) -> None:
        notebook.fill()
        notebook.write("MEMORY.md", "# Facts\n\nThe staging server is called bluebird.\n")
        results = notebook.search(notebook.synced(), "what is the staging server called?")
        assert results.hits, "a note that has the words of the question must be found"
        assert results.hits[0].path == "MEMORY.md", f"the note with the words comes first, not {results.hits[0].path}"
        assert results.hits[0].source == "memory", "a hit from a Markdown file has the source memory"

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_a_question_finds_its_note_in_every_language(self, notebook: Notebook, language: str) -> None:
        notebook.fill()
        note, question = LANGUAGES[language]
        notebook.write("memory/answer.md", f"# 1\n\n{note}\n")
        found = notebook.found(notebook.synced(), question)
        assert "memory/answer.md" in found[:3], (
            f"{question!r} must find the note that says {note!r} among the first 3 files; it found {found}"
        )

    @pytest.mark.parametrize("wanted", ["ERR-4042", "db_host", "10.0.3.17", "v2.18.0", "Ünïcode_名前"])
    def test_an_identifier_finds_its_note(self, notebook: Notebook, wanted: str) -> None:
        notebook.fill()
        notebook.write("memory/near.md", "The host, the version, the name and the number of the error.\n")
        notebook.write("memory/answer.md", f"Seen in the log: {wanted} twice.\n")
        found = notebook.found(notebook.synced(), wanted)
        assert found[:1] == ["memory/answer.md"], f"{wanted!r} must find the note that has it first; it found {found}"

    @pytest.mark.parametrize(("stored", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])
    def test_composed_and_decomposed_letters_are_the_same(self, notebook: Notebook, stored: str, asked: str) -> None:
        notebook.fill()
        text = "Das Café in Zürich öffnet früh."
        notebook.write("memory/answer.md", unicodedata.normalize(stored, text) + "\n")  # type: ignore[arg-type]
        found = notebook.found(notebook.synced(), unicodedata.normalize(asked, "Café Zürich"))  # type: ignore[arg-type]
        assert "memory/answer.md" in found[:3], f"a question in {asked} must find a note in {stored}; it found {found}"

    def test_capital_letters_make_no_difference(self, notebook: Notebook) -> None:
        notebook.fill()
        notebook.write("memory/answer.md", "The Staging server is called BlueBird.\n")
        found = notebook.found(notebook.synced(), "STAGING bluebird")
        assert found[:1] == ["memory/answer.md"], f"found {found}"

    def test_emoji_do_not_shift_places(self, notebook: Notebook) -> None:
        notebook.fill()
        notebook.write("memory/emoji.md", "👩‍👩‍👧‍👦 family 🦊\n\n🔥🔥🔥\n\nthe okapi 🦒 eats figs 🇨🇭\n")
        backend = notebook.synced()
        hits = [h for h in notebook.search(backend, "okapi figs").hits if h.path == "memory/emoji.md"]
        assert hits, "a note with emoji must be found by its words"
        notebook.check_place(hits[0])
        assert hits[0].start_line <= 5 <= hits[0].end_line, f"the words stand in line 5, the hit is {hits[0].citation}"
        assert "🦒" in hits[0].snippet, f"the snippet has lost an emoji: {hits[0].snippet!r}"

    # --- lines -------------------------------------------------------------------------------------

    @pytest.mark.parametrize("line", [1, 2, 57, 119, 120])
    def test_line_numbers_are_those_of_the_file(self, notebook: Notebook, line: int) -> None:
        lines = [f"Entry {n}: nothing of note happened on that day." for n in range(1, 121)]
        lines[line - 1] = "The zeppelin landed near the observatory."
        notebook.write("memory/long.md", "\n".join(lines) + "\n")
        self._check_line(notebook, "memory/long.md", "zeppelin observatory", line)

    def test_line_numbers_are_right_with_windows_line_ends(self, notebook: Notebook) -> None:
        lines = [*["filler line"] * 40, "the okapi eats figs", *["filler line"] * 40]
        notebook.write("memory/crlf.md", "\r\n".join(lines) + "\r\n")
        self._check_line(notebook, "memory/crlf.md", "okapi figs", 41)

    def test_a_byte_order_mark_is_no_text(self, notebook: Notebook) -> None:
        notebook.write("memory/bom.md", b"\xef\xbb\xbf" + b"okapi figs\nother\n")
        self._check_line(notebook, "memory/bom.md", "okapi figs", 1)
        (hit, *_) = notebook.search(notebook.synced(), "okapi figs").hits
        assert "\ufeff" not in hit.snippet, "the byte-order mark must not be shown"

    def test_only_line_feeds_end_a_line(self, notebook: Notebook) -> None:
        notebook.write("memory/odd.md", "one\x0ctwo\u2028three\x85four\n\nthe okapi eats figs\n")
        self._check_line(notebook, "memory/odd.md", "okapi figs", 3)

    def test_a_very_long_line_is_found_and_not_shown_whole(self, notebook: Notebook) -> None:
        notebook.write(
            "memory/wide.md", "start\n" + "filler " * 20_000 + "okapi figs " + "filler " * 20_000 + "\nend\n"
        )
        hits = notebook.search(notebook.synced(), "okapi figs").hits
        assert hits and hits[0].start_line == 2, f"the words stand in line 2; found {[h.citation for h in hits]}"
        assert len(hits[0].snippet) < 20_000, f"a snippet is a passage; this one has {len(hits[0].snippet)} characters"

    def _check_line(self, notebook: Notebook, path: str, words: str, line: int) -> None:
        hits = [h for h in notebook.search(notebook.synced(), words).hits if h.path == path]
        assert hits, f"{words!r} must find {path}"
        best = hits[0]
        notebook.check_place(best)
        assert best.start_line <= line <= best.end_line, f"the words stand in line {line}, the hit is {best.citation}"
        assert words.split()[0] in best.snippet, f"the snippet must show what was found: {best.snippet!r}"

    # --- what a query asks for ---------------------------------------------------------------------

    def test_max_results_and_min_score_are_honoured(self, notebook: Notebook) -> None:
        for n in range(12):
            notebook.write(
                f"memory/{n}.md", f"# Note {n}\n\nThe okapi ate {'figs and more figs' if n % 2 else 'leaves'}.\n"
            )
        backend = notebook.synced()
        every = notebook.search(backend, "okapi figs", max_results=50).hits
        assert len({h.path for h in every}) >= 6, "notes that have both words must all be found when there is room"
        assert len(notebook.search(backend, "okapi figs", max_results=1).hits) == 1, "one hit was asked for"
        middle = every[len(every) // 2].score
        assert notebook.search(backend, "okapi figs", min_score=middle, max_results=50).hits, "hits at min_score stay"
        notebook.search(backend, "okapi figs", min_score=1.0, max_results=50)

    def test_a_right_answer_is_above_the_floor_of_usual_searches(self, notebook: Notebook) -> None:
        notebook.fill()
        notebook.write("memory/okapi.md", "# Zoo\n\nThe okapi eats figs.\n\nThe gate is painted green.\n")
        found = notebook.found(notebook.synced(), "What does the okapi eat? figs", min_score=0.2)
        assert found[:1] == ["memory/okapi.md"], (
            f"commands and tools leave out what scores below 0.2; a right answer must score more; found was {found}"
        )

    def test_an_excluded_file_is_not_in_the_answer(self, notebook: Notebook) -> None:
        notebook.fill()
        notebook.write("MEMORY.md", "The okapi is called Fig.\n")
        notebook.write("memory/okapi.md", "The okapi was seen again.\n")
        backend = notebook.synced()
        found = notebook.found(backend, "okapi", exclude=("MEMORY.md",), max_results=20)
        assert "memory/okapi.md" in found, "what is not excluded must still be found"
        assert notebook.found(backend, "okapi", exclude=("MEMORY.md",), max_results=1) == ["memory/okapi.md"], (
            "an excluded file must not take the place of another one"
        )
        notebook.write("memory/deep/MEMORY.md", "The okapi is asleep.\n")
        notebook.sync(backend)
        found = notebook.found(backend, "okapi", exclude=("MEMORY.md",), max_results=20)
        assert "memory/deep/MEMORY.md" in found, "a file is excluded by its whole path, not by its name"

    def test_sources_limit_the_answer(self, notebook: Notebook) -> None:
        notebook.write("memory/okapi.md", "The okapi was seen again.\n")
        backend = notebook.synced()
        assert notebook.found(backend, "okapi", sources=("memory",)) == ["memory/okapi.md"]
        assert notebook.found(backend, "okapi", sources=("sessions",)) == [], "there are no sessions to be found here"
        both = notebook.found(backend, "okapi", sources=("sessions", "memory"))
        assert both == ["memory/okapi.md"], (
            f"a passage may come from any of the sources that are named; found was {both}"
        )

    def test_the_same_question_gives_the_same_answer(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        first, again = (notebook.search(backend, "night train platform") for _ in range(2))
        assert first.hits == again.hits, "nothing has changed between the two searches"

    def test_a_query_that_explains_finds_the_same(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        plain = notebook.search(backend, "night train platform").hits
        explained = notebook.search(backend, "night train platform", explain=True).hits
        assert [h.citation for h in plain] == [h.citation for h in explained], "to explain changes nothing else"

    # --- queries of all kinds ----------------------------------------------------------------------

    @pytest.mark.parametrize("kind", HOSTILE)
    def test_no_query_raises(self, notebook: Notebook, kind: str) -> None:
        notebook.fill()
        notebook.search(notebook.synced(), HOSTILE[kind])

    def test_a_huge_query_is_answered(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        notebook.search(backend, "night train " * 20_000)
        notebook.search(backend, "夜行列车" * 20_000)
        notebook.search(backend, "x" * 200_000)

    def test_an_empty_workspace_gives_no_hits(self, notebook: Notebook) -> None:
        backend = notebook.synced()
        assert notebook.search(backend, "anything").hits == (), "there is nothing to be found"

    def test_empty_and_blank_files_are_no_trouble(self, notebook: Notebook) -> None:
        notebook.write("memory/empty.md", "")
        notebook.write("memory/blank.md", "\n\n   \n")
        notebook.write("memory/okapi.md", "okapi")
        assert notebook.found(notebook.synced(), "okapi") == ["memory/okapi.md"], "a last line needs no line end"
