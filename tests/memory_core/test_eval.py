import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.cli.memory_eval import Answered, report_of
from lamella.errors import UsageError
from lamella.memory.judged import Lines, Question, read_judged
from lamella.memory.scoring import lines_of, percentile, score_question

A, B = Lines("memory/a.md", 3, 4), Lines("memory/b.md", 1, 1)
FILES = {"memory/a.md": ["x" * 99] * 60, "memory/b.md": ["y" * 99] * 60}


def question(*groups: tuple[Lines, ...]) -> Question:
    return Question("?", "t", groups)


def test_a_first_hit_is_all_that_one_group_wants() -> None:
    figures = score_question(question((B, A)), [Lines("memory/a.md", 4, 9)], FILES)
    assert set(figures.values()) == {1.0}


def test_ranks_count_for_each_group() -> None:
    other = Lines("memory/b.md", 40, 41)
    figures = score_question(question((A,), (B,)), [other, Lines("memory/a.md", 1, 3), other, B], FILES)
    assert (figures["recall@1"], figures["recall@5"], figures["hit@5"], figures["mrr"]) == (0.0, 1.0, 1.0, 0.5)
    assert figures["ndcg@10"] == pytest.approx((0.6309297 + 0.4306766) / (1 + 0.6309297))


def test_nothing_found_is_nothing() -> None:
    assert set(score_question(question((A,)), [], FILES).values()) == {0.0}
    assert set(score_question(question((A,)), [Lines("memory/a.md", 5, 60)] * 10, FILES).values()) == {0.0}


def test_lines_beyond_4000_characters_are_not_read_and_none_is_charged_twice() -> None:
    late = Lines("memory/b.md", 1, 40)
    assert score_question(question((A,)), [late, A], FILES)["r@4000c"] == 0.0
    assert score_question(question((A,)), [Lines("memory/b.md", 1, 37), A], FILES)["r@4000c"] == 1.0
    assert score_question(question((A,)), [Lines("memory/b.md", 1, 37)] * 5 + [A], FILES)["r@4000c"] == 1.0


@given(st.lists(st.tuples(st.sampled_from(sorted(FILES)), st.integers(1, 60), st.integers(0, 9)), max_size=14))
def test_figures_are_fractions(ranked: list[tuple[str, int, int]]) -> None:
    figures = score_question(question((A,), (B,)), [Lines(p, f, f + n) for p, f, n in ranked], FILES)
    assert all(0 <= value <= 1 for value in figures.values())
    assert figures["recall@1"] <= figures["recall@5"] <= figures["hit@5"]


def test_lines_and_percentiles() -> None:
    assert (lines_of("a\nb\n"), lines_of("a\nb"), lines_of("")) == (["a", "b"], ["a", "b"], [""])
    assert (percentile([3, 1, 2], 50), percentile([3, 1, 2], 95), percentile([7], 50)) == (2, 3, 7)


def test_a_report_has_means_over_all_and_by_type() -> None:
    figures = score_question(question((A,)), [A], FILES)
    none = dict.fromkeys(figures, 0.0)
    report = report_of([Answered("x", figures, 1.0), Answered("y", none, 3.0), Answered("x", none, 2.0)])
    assert list(report["by_type"]) == ["x", "y"]
    assert (report["overall"]["n"], report["overall"]["mrr"]) == (3, 0.333333)
    assert (report["by_type"]["x"]["mrr"], report["overall"]["p50_ms"]) == (0.5, 2.0)


NOTE = "memory/2023-05-08.md"
DOCUMENT: dict[str, Any] = {
    "workspaces": [
        {
            "id": "w",
            "now": "2023-05-09",
            "files": {NOTE: "# day\n- the okapi likes figs\n"},
            "queries": [
                {"id": "q", "query": "okapi", "type": "t", "gold": [[[NOTE, 2, 2]]]},
            ],
        }
    ]
}


def write(folder: Path, **changes: Any) -> Path:
    document = json.loads(json.dumps(DOCUMENT))
    document["workspaces"][0].update(changes)
    path = folder / "judged.json"
    path.write_text(json.dumps(document))
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    (workspace,) = read_judged(write(tmp_path))
    assert (workspace.id, workspace.now, list(workspace.files)) == ("w", "2023-05-09", ["memory/2023-05-08.md"])
    assert workspace.questions == (Question("okapi", "t", ((Lines("memory/2023-05-08.md", 2, 2),),)),)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"now": "soon"}, "workspaces[0].now: expected a day"),
        ({"now": 5}, "workspaces[0].now: expected a day"),
        ({"files": []}, "workspaces[0].files: expected an object"),
        ({"files": {"../x.md": ""}}, "'../x.md' is no path within"),
        ({"files": {"/x.md": ""}}, "'/x.md' is no path within"),
        ({"files": {"./x.md": ""}}, "'./x.md' is no path within"),
        ({"files": {"\ud800.md": ""}}, "is no path within"),
        ({"files": {"x" * 256: ""}}, "is no path within"),
        ({"files": {"a.md": "x", "a.md/b.md": "x"}}, "'a.md' is a file, and a folder"),
        ({"files": {"memory/a.md": 1}}, "expected a text, found 1"),
        ({"files": {"memory/a.md": "\ud800"}}, "expected a text of whole characters"),
        (
            {"queries": [{"query": " ", "type": "t", "gold": []}]},
            "queries[0].query: expected a text of whole characters, not empty, found",
        ),
        ({"queries": [{"query": "x", "type": "t", "gold": [[[NOTE, 0, 1]]]}]}, "from 1 to 2, found"),
        ({"queries": [{"query": "x", "type": "t", "gold": [[[NOTE, 2, 1]]]}]}, "from 1 to 2, found"),
        ({"queries": [{"query": "x", "type": "t", "gold": [[[NOTE, 1, 3]]]}]}, "from 1 to 2, found"),
        ({"queries": []}, "workspaces[0].queries: expected a list with something"),
        ({"queries": [{"query": "x", "gold": []}]}, "queries[0]: type is missing"),
        ({"queries": [{"query": "x", "type": "t", "gold": [[]]}]}, "gold[0]: expected a list with something"),
        ({"queries": [{"query": "x", "type": "t", "gold": [[["a.md", 1, 1]]]}]}, "a.md is none of the"),
        ({"queries": [{"query": "x", "type": "t", "gold": [[["a.md", "1"]]]}]}, "expected [path, first line"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_judged(write(tmp_path, **changes))
    assert said in str(caught.value)


def test_a_note_may_be_empty(tmp_path: Path) -> None:
    files = {**DOCUMENT["workspaces"][0]["files"], "memory/a.md": ""}
    (workspace,) = read_judged(write(tmp_path, files=files))
    assert workspace.files["memory/a.md"] == ""


def test_what_is_no_file_or_no_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_judged(tmp_path / "none.json")
    for text in ("{", "[" * 100_000):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(UsageError, match="is not JSON"):
            read_judged(tmp_path / "x.json")


def test_the_command_leaves_the_agents_memory_alone(tmp_path: Path) -> None:
    from cli import lamella

    home = tmp_path / "home"
    found = lamella("memory", "eval", write(tmp_path), "--json", home=home, check=True).json
    assert found["overall"]["recall@1"] == 1.0
    assert list(found["by_type"]) == ["t"]
    assert not (home / "agents").exists()
    wrong = lamella("memory", "eval", write(tmp_path, now="soon"), home=home)
    assert wrong.code == 2 and "now" in wrong.err
