"""What qmd prints, through a search: noise, damage, nothing."""

from __future__ import annotations

import pytest
from qmd_programs import Scene

from lamella.errors import MemoryUnavailable
from lamella_qmd_backend.output import Result, parse_results, parse_version

FOUND = ["memory/2026-03-02.md"]


@pytest.mark.parametrize(
    "mode",
    [
        "noise_before",
        "noise_ansi",
        "noise_after",
        "bom",
        "object",
        "nan",
        "bad_items",
        "bad_utf8",
        "split",
        "loud",
        "zero_scores",
        "duplicate",
        "odd_snippets",
        "outside",
        "abort_after",
        "exit134_after",
    ],
)
def test_results_are_found_in_what_is_printed(scene: Scene, mode: str) -> None:
    scene.qmd.play(mode, "query")
    (hit,) = scene.search("连接池", min_score=0.2).hits
    assert (hit.path, hit.start_line, hit.end_line) == (*FOUND, 1, 5)
    assert "连接池已调大" in hit.snippet and "@@" not in hit.snippet


@pytest.mark.parametrize("mode", ["nothing_stdout", "nothing_stderr"])
def test_no_results_is_an_answer(scene: Scene, mode: str) -> None:
    scene.qmd.play(mode, "query")
    found = scene.search("pool")
    assert found.hits == () and found.degraded is None and found.backend == "qmd"


def test_an_empty_answer_is_an_answer(scene: Scene) -> None:
    found = scene.search("xyzzynothing")
    assert found.hits == () and found.degraded is None


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("silent", "gave no answer that can be read"),
        ("truncated", "gave no answer that can be read"),
        ("huge", "gave more output than expected"),
        ("exit1", "qmd query failed: boom"),
        ("stack", "qmd query failed: SqliteError: no such table: documents"),
        ("full", "no space left on device"),
    ],
)
def test_what_is_no_answer_is_a_failure_with_a_reason(scene: Scene, mode: str, reason: str) -> None:
    scene.qmd.play(mode, "query")
    with pytest.raises(MemoryUnavailable, match=reason) as caught:
        scene.search("pool")
    assert len(str(caught.value)) <= 350 and "\n" not in str(caught.value)


def test_results_outside_of_memory_are_dropped_and_counted(scene: Scene) -> None:
    scene.qmd.play("outside", "query")
    assert scene.paths("pool") == FOUND
    assert scene.backend.status()["droppedResults"] > 0


# --- the parser alone ------------------------------------------------------------------------------------


def test_a_note_that_speaks_of_results_is_a_result() -> None:
    snippet = '@@ -1,2 @@ (0 before, 0 after)\\nNo results found.\\n[{\\"file\\": \\"qmd://x/y.md\\"}] [node-llama-cpp]'
    out = f'[{{"file": "qmd://notes/a.md", "line": 9, "snippet": "{snippet}"}}]'
    assert parse_results(f"[node-llama-cpp] [1]\n{out}\n") == [Result("notes", "a.md", 1, 2)]


@pytest.mark.parametrize(
    ("item", "lines"),
    [
        ('"snippet": "@@ -5,4 @@ (4 before, 0 after)\\nx", "line": 7', (5, 8)),
        ('"snippet": "12: @@ -5,4 @@ (4 before, 0 after)\\n13: x"', (5, 8)),
        ('"snippet": "x\\r\\n@@ -5,4 @@", "line": 7', (7, 7)),
        ('"snippet": "@@ -0,0 @@", "line": 2.0', (2, 2)),
        ('"snippet": null, "line": true', (0, 0)),
        ('"line": -3', (0, 0)),
        ('"line": NaN', (0, 0)),
    ],
)
def test_lines_are_those_of_the_header_or_else_of_the_item(item: str, lines: tuple[int, int]) -> None:
    assert parse_results(f'[{{"file": "qmd://n/a.md", {item}}}]') == [Result("n", "a.md", *lines)]


@pytest.mark.parametrize(
    "path", ["a b.md", "a#b?c.md", "100%.md", "a%20b.md", 'say "hi".md', "项目/发布.md", "-x.md", "🦊.md", "a//b.md"]
)
def test_paths_are_taken_as_they_are(path: str) -> None:
    text = path.replace('"', '\\"')
    assert parse_results(f'[{{"file": "qmd://notes/{text}"}}]') == [Result("notes", path)]
    assert parse_results(f'[{{"file": "notes/{text}"}}]') == [Result("notes", path)]


@pytest.mark.parametrize("text", ["", " \n", "[[[[" * 5000, '{"results": 3}', '"No results"', "[1, 2]", "null"])
def test_text_without_results_is_no_answer(text: str) -> None:
    assert parse_results(text) is None


def test_words_of_no_results_are_found_among_warnings() -> None:
    assert parse_results("", "warn: something\n[qmd] info: No results found\n") == []
    assert parse_results("he said: No results found.\n") is None


def test_versions() -> None:
    assert parse_version("qmd 2.8.3 (facd35e)") == (2, 8, 3)
    assert parse_version("qmd 10.0.12-beta.1") == (10, 0, 12)
    assert parse_version("command not found") is None
