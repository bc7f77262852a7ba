"""What holds for every answer of a backend. A failure names the field and what the protocol wants of it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from lamella.types.memory import Degraded, FileProblem, MemoryHit, MemoryResults, SearchQuery, SyncReport


def check_results(results: Any, query: SearchQuery, name: str) -> None:
    """The form of an answer, and that it keeps to its query."""
    assert isinstance(results, MemoryResults), f"search returned {type(results).__name__}, expected MemoryResults"
    assert results.backend == name, f"results.backend is {results.backend!r}; it must be the backend's name, {name!r}"
    _check_degraded(results.degraded)
    assert isinstance(results.hits, tuple), f"results.hits is a {type(results.hits).__name__}, expected a tuple"
    for hit in results.hits:
        _check_hit(hit, query)
    scores = [hit.score for hit in results.hits]
    assert scores == sorted(scores, reverse=True), f"hits must come best first; their scores are {scores}"
    assert len(results.hits) <= query.max_results, f"{len(results.hits)} hits, max_results is {query.max_results}"
    citations = [hit.citation for hit in results.hits]
    assert len(set(citations)) == len(citations), f"a passage was found twice: {citations}"
    json.dumps(results.to_json())


def _check_degraded(degraded: Any) -> None:
    if degraded is not None:
        assert isinstance(degraded, Degraded), (
            f"results.degraded is {type(degraded).__name__}, expected Degraded or None"
        )
        assert degraded.reason and degraded.answered_by, "a degraded answer must say why it is, and who answered"


def _check_hit(hit: Any, query: SearchQuery) -> None:
    assert isinstance(hit, MemoryHit), f"a hit is {type(hit).__name__}, expected MemoryHit"
    place = hit.citation
    assert hit.path and not Path(hit.path).is_absolute(), f"{hit.path!r}: a path must be relative to the workspace"
    assert "\\" not in hit.path, f"{hit.path!r}: a path is written with /"
    assert 1 <= hit.start_line <= hit.end_line, f"{place}: lines count from 1, and the last is not before the first"
    score = hit.score
    assert isinstance(score, float | int) and math.isfinite(score), (
        f"{place}: the score is {score!r}, expected a number"
    )
    assert 0 <= score <= 1, f"{place}: the score is {score}, expected 0 to 1"
    assert score >= query.min_score, f"{place}: the score {score} is below min_score, {query.min_score}"
    assert isinstance(hit.snippet, str) and hit.snippet.strip(), f"{place}: the snippet is empty"
    assert not query.sources or hit.source in query.sources, f"{place}: source {hit.source!r} is not in {query.sources}"
    assert hit.path not in query.exclude, f"{place}: the query excludes this file, whose reader may not see it"
    assert query.explain or hit.parts is None, f"{place}: parts are only told when the query asks to explain"


def check_report(report: Any, workspace: Path) -> None:
    """The form of a sync's report."""
    assert isinstance(report, SyncReport), f"sync returned {type(report).__name__}, expected SyncReport"
    assert Path(report.workspace) == workspace, f"report.workspace is {report.workspace!r}, expected {str(workspace)!r}"
    for field in ("seen", "added", "updated", "unchanged", "removed", "chunks", "embedded"):
        value = getattr(report, field)
        assert isinstance(value, int) and value >= 0, f"report.{field} is {value!r}, expected a whole number from 0"
    for field in ("failed", "skipped"):
        for problem in getattr(report, field):
            assert isinstance(problem, FileProblem), f"report.{field} holds {type(problem).__name__}"
            assert problem.path and problem.reason, f"report.{field}: a problem must name its file and say why"
    known = report.added + report.updated + report.unchanged + len(report.failed)
    assert known == report.seen, (
        f"every file that was seen is added, updated, unchanged or failed: seen {report.seen}, these are {known}: "
        f"{report}"
    )
    json.dumps(report.to_json())


def check_status(status: Any, name: str) -> None:
    """The form of `status()`."""
    assert isinstance(status, dict), f"status returned {type(status).__name__}, expected a dict"
    assert status.get("backend") == name, f"status must have backend: {name!r}; it is {status.get('backend')!r}"
    try:
        text = json.dumps(status, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"status must hold JSON values only: {error}") from None
    assert json.loads(text) == status, "status must hold JSON values only: lists for tuples, and keys that are strings"
