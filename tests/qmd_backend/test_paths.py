"""Names of files and questions of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from qmd_programs import ODD_NAMES, Scene, wait_for

from lamella.errors import UsageError
from lamella.memory.scan import scan_memory
from lamella_qmd_backend.collections import Collection, Mapper
from lamella_qmd_backend.output import Result

NAMES = [*ODD_NAMES, "a=b", "ü", "{y}"]


@pytest.mark.parametrize("mcp", [False, True])
def test_names_come_back_as_they_are(make: Callable[..., Scene], mcp: bool) -> None:
    scene = make(mcp=mcp)
    for number, name in enumerate(NAMES):
        scene.write(f"memory/{name}.md", f"the okapi number{number}x eats figs\n")
    found = scene.search("okapi", max_results=100)
    assert found.in_step
    names = {hit.snippet.strip(): hit.path for hit in found.hits}
    assert names == {f"the okapi number{number}x eats figs": f"memory/{name}.md" for number, name in enumerate(NAMES)}


@pytest.mark.parametrize("version", ["2.5.3", "2.1.0", "2.0.1"])
def test_slugs_of_old_versions_lead_to_the_one_file_that_fits(make: Callable[..., Scene], version: str) -> None:
    scene = make()
    scene.qmd.be(version)
    scene.write("MEMORY.md", "the curated okapi\n")
    scene.write("memory/Deep Notes/UPPER_case-Name.v2.md", "the okapi eats figs\n")
    scene.write("memory/two words.md", "a tapir\n")
    scene.write("memory/two_words.md", "another tapir\n")
    assert scene.search("okapi").in_step
    assert sorted(scene.paths("okapi")) == ["MEMORY.md", "memory/Deep Notes/UPPER_case-Name.v2.md"]
    assert scene.paths("tapir") == [], "two files have this slug"
    assert scene.backend.status()["droppedResults"] > 0


def test_slugs_are_not_guessed_where_paths_are_literal(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "A b.md").write_text("x")
    scan = scan_memory(tmp_path)
    collection = Collection("d", str(scan.workspace / "memory"))
    result = Result("d", "a-b.md")
    assert Mapper(scan, [collection], {}, slugs=False).find(result) is None
    found = Mapper(scan, [collection], {}, slugs=True).find(result)
    assert found is not None and found.name == "memory/A b.md"


def test_links_made_after_the_indexing_are_not_followed(scene: Scene, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("the connection pool of a stranger\n")
    note = scene.workspace / "memory" / "2026-03-02.md"
    note.unlink()
    note.symlink_to(secret)
    assert scene.paths("connection pool") == []
    note.unlink()
    note.hardlink_to(secret)
    assert scene.paths("connection pool") == []


def test_a_file_that_goes_between_search_and_reading_is_left_out(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.write("memory/b.md", "another connection pool\n")
    scene.backend.sync()
    backend = scene.another()
    ask = backend._asker.ask

    def ask_and_remove(question: object) -> object:
        results = ask(question)  # type: ignore[arg-type]
        (scene.workspace / "memory/2026-03-02.md").unlink()
        return results

    monkeypatch.setattr(backend._asker, "ask", ask_and_remove)
    scene.backends.insert(0, backend)
    assert scene.paths("connection pool") == ["memory/b.md"]


QUESTIONS = {
    "an option": "--index=evil pool",
    "short options": "-rf -h pool",
    "help": "--help pool",
    "a prefix": "lex: pool",
    "two prefixes": "vec: hyde: pool",
    "lines": "pool\nvec: pool\r\nexpand: x",
    "NUL": "pool\x00pool",
    "quotes": '"pool "',
    "operators": "pool OR NEAR( AND )",
    "minus": "pool -connection",
    "long": "pool " * 100_000,
    "half a character": "pool \ud800",
}


@pytest.mark.parametrize("mcp", [False, True])
def test_no_question_is_taken_for_an_option(scene: Scene, mcp: bool) -> None:
    scene.backends.insert(0, scene.another(mcp=mcp))
    for kind, question in QUESTIONS.items():
        assert scene.paths(question) == ["memory/2026-03-02.md"], kind
        if mcp:
            lines = [search["query"] for search in scene.qmd.queries[-1]["searches"]]
        else:
            *_, dashes, document = scene.qmd.calls[-1]["argv"]
            assert dashes == "--" and all(line.startswith("lex: ") for line in document.split("\n")), kind
            lines = [line.removeprefix("lex: ") for line in document.split("\n")]
        assert "pool" in lines and not [line for line in lines if line.startswith("-") or ":" in line], kind


@pytest.mark.parametrize("question", ["", "  \n ", "\x00", "\u2028"])
def test_a_blank_question_starts_no_program(scene: Scene, question: str) -> None:
    before = len(scene.qmd.calls)
    assert scene.search(question).hits == ()
    assert len(scene.qmd.calls) == before


@pytest.mark.parametrize("question", ["!?...", "---", "«»"])
def test_signs_alone_ask_for_nothing(scene: Scene, question: str) -> None:
    before = len(scene.qmd.calls)
    assert scene.search(question).hits == ()
    assert len(scene.qmd.calls) == before


def test_a_workspace_of_any_name_works_and_can_be_moved(make: Callable[..., Scene], tmp_path: Path) -> None:
    scene = make()
    odd = tmp_path / "a b: 项目 (1)"
    (odd / "memory").mkdir(parents=True)
    (odd / "memory" / "a.md").write_text("the okapi eats figs\n")
    scene.context = evolve(scene.context, workspace=odd)
    assert scene.paths("okapi") == ["memory/a.md"]
    moved = odd.rename(tmp_path / "moved")
    with pytest.raises(UsageError, match="does not exist"):
        scene.search("okapi")
    scene.context = evolve(scene.context, workspace=moved)
    scene.backends.insert(0, scene.another())
    assert scene.paths("okapi") == ["memory/a.md"]
    settings = scene.state / "qmd" / "config" / "index.yml"
    wait_for(lambda: f'"{moved.resolve()}"' in settings.read_text("utf-8"))
    wait_for(lambda: scene.search("okapi").in_step)


def test_a_workspace_reached_through_a_link_works(make: Callable[..., Scene], tmp_path: Path) -> None:
    scene = make()
    scene.write("memory/a.md", "the okapi eats figs\n")
    (tmp_path / "link").symlink_to(scene.workspace)
    scene.context = evolve(scene.context, workspace=tmp_path / "link")
    assert scene.paths("okapi") == ["memory/a.md"]
