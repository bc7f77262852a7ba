"""Scoring of the retrieval bench, on a workspace small enough to count by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from member_scripts import load_script

judged = load_script("bench/embedders/judged.py")


def test_recall_counts_groups_and_rank_counts_the_first(tmp_path: Path) -> None:
    queries = [
        {"query": "both", "gold": [[["a.md", 1, 1]], [["b.md", 1, 1], ["c.md", 1, 1]]]},
        {"query": "none", "gold": [[["a.md", 1, 1]]]},
    ]
    files = {name: f"text of {name}\n" for name in ("a.md", "b.md", "c.md")}
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"workspaces": [{"files": files, "queries": queries}]}), encoding="utf-8")
    (workspace,) = judged.workspaces(data)
    assert [p.path for p in workspace.passages] == ["a.md", "b.md", "c.md"]
    both, none = workspace.questions
    figures = judged.score([(both, [2, 1]), (none, [1, 2])])
    assert figures == judged.Figures(n=2, recall_at_5=0.25, mrr=0.5)


def test_ranks_below_five_and_ten(tmp_path: Path) -> None:
    question = judged.Question("q", (frozenset({7}),))
    assert judged.score([(question, [0, 1, 2, 3, 4, 7])]) == judged.Figures(1, 0.0, pytest.approx(1 / 6))
    assert judged.score([(question, [*range(20, 30), 7])]).mrr == 0.0
