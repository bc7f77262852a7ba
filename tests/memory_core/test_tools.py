"""The memory tools: names of fields, parts of long files, refusals and failures, as OpenClaw's tools give them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_tools import call, payload, tools
from notes import DATA, copy_case, make_workspace, open_memory

from lamella.errors import ConfigError, MemoryUnavailable, ToolError
from lamella.memory.journal import read_journal
from lamella.types.memory import Degraded, MemoryHit, MemoryResults, MemoryText, Provenance, SearchQuery
from lamella_memory_core import Config, answers
from lamella_memory_core.service import Memory


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(
        tmp_path, {"MEMORY.md": "# Facts\n\n- the okapi likes figs\n", "memory/five.md": "l1\nl2\nl3\nl4\nl5\n"}
    )


@pytest.fixture
def memory(workspace: Path) -> Memory:
    return open_memory(workspace)


def test_only_append_writes(memory: Memory) -> None:
    assert {name: t.writes for name, t in tools(memory).items()} == {
        "memory_search": False,
        "memory_get": False,
        "memory_append": True,
    }
    for tool in tools(memory).values():
        jsonschema.Draft202012Validator.check_schema(tool.parameters)


# --- memory_search -----------------------------------------------------------------------------------------


def test_a_search_gives_places_scores_and_who_answered(memory: Memory) -> None:
    found = payload(tools(memory)["memory_search"], query="what does the okapi like?", maxResults="1", minScore="0.1")
    (hit,) = found.pop("results")
    assert found == {"provider": "none", "citations": "auto", "mode": "fts-only", "backend": "sqlite"}
    assert {k: v for k, v in hit.items() if k != "score"} == {
        "path": "MEMORY.md",
        "startLine": 3,
        "endLine": 3,
        "snippet": "- the okapi likes figs\n\nSource: MEMORY.md#L3",
        "source": "memory",
        "citation": "MEMORY.md#L3",
    }
    assert 0 < hit["score"] <= 1


def test_a_search_that_finds_nothing_is_no_error(memory: Memory) -> None:
    assert payload(tools(memory)["memory_search"], query="spaceship")["results"] == []
    assert payload(tools(memory)["memory_search"], query="okapi", minScore=1)["results"] == []


@pytest.mark.parametrize(
    ("citations", "chat_type", "cited"),
    [("auto", "direct", True), ("auto", "group", False), ("auto", "channel", False), ("auto", "unknown", True),
     ("on", "group", True), ("off", "direct", False)],
)  # fmt: skip
def test_where_results_name_their_source(memory: Memory, citations: str, chat_type: Any, cited: bool) -> None:
    config = Config(citations=citations, curated_in_groups=True)
    found = payload(tools(memory, config)["memory_search"], chat_type, query="okapi")
    assert found["citations"] == citations
    assert ("citation" in found["results"][0], "Source: " in found["results"][0]["snippet"]) == (cited, cited)


def test_a_search_that_cannot_be_made_is_an_answer(tmp_path: Path) -> None:
    found = payload(tools(open_memory(tmp_path / "none"))["memory_search"], query="x")
    assert (found["results"], found["disabled"], found["unavailable"]) == ([], True, True)
    assert "does not exist" in found["error"]
    assert found["warning"] and found["action"]


def test_a_used_up_quota_is_said() -> None:
    said = answers.unavailable(MemoryUnavailable("openai embeddings failed: 429 insufficient_quota"))
    assert "quota" in said["warning"] and "quota" in said["action"]


def test_a_weaker_answer_differs_from_a_healthy_one() -> None:
    degraded = MemoryResults((), "sqlite", Degraded("no vectors", "sqlite"), mode="keyword", embedder="static")
    found = answers.found(degraded, "auto", cited=True)
    assert (found["mode"], found["provider"]) == ("fts-only", "static")
    assert "no vectors" in found["warning"] and found["degraded"]["answered_by"] == "sqlite"
    healthy = MemoryResults((MemoryHit("a.md", 1, 2, 0.5, "x"),), "sqlite", mode="hybrid", embedder="e", model="e/1")
    assert "warning" not in answers.found(healthy, "off", cited=False)
    assert answers.found(healthy, "off", cited=False)["model"] == "e/1"


@pytest.mark.parametrize(
    "arguments",
    [{}, {"query": ""}, {"query": " "}, {"query": "x", "maxResults": 0}, {"query": "x", "corpus": "wiki"},
     {"query": "x", "minScore": 2}],
)  # fmt: skip
def test_wrong_arguments_of_a_search_are_named(memory: Memory, arguments: dict[str, object]) -> None:
    with pytest.raises(ToolError):
        call(tools(memory)["memory_search"], **arguments)


def test_a_wrong_setting_of_citations_is_named() -> None:
    with pytest.raises((ConfigError, ValueError), match="auto"):
        Config(citations="always")


# --- memory_get --------------------------------------------------------------------------------------------


def test_a_long_file_comes_in_parts(memory: Memory) -> None:
    get = tools(memory, Config(read_lines=2))["memory_get"]
    assert payload(get, path="memory/five.md") == {
        "status": "ok",
        "text": "l1\nl2\n\n[More content available. Use from=3 to continue.]",
        "path": "memory/five.md",
        "from": 1,
        "lines": 2,
        "truncated": True,
        "nextFrom": 3,
    }
    last = {"status": "ok", "text": "l5", "path": "memory/five.md", "from": 5, "lines": 1}
    assert payload(get, path="memory/five.md", **{"from": 5}) == last
    assert payload(get, path="memory/five.md", lines=9)["lines"] == 5


def test_parts_are_bounded_in_characters(workspace: Path, memory: Memory) -> None:
    (workspace / "memory/long.md").write_text("short\n" + "x" * 1000 + "\nend\n")
    get = tools(memory, Config(read_chars=200))["memory_get"]
    first = payload(get, path="memory/long.md")
    assert (first["lines"], first["nextFrom"]) == (1, 2)
    second = payload(get, path="memory/long.md", **{"from": 2})
    assert second["text"].startswith("x" * 200 + "\n\n[Line 2 is longer")
    assert (second["lines"], second["nextFrom"], second["truncated"]) == (1, 3, True)


lines_of_text = st.lists(st.text(st.characters(exclude_characters="\n\r["), max_size=20), min_size=1, max_size=12)


@given(lines_of_text, st.integers(1, 6), st.integers(5, 60))
def test_parts_put_together_are_the_file(lines: list[str], count: int, chars: int) -> None:
    seen: list[str] = []
    first: int | None = 1
    while first is not None:
        wanted = lines[first - 1 : first - 1 + count]
        found = MemoryText("ok", "memory/a.md", "\n".join(wanted), first, first + len(wanted) - 1, len(lines))
        part = answers.read(found, first, chars)
        assert part["from"] == first
        seen += part["text"].split("\n\n[")[0].split("\n")
        assert len(seen) == first + part["lines"] - 1
        first = part.get("nextFrom")
    assert len(seen) == len(lines)
    if max(map(len, lines)) <= chars:
        assert seen == lines


@pytest.mark.parametrize(
    "case", json.loads((DATA / "K94" / "calls.json").read_text()), ids=lambda c: json.dumps(c)[:60]
)
def test_missing_empty_and_refused_can_be_told_apart(case: dict[str, Any]) -> None:
    get = tools(open_memory(DATA / "K94" / "ws"))["memory_get"]
    arguments = {"path": case["path"], **{k: case[f] for k, f in (("from", "frm"), ("lines", "lines")) if f in case}}
    expected = case["status"]
    if "argument error" in expected:
        with pytest.raises(ToolError):
            call(get, **arguments)
        return
    found = payload(get, **arguments)
    assert found["status"] == {"refused": "error"}.get(expected, expected)
    if "text" in case:
        assert found["text"].split("\n\n[More")[0] == case["text"].removesuffix("\n")


# Read otherwise than by OpenClaw 2026.9.6, and why.
OTHERWISE = {
    "memory.md": "means MEMORY.md, where that is the one that exists",
    "memory\\network.md": "a backslash is part of no name",
    "memory/crlf.md": "lines are shown without their ends",
    "memory/bom.md": "the byte-order mark is no part of the text",
}
RECORDED = json.loads((DATA / "golden" / "reads.json").read_text("utf-8"))["reads"]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    workspace = copy_case("golden", folder)
    for name in ("extra", "outside"):
        shutil.copytree(DATA / "golden" / name, folder / name)
    (workspace / "memory/link.md").symlink_to("../../outside/secret.md")
    (workspace / "memory/linkdir").symlink_to("../../outside", target_is_directory=True)
    return workspace


@pytest.mark.parametrize("case", RECORDED, ids=lambda c: json.dumps(c["request"])[:60])
def test_reads_are_those_of_openclaw(golden: Path, case: dict[str, Any]) -> None:
    config = Config(extra_paths=("../extra",))
    request = dict(case["request"])
    path = request.pop("relPath").replace("{WS}", str(golden)).replace("{EXTRA}", str(golden.parent / "extra"))
    get = tools(open_memory(golden, config), config)["memory_get"]
    if not path.strip() or any(n != int(n) or n < 1 for n in request.values()):
        with pytest.raises(ToolError):  # as OpenClaw's tool does; what is recorded is the layer below
            call(get, path=path, **request)
        return
    found = payload(get, path=path, **request)
    if path in OTHERWISE:
        assert found != case.get("result")
    elif "error" in case:
        assert (found["status"], found["code"], found["text"]) == ("error", answers.NOT_ALLOWED, "")
        assert "platypus" not in json.dumps(found)
    else:
        assert same_text(found.pop("text"), case["result"].pop("text"), case["result"].pop("textChars"))
        assert found == case["result"]


def same_text(text: str, recorded: str, length: int) -> bool:
    """Long texts are recorded by their ends and their length; a name in one of them has a letter more today."""
    head, cut, tail = recorded.partition(" ... ")
    if not cut:
        return text == recorded
    return text.startswith(head) and text.endswith(tail) and len(text.encode("utf-16-le")) // 2 - length in (0, 1)


# --- memory_append -----------------------------------------------------------------------------------------


def test_append_tells_where_and_records_who(workspace: Path, memory: Memory) -> None:
    result = call(tools(memory)["memory_append"], text="- the zebra left", path="MEMORY.md")
    assert result.content == "Saved to MEMORY.md#L4."
    assert (workspace / "MEMORY.md").read_text().endswith("- the zebra left\n")
    (entry,) = read_journal(workspace.parent / "state").entries
    assert entry.provenance == Provenance("memory_append", "agent:main:main", "s1", "e1", "cron")


@pytest.mark.parametrize("arguments", [{"text": "x", "path": "AGENTS.md"}, {"text": " \n "}, {}])
def test_what_cannot_be_appended_is_said(memory: Memory, arguments: dict[str, object]) -> None:
    with pytest.raises(ToolError):
        call(tools(memory)["memory_append"], **arguments)


# --- privacy -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chat_type", ["group", "channel"])
def test_chats_that_others_read_do_not_see_lasting_facts(workspace: Path, memory: Memory, chat_type: Any) -> None:
    (workspace / "memory/okapi.md").write_text("the okapi sleeps\n")
    offered = tools(memory)
    assert {h["path"] for h in payload(offered["memory_search"], query="okapi")["results"]} == {
        "MEMORY.md",
        "memory/okapi.md",
    }
    found = payload(offered["memory_search"], chat_type, query="okapi")
    assert [h["path"] for h in found["results"]] == ["memory/okapi.md"]
    for path in ("MEMORY.md", "memory.md", "./MEMORY.md", str(workspace / "MEMORY.md")):
        refused = payload(offered["memory_get"], chat_type, path=path)
        assert (refused["status"], refused["code"]) == ("error", answers.NOT_ALLOWED)
        assert "figs" not in json.dumps(refused)
    assert payload(offered["memory_get"], chat_type, path="memory/okapi.md")["status"] == "ok"


def test_lasting_facts_are_shown_to_groups_when_configured(memory: Memory) -> None:
    offered = tools(memory, Config(curated_in_groups=True))
    assert payload(offered["memory_search"], "group", query="okapi")["results"]
    assert payload(offered["memory_get"], "group", path="MEMORY.md")["status"] == "ok"


def test_a_query_excludes_files(memory: Memory) -> None:
    assert memory.search(SearchQuery("okapi", exclude=("MEMORY.md",))).hits == ()
