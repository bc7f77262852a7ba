"""Sources beside the workspace's notes: extra paths, and transcripts that go on being written meanwhile."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memory_tools import payload, tools
from notes import make_workspace, open_memory

from lamella.types.memory import BackendContext, SearchQuery
from lamella_memory_core import Config
from lamella_memory_core.backend import open_sqlite
from lamella_memory_core.service import Memory

ON = Config(session_memory=True)
OLD = time.time() - 3600


def transcript(folder: Path, name: str, *said: str, modified: float | None = OLD) -> Path:
    """A transcript in which user and agent speak in turn, with a tool result before each message."""
    path = folder / "sessions" / name
    path.parent.mkdir(exist_ok=True)
    lines: list[dict[str, Any]] = [{"type": "session", "version": 3, "id": path.stem, "cwd": "/w"}]
    for number, text in enumerate(said):
        lines.append({"type": "message", "id": f"r{number}", "message": {"role": "toolResult", "content": "noise"}})
        role = "assistant" if number % 2 else "user"
        lines.append({"type": "message", "id": f"m{number}", "message": {"role": role, "content": text}})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if modified is not None:
        os.utime(path, (modified, modified))
    return path


def say(path: Path, *texts: str) -> None:
    """Somebody goes on speaking, now."""
    with path.open("a") as file:
        for text in texts:
            file.write(json.dumps({"type": "message", "id": "n", "message": {"role": "user", "content": text}}) + "\n")


def found(memory: Memory, words: str, **query: Any) -> list[str]:
    return [hit.citation for hit in memory.search(SearchQuery(words, **query)).hits]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path, {"MEMORY.md": "# Facts\n\n- the okapi likes figs\n"})


Opener = Callable[..., Memory]


@pytest.fixture
def opened(workspace: Path) -> Iterator[Opener]:
    """Opens memories over the workspace, and closes them in the end."""
    memories: list[Memory] = []

    def open_one(config: Config | None = None) -> Memory:
        memories.append(open_memory(workspace, config))
        return memories[-1]

    yield open_one
    for memory in memories:
        memory.close()


# --- transcripts -------------------------------------------------------------------------------------------


def test_transcripts_are_searched_only_when_that_is_switched_on(opened: Opener, tmp_path: Path) -> None:
    transcript(tmp_path, "a.jsonl", "the zebra left", "It did.")
    assert found(opened(), "zebra") == []
    assert found(opened(ON), "zebra") == ["sessions/a.jsonl#L3-L5"]
    assert found(opened(), "zebra") == []


def test_a_hit_names_lines_of_the_transcript(opened: Opener, tmp_path: Path) -> None:
    path = transcript(
        tmp_path, "a.jsonl", *(f"we spoke of number {i} at some length, and of other things" for i in range(80))
    )
    memory = opened(ON)
    for number in (0, 41, 79):
        (hit,) = memory.search(SearchQuery(f"number {number}", max_results=1)).hits
        lines = path.read_text().splitlines()[hit.start_line - 1 : hit.end_line]
        assert hit.source == "sessions"
        assert f"number {number} " in hit.snippet
        said = [json.loads(line)["message"]["content"] for line in lines]
        assert [s for s in said if s != "noise"] == [s.partition(": ")[2] for s in hit.snippet.splitlines()]


def test_only_the_sources_asked_for_answer(opened: Opener, tmp_path: Path) -> None:
    transcript(tmp_path, "a.jsonl", "does the okapi like figs?")
    memory = opened(ON)
    assert {c.split("#")[0] for c in found(memory, "okapi figs")} == {"MEMORY.md", "sessions/a.jsonl"}
    assert found(memory, "okapi figs", sources=("sessions",)) == ["sessions/a.jsonl#L3"]


def test_archives_count_and_copies_do_not(opened: Opener, tmp_path: Path) -> None:
    transcript(tmp_path, "a.jsonl.reset.2026-05-10T08-00-00.000Z", "the zebra left")
    transcript(tmp_path, "b.jsonl.bak.2026-05-10T08-00-00.000Z", "the zebra left")
    assert found(opened(ON), "zebra") == ["sessions/a.jsonl.reset.2026-05-10T08-00-00.000Z#L3"]


def test_a_transcript_that_is_gone_is_not_found(opened: Opener, tmp_path: Path) -> None:
    path = transcript(tmp_path, "a.jsonl", "the zebra left")
    memory = opened(ON)
    assert found(memory, "zebra")
    path.rename(path.with_name("a.jsonl.deleted.2026"))
    assert found(memory, "zebra") == ["sessions/a.jsonl.deleted.2026#L3"]
    path.with_name("a.jsonl.deleted.2026").unlink()
    assert found(memory, "zebra") == []


def test_links_are_left_out_and_said(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.jsonl").write_text(transcript(tmp_path, "a.jsonl", "the zebra left").read_text())
    (tmp_path / "sessions/b.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    report = opened(ON).sync()
    assert (report.seen, [p.path for p in report.skipped]) == (2, ["sessions/b.jsonl"])


def test_secrets_reach_neither_the_index_nor_results(opened: Opener, tmp_path: Path) -> None:
    transcript(tmp_path, "a.jsonl", "the zebra has the key sk-abcdefgh12345678abcdefgh and password: hunter2")
    memory = opened(ON)
    (hit,) = memory.search(SearchQuery("zebra key")).hits
    assert hit.snippet == "User: the zebra has the key sk-*** and password: ***"
    memory.close()
    stored = b"".join(p.read_bytes() for p in (tmp_path / "state").rglob("*") if p.is_file())
    assert b"hunter2" not in stored and b"12345678" not in stored


def test_a_transcript_in_use_is_read_again_after_so_much(opened: Opener, tmp_path: Path) -> None:
    config = Config(session_memory=True, session_delta_messages=3, session_delta_bytes=100_000)
    memory = opened(config)
    path = transcript(tmp_path, "a.jsonl", "hello")
    assert found(memory, "hello")
    say(path, "the zebra left", "and came back")
    assert found(memory, "zebra") == []
    say(path, "and left")
    assert found(memory, "zebra") == ["sessions/a.jsonl#L3-L6"]
    say(path, "x" * 100_000 + " okapi calf")
    assert found(memory, "calf")


@pytest.mark.parametrize("modified", [OLD, time.time() + 86_400], ids=["long ago", "to come"])
def test_a_transcript_that_rests_is_read_however_little_is_new(opened: Opener, tmp_path: Path, modified: float) -> None:
    """So is one that was written when the clock was wrong: it would have to wait for that time."""
    memory = opened(ON)
    path = transcript(tmp_path, "a.jsonl", "hello")
    assert found(memory, "hello")
    say(path, "the zebra left")
    assert found(memory, "zebra") == []
    os.utime(path, (modified, modified))
    assert found(memory, "zebra")


@pytest.mark.parametrize("limits", [{"session_delta_bytes": 0}, {"session_delta_messages": 0}])
def test_without_a_limit_every_message_counts(opened: Opener, tmp_path: Path, limits: dict[str, int]) -> None:
    memory = opened(Config(session_memory=True, **limits))  # type: ignore[arg-type]
    path = transcript(tmp_path, "a.jsonl", "hello")
    assert found(memory, "hello")
    say(path, "the zebra left")
    assert found(memory, "zebra")


def test_a_sync_on_demand_takes_in_everything(opened: Opener, tmp_path: Path) -> None:
    transcript(tmp_path, "a.jsonl", "the zebra left", modified=None)
    memory = opened(ON)
    assert found(memory, "zebra") == []
    assert memory.sync().added == 1
    assert found(memory, "zebra")


def test_a_transcript_that_shrank_is_read_again(opened: Opener, tmp_path: Path) -> None:
    memory = opened(ON)
    transcript(tmp_path, "a.jsonl", "hello", "the zebra left")
    assert found(memory, "zebra")
    transcript(tmp_path, "a.jsonl", "hello", modified=None)
    assert found(memory, "zebra") == []


def test_tool_results_alone_change_nothing(opened: Opener, tmp_path: Path) -> None:
    memory = opened(ON)
    path = transcript(tmp_path, "a.jsonl", "the zebra left")
    memory.sync()
    with path.open("a") as file:
        file.write(json.dumps({"type": "message", "id": "r", "message": {"role": "toolResult", "content": "x"}}) + "\n")
    report = memory.sync()
    assert (report.updated, report.unchanged) == (0, 2)


def test_after_any_growth_the_index_is_that_of_a_fresh_start(opened: Opener, tmp_path: Path) -> None:
    memory = opened(ON)
    path = transcript(tmp_path, "a.jsonl", *(f"we spoke of number {i} at some length" for i in range(30)))
    memory.sync()
    say(path, *(f"and then of {i}" for i in range(20)))
    memory.sync()
    grown = rows(tmp_path / "state")
    memory.sync(force=True)
    assert rows(tmp_path / "state") == grown


def rows(state: Path) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(state / "memory.sqlite")
    query = "SELECT path, source, line_map, start_line, end_line, text FROM files JOIN chunks ON file_id = files.id"
    try:
        return connection.execute(f"{query} ORDER BY path, start_char").fetchall()
    finally:
        connection.close()


def test_transcripts_are_not_for_groups_and_cannot_be_read(opened: Opener, tmp_path: Path) -> None:
    transcript(tmp_path, "a.jsonl", "the zebra left")
    memory = opened(ON)
    offered = tools(memory, ON)
    (hit,) = payload(offered["memory_search"], query="zebra")["results"]
    assert (hit["path"], hit["source"], hit["citation"]) == ("sessions/a.jsonl", "sessions", "sessions/a.jsonl#L3")
    for chat_type in ("group", "channel"):
        assert payload(offered["memory_search"], chat_type, query="zebra")["results"] == []  # type: ignore[arg-type]
    open_to_groups = Config(session_memory=True, sessions_in_groups=True)
    assert payload(tools(memory, open_to_groups)["memory_search"], "group", query="zebra")["results"]
    for path in ("sessions/a.jsonl", "../sessions/a.jsonl", str(tmp_path / "sessions/a.jsonl")):
        refused = payload(offered["memory_get"], path=path)
        assert (refused["status"], refused["code"]) == ("error", "MEMORY_PATH_NOT_ALLOWED")


# --- extra paths -------------------------------------------------------------------------------------------


def test_extra_paths_are_searched_and_read(opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra/team.md").write_text("# Team\n\n- the manatee escalates to Priya\n")
    config = Config(extra_paths=("../extra", "missing.md"))
    memory = opened(config)
    assert found(memory, "manatee") == ["../extra/team.md#L1-L3"]
    get = tools(memory, config)["memory_get"]
    assert payload(get, path="../extra/team.md", **{"from": 3})["text"] == "- the manatee escalates to Priya"
    report = memory.sync()
    assert report.ok
    assert [(p.path, p.reason) for p in report.skipped] == [("missing.md", "does not exist")]
    (tmp_path / "extra/team.md").write_text("- the manatee is on leave\n")
    assert found(memory, "leave")
    assert opened().sync().removed == 1


def test_status_tells_where_memory_is_and_what_is_left_out(opened: Opener, workspace: Path) -> None:
    (workspace / "memory").mkdir()
    (workspace / "memory/link.md").symlink_to("../MEMORY.md")
    memory = opened(Config(extra_paths=("missing.md",)))
    memory.sync()
    status = memory.status()
    assert status["extraPaths"] == ["missing.md"]
    assert {p["path"]: p["reason"] for p in status["skipped"]} == {
        "missing.md": "does not exist",
        "memory/link.md": "a symbolic link",
    }
    assert "plugins.config.memory-core.session_memory = true" in {row["turnOn"] for row in status["off"]}
    assert "plugins.config.memory-core.session_memory = true" not in {
        row["turnOn"] for row in opened(ON).status()["off"]
    }


def test_lines_are_right_with_chunks_that_count_a_last_empty_line(workspace: Path, tmp_path: Path) -> None:
    transcript(tmp_path, "a.jsonl", "the zebra left", "It did.")
    backend = open_sqlite(
        BackendContext("main", workspace, tmp_path / "other", transcripts=tmp_path / "sessions"),
        Config(embedder="none", chunk_rule="openclaw"),
    )
    (hit,) = backend.search(SearchQuery("zebra")).hits
    assert hit.citation == "sessions/a.jsonl#L3-L5"
    backend.close()
