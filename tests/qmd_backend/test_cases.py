"""Noise around the JSON on stdout: stored outputs of a search, each with the codes that the program ended with."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lamella.runtime import Runtime
from lamella.types.memory import MemoryResults, SearchQuery
from lamella_qmd_backend.output import Result, parse_results

CASE = Path(__file__).parents[1] / "data" / "cases" / "K110"
CODES: dict[str, list[int]] = json.loads((CASE / "exit_codes.json").read_text())
RUNS = [(name, code) for name, codes in CODES.items() for code in codes]
NOTE = "# 2026-05-10\n\n- pump replaced\n- filter cleaned\n"

# The user's own index, since the outputs name a collection of theirs.
PROGRAM = """#!/bin/sh
case "$*" in
*--version) echo "qmd 2.8.3" ;;
*collection*) printf 'Collection: memory-dir\\n  Path:     {workspace}/memory\\n  Pattern:  **/*.md\\n' ;;
*query*) cat '{output}'; exit {code} ;;
esac
"""


@pytest.fixture
def search(tmp_path: Path) -> Callable[[str, int], MemoryResults]:
    workspace, program = tmp_path / "ws", tmp_path / "qmd"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "memory" / "2026-05-10.md").write_text(NOTE)
    settings = {
        "memory.backend": "qmd",
        "plugins.config.memory-core.embedder": "none",
        "plugins.config.qmd-backend.command": str(program),
        "plugins.config.qmd-backend.collections": ["memory-dir"],
        "plugins.config.qmd-backend.mcp": False,
    }

    def answer(output: str, code: int) -> MemoryResults:
        program.write_text(PROGRAM.format(workspace=workspace, output=CASE / "out" / output, code=code))
        program.chmod(0o755)
        environ = {"LAMELLA_HOME": str(tmp_path / "home")}
        with closing(Runtime.open(workspace=workspace, settings=settings, environ=environ)) as runtime:
            return runtime.require_memory().search(SearchQuery("was the pump replaced?"))

    return answer


@pytest.mark.parametrize(("output", "code"), RUNS)
def test_noise_hides_no_result_and_what_is_no_answer_is_answered_by_sqlite(
    search: Callable[[str, int], MemoryResults], output: str, code: int
) -> None:
    found = search(output, code)
    if output in ("empty_array.txt", "none.txt"):
        assert (found.backend, found.hits, found.degraded) == ("qmd", (), None)
        return
    fails = output in ("truncated.txt", "garbage.txt", "empty.txt")
    assert found.backend == ("sqlite" if fails else "qmd") and (found.degraded is not None) == fails
    assert [(hit.path, hit.start_line) for hit in found.hits] == [("memory/2026-05-10.md", 1)]
    assert "- pump replaced" in found.hits[0].snippet and "@@" not in found.hits[0].snippet


@pytest.mark.parametrize("output", ["clean.txt", "warn_before.txt", "after.txt", "ansi.txt", "crlf.txt"])
def test_the_lines_are_read_from_each_output(output: str) -> None:
    assert parse_results((CASE / "out" / output).read_text()) == [Result("memory-dir", "2026-05-10.md", 3, 4)]
