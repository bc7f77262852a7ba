"""What QMD is asked, and which passages are taken from the files that it finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from qmd_programs import Scene

from lamella.errors import MemoryUnavailable
from lamella.memory.scan import FoundFile, scan_memory
from lamella_qmd_backend.asking import fused
from lamella_qmd_backend.config import Models
from lamella_qmd_backend.output import Result
from lamella_qmd_backend.passages import Candidate, Text, Texts, pick
from lamella_qmd_backend.questions import expandable, keyword_subs, meaning_sub, whole_sub


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("What is the staging server called?", ["lex: staging", "lex: server", "lex: called"]),
        (
            "我们决定采用灰度发布吗",
            ["lex: 决定", "lex: 定采", "lex: 采用", "lex: 用灰", "lex: 灰度", "lex: 度发", "lex: 发布"],
        ),
        ("DEC-0054", ['lex: "dec 0054"', "lex: dec", "lex: 0054"]),
        ("the of and", ["lex: the", "lex: of", "lex: and"]),
        ("水", ["lex: 水"]),
        ('lex: -foo "bar', ["lex: lex", "lex: foo", "lex: bar"]),
        ("?!", []),
    ],
)
def test_keywords_are_lines_of_their_own(text: str, lines: list[str]) -> None:
    asked = [sub.line for sub in keyword_subs(text)]
    assert [line for line in lines if line not in asked] == []


def test_other_questions_are_cleaned() -> None:
    assert whole_sub('say "hi\nthere').line == "lex: say hi there"
    assert whole_sub('say "hi there"').line == 'lex: say "hi there"'
    assert meaning_sub('roll-back -now "x"').line == "vec: roll back now x"
    assert expandable(" vec: LEX : expand:deploy\nwindow") == "deploy window"


def test_rankings_are_fused_by_rank() -> None:
    a, b, c = (Result("n", f"{name}.md") for name in "abc")
    assert fused([[a, b], [b, c]]) == [b, a, c]
    assert fused([]) == []


def candidate(folder: Path, name: str, text: str, rank: int | None, **lines: int) -> Candidate:
    path = folder / "memory" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    (found,) = [f for f in scan_memory(folder).files if f.name == f"memory/{name}"]
    return Candidate(found, Text.of(found.name, text), rank, **lines)


def picked(question: str, candidates: list[Candidate], **options: object) -> list[tuple[str, int, int]]:
    usual = {"by_meaning": False, "per_file": 3, "snippet_chars": 1200}
    hits = pick(question, candidates, **{**usual, **options})  # type: ignore[arg-type]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(0 < hit.score <= 1 for hit in hits)
    return [(hit.path, hit.start_line, hit.end_line) for hit in hits]


def test_the_passage_with_the_rarer_words_is_first(tmp_path: Path) -> None:
    text = "\n".join(
        f"Entry {n}: the server was restarted and the server log was read by the operator." for n in range(120)
    )
    lines = text.split("\n")
    lines[77] = "The staging server is called bluebird since the move to the new rack in the cellar."
    one = candidate(tmp_path, "a.md", "\n".join(lines) + "\n", 0)
    (first, *_) = picked("what is the staging server called?", [one])
    assert first[1] <= 78 <= first[2]


def test_passages_are_slices_of_the_file_and_joined_up_to_a_limit(tmp_path: Path) -> None:
    text = "\n".join(f"Line {n} tells of figs and of the okapi that eats them all day long." for n in range(60))
    one = candidate(tmp_path, "a.md", text, 0)
    for limit in (400, 1200, 5000):
        hits = pick("okapi figs", [one], by_meaning=False, per_file=9, snippet_chars=limit)
        assert all(hit.snippet in text for hit in hits)
        assert all(len(hit.snippet) <= max(limit, 600) for hit in hits)
        for hit in hits:
            assert hit.snippet.count("\n") == hit.end_line - hit.start_line
    assert len(hits) == 1


def test_many_passages_of_one_file_come_after_those_of_others(tmp_path: Path) -> None:
    filler = "\n".join("Nothing of note happened on that day, or on the day before." for _ in range(30))
    wordy = "\n".join(f"{filler}\nThe okapi ate figs, figs and figs." for _ in range(6))
    other = candidate(tmp_path, "b.md", "Some okapi.\n" + "other words " * 30, 1)
    found = picked("okapi figs", [candidate(tmp_path, "a.md", wordy, 0), other], per_file=2)
    assert [path for path, *_ in found][:3] == ["memory/a.md", "memory/a.md", "memory/b.md"]
    assert len(found) > 4


def test_qmds_order_decides_between_equals(tmp_path: Path) -> None:
    files = [
        candidate(tmp_path, f"{name}.md", f"the okapi eats figs, {name}\n", rank) for name, rank in (("a", 4), ("b", 0))
    ]
    assert [path for path, *_ in picked("okapi figs", files)] == ["memory/b.md", "memory/a.md"]


def test_other_words_are_found_by_meaning_only(tmp_path: Path) -> None:
    text = "\n".join(["filler " * 30] * 40 + ["A striped animal ate fruit."] + ["filler " * 30] * 40)
    one = candidate(tmp_path, "a.md", text, 0, first_line=40, last_line=43)
    assert picked("okapi figs", [one]) == []
    found = picked("okapi figs", [one], by_meaning=True)
    assert found and all(first <= 43 and last >= 40 for _, first, last in found)


def test_curated_facts_are_passages_of_their_own(tmp_path: Path) -> None:
    text = Text.of("MEMORY.md", "# Facts\n\n- one\n- two\n")
    assert [chunk.text for chunk in text.chunks] == ["# Facts", "- one", "- two"]


def test_texts_are_read_again_when_the_file_changes(tmp_path: Path) -> None:
    read: list[str] = []

    def read_file(found: FoundFile) -> Text | None:
        read.append(found.name)
        return Text.of(found.name, Path(found.path).read_text())

    texts = Texts(read_file)
    path = tmp_path / "MEMORY.md"
    path.write_text("one")
    for _ in range(2):
        assert texts.of(scan_memory(tmp_path).files[0]) is not None
    path.write_text("three")
    text = texts.of(scan_memory(tmp_path).files[0])
    assert text is not None and text.source == "three" and len(read) == 2


# --- modes ---------------------------------------------------------------------------------------------------


def test_search_asks_for_all_words(make: Callable[..., Scene]) -> None:
    scene = make(mode="search")
    scene.write("memory/a.md", "the okapi eats figs\n")
    assert scene.paths("okapi figs") == ["memory/a.md"]
    assert scene.paths("okapi leaves") == []
    assert scene.qmd.calls_of("search")[-1]["argv"][-2:] == ["--", "okapi leaves"]
    assert not scene.qmd.calls_of("query")
    assert scene.search("okapi").mode == "keyword"


def test_semantic_asks_for_meaning_and_words(make: Callable[..., Scene]) -> None:
    scene = make(mode="semantic", models=Models(embed="/e.gguf"), mcp=True)
    scene.write("memory/a.md", "the okapi eats figs\n")
    scene.qmd.play("exit1", "embed")
    found = scene.search("does the okapi eat?")
    assert found.mode == "keyword" and found.degraded and "no vectors yet" in found.degraded.reason
    scene.qmd.play("", "embed")
    scene.backend.sync(force=True)
    found = scene.search("does the okapi eat?")
    assert [hit.path for hit in found.hits] == ["memory/a.md"] and found.mode == "hybrid"
    query = scene.qmd.queries[-1]
    assert query["searches"][0] == {"type": "vec", "query": "does the okapi eat?"}
    assert {"type": "lex", "query": "okapi"} in query["searches"]


def test_query_leaves_the_question_to_qmd(make: Callable[..., Scene]) -> None:
    scene = make(mode="query", models=Models(embed="/e.gguf", generate="/g.gguf"), mcp=True)
    scene.write("memory/a.md", "the okapi eats figs\n")
    scene.backend.sync()
    scene.qmd.play("nothing_stdout", "query")
    assert scene.search("lex: does the okapi eat?").hits == ()
    argv = scene.qmd.calls_of("query")[-1]["argv"]
    assert argv[-2:] == ["--", "does the okapi eat?"] and "--no-rerank" in argv
    assert not scene.qmd.queries


@pytest.mark.parametrize(
    ("mode", "models", "key"),
    [
        ("semantic", Models(), "plugins.config.qmd-backend.models.embed"),
        ("query", Models(embed="/e.gguf"), "plugins.config.qmd-backend.models.generate"),
    ],
)
def test_a_mode_without_its_model_is_told(make: Callable[..., Scene], mode: str, models: Models, key: str) -> None:
    scene = make(mode=mode, models=models)
    with pytest.raises(MemoryUnavailable, match=key):
        scene.search("okapi")
    with pytest.raises(MemoryUnavailable, match=key):
        scene.backend.probe()
    assert key in scene.backend.status()["problem"]


def test_semantic_needs_a_version_that_has_it(make: Callable[..., Scene]) -> None:
    scene = make(mode="semantic", models=Models(embed="/e.gguf"))
    scene.qmd.be("2.0.1")
    with pytest.raises(MemoryUnavailable, match=r"needs QMD 2\.1 or newer, found 2\.0\.1"):
        scene.search("okapi")


def test_hits_tell_what_led_to_them(scene: Scene) -> None:
    (hit,) = scene.search("connection pool", explain=True).hits
    assert hit.parts and hit.parts["qmd_rank"] == 1.0 and (hit.parts["words"] or 0) > 0
    assert scene.search("connection pool").hits[0].parts is None
