"""Outputs of five releases of QMD, replayed through the parser and the mapper."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lamella.memory.scan import Scan, scan_memory
from lamella_qmd_backend.collections import Collection, Mapper
from lamella_qmd_backend.faults import Kind, Ran, failure_of
from lamella_qmd_backend.output import (
    parse_collection,
    parse_results,
    parse_status,
    parse_update,
    parse_version,
    results_of,
)
from lamella_qmd_backend.program import Version

DATA = Path(__file__).parents[1] / "data" / "qmd"
VERSIONS = ("1.1.6", "2.0.1", "2.1.0", "2.5.3", "2.8.3")
SEARCHES = ("search", "query", "vsearch")


@cache
def recorded(version: str) -> dict[str, dict[str, Any]]:
    return {case["name"]: case for case in json.loads((DATA / f"{version}.json").read_bytes())}


def ran(case: dict[str, Any]) -> Ran:
    timed_out = case["rc"] == "timeout"
    return Ran(-9 if timed_out else case["rc"], case["stdout"], case["stderr"], timed_out, seconds=15.0)


def json_searches(version: str) -> Iterator[dict[str, Any]]:
    for case in recorded(version).values():
        if case["argv"][:1] and case["argv"][0] in SEARCHES and "--json" in case["argv"]:
            yield case


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Scan:
    """The recorded workspace, with `notes/` as an extra path."""
    workspace = tmp_path_factory.mktemp("recorded") / "ws"
    shutil.copytree(DATA / "workspace", workspace)
    return scan_memory(workspace, ("notes",))


def mapper(scan: Scan, version: str) -> Mapper:
    folders = {"memory-root-main": ".", "memory-dir-main": "memory", "notes-main": "notes"}
    collections = [Collection(name, str((scan.workspace / path).resolve())) for name, path in folders.items()]
    number = parse_version(version)
    assert number is not None
    return Mapper(scan, collections, {}, slugs=Version(number).writes_slugs)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_search_that_succeeded_can_be_read(version: str) -> None:
    read = 0
    for case in json_searches(version):
        if case["rc"] == 0:
            results = parse_results(case["stdout"], case["stderr"])
            assert results is not None, case["name"]
            wanted = json.loads(case["stdout"]) if case["stdout"].startswith("[") else []
            assert len(results) == len({item["file"] for item in wanted}), case["name"]
            read += 1
    assert read > 30


@pytest.mark.parametrize("version", VERSIONS)
def test_every_search_that_failed_gives_a_reason(version: str) -> None:
    failed = 0
    for case in json_searches(version):
        if case["rc"] != 0 and not parse_results(case["stdout"], case["stderr"]):
            reason = str(failure_of(ran(case), f"qmd {case['argv'][0]}"))
            assert "\n" not in reason and "\x1b" not in reason and len(reason) < 400, case["name"]
            assert not reason.endswith(("without a word", ": ")), case["name"]
            failed += 1
    assert failed > 5


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("case", "path"),
    [
        ("search-upper-path", "notes/Deep Notes/UPPER_case-Name.v2.md"),
        ("search-path-with-space", "notes/Deep Notes/vector search primer.md"),
        ("search-crlf", "notes/crlf.md"),
        ("search-no-heading", "notes/no-heading.md"),
        ("search-big-needle", "notes/big.md"),
    ],
)
def test_a_result_is_the_file_on_the_disk(scan: Scan, version: str, case: str, path: str) -> None:
    one = recorded(version)[case]
    results = parse_results(one["stdout"], one["stderr"])
    assert results, one["stdout"]
    assert [found.name for found, _ in mapper(scan, version).map(results).files] == [path]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_recorded_result_leads_out_of_memory(scan: Scan, version: str) -> None:
    names = {found.name for found in scan.files}
    mapped_any = False
    for case in json_searches(version):
        results = parse_results(case["stdout"], case["stderr"]) or []
        mapped = mapper(scan, version).map(results)
        assert {found.name for found, _ in mapped.files} <= names
        foreign = [r for r in results if r.collection in ("outside-main", "sessions-main")]
        assert mapped.dropped >= len(foreign), case["name"]
        mapped_any |= bool(mapped.files)
    assert mapped_any


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_bytes_in_two_collections_are_two_files(scan: Scan, version: str) -> None:
    results = parse_results(recorded(version)["search-dup-content"]["stdout"])
    assert results is not None
    found = {f.name for f, _ in mapper(scan, version).map(results).files}
    assert {"memory/2026-03-02.md", "notes/duplicate-of-0302.md"} <= found


@pytest.mark.parametrize("version", VERSIONS)
def test_facts_are_read(version: str) -> None:
    cases = recorded(version)
    assert parse_version(cases["version"]["stdout"]) == tuple(map(int, version.split(".")))
    assert parse_update(cases["update"]["stdout"]).documents == 13
    facts = parse_status(cases["status"]["stdout"])
    assert (facts.documents, facts.vectors, facts.pending) == (13, 0, 12)
    assert parse_collection(cases["collection-show"]["stdout"]) == {"Path": "__ROOT__/ws/memory", "Pattern": "**/*.md"}


@pytest.mark.parametrize(
    ("version", "case", "kind"),
    [
        *((version, "search-missing-collection", Kind.COLLECTION) for version in VERSIONS),
        ("1.1.6", "query-lex-no-rerank", Kind.TIME),
        ("2.8.3", "query-lex-only", Kind.TIME),
    ],
)
def test_kinds_of_failures(version: str, case: str, kind: Kind) -> None:
    assert failure_of(ran(recorded(version)[case]), "qmd").kind is kind


def test_damage_and_locks_are_told_apart() -> None:
    kinds = {}
    for case in recorded("2.8.3").values():
        if case["rc"] == 1:
            kinds.setdefault(failure_of(ran(case), "qmd").kind, set()).add(case["name"])
    assert {Kind.CORRUPT, Kind.BUSY, Kind.SETTINGS, Kind.COLLECTION} <= kinds.keys(), kinds


def test_answers_of_the_server(scan: Scan) -> None:
    found: list[str] = []
    for exchange in json.loads((DATA / "mcp-2.8.3.json").read_bytes()):
        content = exchange["response"].get("result", {}).get("structuredContent", {})
        results = results_of(content.get("results", []))
        assert all(result.first_line <= result.last_line for result in results)
        found += [f.name for f, _ in mapper(scan, "2.8.3").map(results).files]
    assert {"MEMORY.md", "memory/项目/发布计划.md", "notes/Deep Notes/vector search primer.md"} <= set(found)


def test_lines_of_the_server_are_those_of_the_header() -> None:
    (exchange, *_) = json.loads((DATA / "mcp-2.8.3.json").read_bytes())
    item = exchange["response"]["result"]["structuredContent"]["results"][0]
    (result,) = results_of([item])
    assert item["snippet"].startswith(f"{item['line']}: @@ -{result.first_line},")
