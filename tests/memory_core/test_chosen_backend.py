"""Holds: a backend other than sqlite has sqlite behind it: turns, tools, notices and status tell who answers; the
index of sqlite is kept in step by words alone unless more is asked for; to switch loses nothing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, open_agent, scripted
from backends import EMPTY, FAILS, HANGS, HINT, NAME, NOT_OPENED, OK, REASON, Mood, ProbedBackend, Shaky
from index_tables import contents, stored
from notes import make_workspace
from vector_words import WordVectors

from lamella import hookimpl
from lamella.errors import MemoryUnavailable
from lamella.runtime import Runtime
from lamella.types.events import Notice, ToolExecutionEnd
from lamella.types.hooks import RegistrationContext
from lamella.types.memory import EmbedderRegistration, MemoryService, Provenance, SearchQuery
from lamella_memory_core import MemoryCore

FILES = {"MEMORY.md": "# Facts\n\nThe okapi 小鹿 likes figs.\n", "memory/a.md": "The zebra drinks milk.\n"}
CALL = {"type": "toolCall", "id": "c1", "name": "memory_search", "arguments": {"query": "okapi"}}


class Words:
    """A plugin whose embedder knows a few words."""

    name = "words"

    @hookimpl
    def register_embedders(self, context: RegistrationContext) -> list[EmbedderRegistration]:
        return [EmbedderRegistration("words", WordVectors, offline=True)]


def open_with(home: Path, shaky: Shaky, model: Any = None, backend: str = NAME, **settings: Any) -> Runtime:
    make_workspace(home, {} if (home / "ws").exists() else FILES)
    core: Mapping[str, Any] = {"embedder": "words", "watch": False, "backend_retry_seconds": 0.1, **settings}
    chosen = {f"plugins.config.memory-core.{key}": value for key, value in core.items()}
    return open_agent(
        home,
        model or scripted([]),
        settings={"memory.backend": backend, **chosen},
        plugins=[MemoryCore, shaky, Words()],
    )


def search(memory: MemoryService, words: str = "okapi") -> tuple[list[str], str]:
    """The best hit, if there is one; and why the answer is degraded."""
    found = memory.search(SearchQuery(words))
    return [hit.path for hit in found.hits][:1], found.degraded.reason if found.degraded else ""


@pytest.mark.parametrize("mood", [FAILS, NOT_OPENED])
async def test_a_turn_runs_and_says_who_answers(tmp_path: Path, mood: str) -> None:
    shaky = Shaky(Mood(mood))
    model = scripted([{"content": [CALL], "stopReason": "toolUse"}, {"text": "figs"}] * 2)
    recorder = Recorder()
    async with open_with(tmp_path, shaky, model) as runtime:
        runtime.listeners.append(recorder)
        async with runtime.session() as session:
            assert (await session.prompt("what does it like?")).text == "figs"
            (told,) = answers(recorder)
            assert (told["backend"], [hit["path"] for hit in told["results"]]) == ("sqlite", ["MEMORY.md"])
            why = told["degraded"]
            assert (why["reason"], why["answered_by"]) == (REASON, "sqlite")
            assert why["retry_at"] > why["since"]
            (notice,) = [n for n in recorder.of(Notice) if n.code.startswith("memory_")]
            assert notice.code == "memory_fallback"
            assert notice.data["fallback"]["reason"] == REASON
            shaky.mood.now = OK
            wait_until(why["retry_at"])
            await session.prompt("again")
    told = answers(recorder)[-1]
    assert (told["backend"], "degraded" in told) == (NAME, False)
    codes = [n.code for n in recorder.of(Notice) if n.code.startswith("memory_")]
    assert codes == ["memory_fallback", "memory_restored"]


def answers(recorder: Recorder) -> list[Any]:
    """What the tool gave, which is what the model reads."""
    results = [event.result for event in recorder.of(ToolExecutionEnd)]
    assert all(json.loads(result.content) == result.details for result in results)
    return [result.details for result in results]


def wait_until(moment: float, call: str = "", mood: Mood | None = None) -> None:
    """Let a backend cool down, or be called; its clock is the system's here."""
    while time.time() < moment and (mood is None or call not in mood.calls):
        time.sleep(0.02)


async def test_a_backend_that_is_not_installed_is_said_in_a_turn(tmp_path: Path) -> None:
    recorder = Recorder()
    async with open_with(tmp_path, Shaky(Mood()), scripted([{"text": "here"}]), backend="bm25") as runtime:
        runtime.listeners.append(recorder)
        assert (await runtime.ask("hello")).text == "here"
        assert search(runtime.require_memory())[0] == ["MEMORY.md"]
    (notice,) = [n for n in recorder.of(Notice) if n.code == "memory_fallback"]
    assert "'bm25' is not installed (on offer: shaky, sqlite)" in notice.message
    assert "pip install lamella-bm25-backend" in notice.message
    assert notice.data["fallback"] | {"reason": ""} == {"from": "bm25", "reason": "", "since": None, "retryAt": None}


def test_without_a_fallback_it_stands_alone(tmp_path: Path) -> None:
    shaky = Shaky(Mood(FAILS))
    with_none = open_with(tmp_path, shaky, fallback="none")
    with pytest.raises(MemoryUnavailable, match=REASON):
        with_none.require_memory().search(SearchQuery("okapi"))
    assert shaky.contexts[0].search_seconds is None
    with_none.close()


def test_the_backend_is_told_its_time(tmp_path: Path) -> None:
    shaky = Shaky(Mood())
    runtime = open_with(tmp_path, shaky, backend_timeout_seconds=7.5)
    runtime.require_memory().search(SearchQuery("okapi"))
    assert shaky.contexts[0].search_seconds == 7.5
    runtime.close()


def test_one_that_hangs_costs_its_time_once(tmp_path: Path) -> None:
    shaky = Shaky(Mood(HANGS))
    slow = {"backend_timeout_seconds": 0.3, "backend_retry_seconds": 600.0}
    runtime = open_with(tmp_path, shaky, **slow)
    memory = runtime.require_memory()
    assert search(memory) == (["MEMORY.md"], "shaky: it did not answer within 0.3 s")
    assert search(memory)[0] == ["MEMORY.md"]
    runtime.close()
    later = open_with(tmp_path, Shaky(shaky.mood), **slow)  # as the next command has it
    assert search(later.require_memory())[1] == "shaky: it did not answer within 0.3 s"
    assert shaky.mood.searches() == 1
    later.close()
    shaky.mood.release.set()


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    runtime = open_with(tmp_path, Shaky(Mood(EMPTY)))
    assert search(runtime.require_memory()) == ([], "")
    runtime.close()


@pytest.mark.parametrize(("fallback", "made"), [("keywords", 0), ("full", 2)])
def test_a_fallback_makes_no_vectors_unless_it_shall(tmp_path: Path, fallback: str, made: int) -> None:
    shaky = Shaky(Mood())
    runtime = open_with(tmp_path, shaky, fallback=fallback)
    memory = runtime.require_memory()
    memory.sync()
    memory.search(SearchQuery("okapi"))
    shaky.mood.now = FAILS
    assert search(memory) == (["MEMORY.md"], REASON)
    status = memory.status()
    assert sum(row["count"] for row in status["vectors"]) == made
    assert (status["backend"], status["active"], status["files"], status["problem"]) == (NAME, "sqlite", 2, None)
    assert status["mode"] == ("hybrid" if made else "keyword")
    off = [entry["turnOn"] for entry in status["off"] if "chosen backend fails" in entry["what"]]
    assert off == ([] if made else ['plugins.config.memory-core.fallback = "full"'])
    runtime.close()


def test_the_index_of_the_fallback_is_kept_in_step(tmp_path: Path) -> None:
    shaky = Shaky(Mood())
    runtime = open_with(tmp_path, shaky)
    memory = runtime.require_memory()
    memory.append("The 连接池 holds nine gnus.", path="memory/b.md", provenance=Provenance("test"))
    shaky.mood.now = FAILS
    for words in ("gnus", "连接池"):
        found = memory.search(SearchQuery(words, as_is=True))  # from the index as it is, without a look at the files
        assert [hit.path for hit in found.hits] == ["memory/b.md"]
    runtime.close()


def test_a_note_does_not_wait_for_a_long_update(tmp_path: Path) -> None:
    shaky = Shaky(Mood(HANGS))
    runtime = open_with(tmp_path, shaky, backend_timeout_seconds=0.3)
    memory = runtime.require_memory()
    for name in ("b", "c"):
        memory.append(f"The ibex climbs {name}.", path=f"memory/{name}.md", provenance=Provenance("test"))
    assert "sync" in shaky.mood.calls
    assert search(memory, "ibex")[0] in (["memory/b.md"], ["memory/c.md"])
    shaky.mood.release.set()
    assert memory.sync().seen == 4
    runtime.close()


def test_a_sync_that_hangs_holds_up_no_later_one(tmp_path: Path) -> None:
    shaky = Shaky(Mood(HANGS))
    runtime = open_with(tmp_path, shaky, backend_timeout_seconds=0.3)
    memory = runtime.require_memory()
    threads = []
    for i in range(6):
        memory.append(f"Ibex number {i} climbs.", path=f"memory/{i}.md", provenance=Provenance("test"))
        threads.append(threading.active_count())
    report = memory.sync()
    assert report.problem == "not up to date: shaky: an earlier sync has not come to an end"
    assert (report.seen, report.unchanged) == (8, 8)  # sqlite has all of them
    assert shaky.mood.calls.count("sync") == 1
    assert len(set(threads[2:])) == 1, threads
    shaky.mood.now = OK
    shaky.mood.release.set()
    end = time.monotonic() + 20
    while (problem := memory.sync().problem) and time.monotonic() < end:  # it may still be on its way out
        time.sleep(0.02)
    assert problem == ""
    assert shaky.mood.calls.count("sync") == 3  # once more for those that it held up
    runtime.close()


def test_what_changed_while_it_was_left_alone_is_taken_in_when_it_is_back(tmp_path: Path) -> None:
    shaky = Shaky(Mood(FAILS))
    runtime = open_with(tmp_path, shaky)
    memory = runtime.require_memory()
    search(memory)
    assert "sync" not in shaky.mood.calls
    memory.sync()
    assert "sync" not in shaky.mood.calls
    shaky.mood.now = OK
    wait_until(memory.status()["fallback"]["retryAt"])
    assert search(memory)[1] == ""
    wait_until(time.time() + 20, "sync", shaky.mood)
    assert "sync" in shaky.mood.calls
    runtime.close()


def test_status_and_last_error_name_it(tmp_path: Path) -> None:
    shaky = Shaky(Mood(FAILS), ProbedBackend)
    runtime = open_with(tmp_path, shaky, backend_retry_seconds=60.0)
    memory = runtime.require_memory()
    status = memory.status()
    assert (status["active"], status["fallback"]["reason"]) == ("sqlite", REASON)
    report = memory.sync()
    assert (report.seen, report.problem) == (2, f"not up to date: {REASON}")
    assert memory.status()["lastError"] == f"not up to date: {REASON}"
    with pytest.raises(MemoryUnavailable, match=REASON) as caught:
        memory.probe()  # type: ignore[attr-defined]
    assert caught.value.hint == HINT
    shaky.mood.now = OK
    memory.probe()  # type: ignore[attr-defined]
    assert memory.sync().problem == ""
    status = memory.status()
    assert (status["active"], status["fallback"], status["lastError"]) == (NAME, None, None)
    runtime.close()


def test_to_switch_backends_loses_nothing(tmp_path: Path) -> None:
    """sqlite, then another one, then sqlite; files are edited in between."""
    shaky = Shaky(Mood())
    first = open_with(tmp_path, shaky, backend="sqlite")
    first.require_memory().sync()
    first.close()
    workspace = tmp_path / "ws"
    (workspace / "memory/a.md").write_text("The zebra drinks tea now.\n")
    (workspace / "memory/b.md").write_text("The gnu sleeps.\n")
    before = {path: path.read_bytes() for path in workspace.rglob("*.md")}

    other = open_with(tmp_path, shaky)
    memory = other.require_memory()
    assert search(memory, "tea") == (["memory/a.md"], "")
    memory.append("The ibex climbs.", path="memory/c.md", provenance=Provenance("test"))
    (workspace / "memory/b.md").unlink()
    shaky.mood.now = FAILS
    assert search(memory, "ibex") == (["memory/c.md"], REASON)
    assert search(memory, "gnu") == ([], REASON)
    other.close()

    last = open_with(tmp_path, shaky, backend="sqlite")
    memory = last.require_memory()
    assert search(memory, "tea") == (["memory/a.md"], "")
    assert search(memory, "milk")[1] == ""
    memory.sync()
    status = memory.status()
    assert status["vectors"] == [{"identity": WordVectors().identity, "count": 3}]
    last.close()
    fresh = open_agent(
        tmp_path,
        scripted([]),
        settings={"plugins.config.memory-core.embedder": "words"},
        plugins=[MemoryCore, Words()],
        environ={"LAMELLA_HOME": str(tmp_path / "fresh")},
    )
    fresh.require_memory().sync()
    fresh.close()
    for look in (contents, stored):
        assert look(workspace, "state/agents/main") == look(workspace, "fresh/agents/main")
    (workspace / "memory/c.md").unlink()
    del before[workspace / "memory/b.md"]
    assert {path: path.read_bytes() for path in workspace.rglob("*.md")} == before


def test_secrets_in_notes_are_masked_whoever_answers(tmp_path: Path) -> None:
    secret = "sk-proj-AbCdEf0123456789AbCdEf0123456789"
    make_workspace(tmp_path, {"MEMORY.md": f"The okapi has the key {secret} now.\n"})
    shaky = Shaky(Mood())
    runtime = open_with(tmp_path, shaky, redact_notes=True)
    memory = runtime.require_memory()
    for mood, backend in ((OK, NAME), (FAILS, "sqlite")):
        shaky.mood.now = mood
        found = memory.search(SearchQuery("okapi"))
        assert found.backend == backend
        assert "okapi" in found.hits[0].snippet
        assert secret not in found.hits[0].snippet
    runtime.close()


def test_what_went_wrong_in_another_backend_is_not_told_of_this_one(tmp_path: Path) -> None:
    shaky = Shaky(Mood(FAILS))
    runtime = open_with(tmp_path, shaky)
    runtime.require_memory().sync()
    assert REASON in runtime.require_memory().status()["lastError"]
    runtime.close()
    runtime = open_with(tmp_path, shaky, backend="sqlite")
    memory = runtime.require_memory()
    assert memory.status()["lastError"] is None
    assert search(memory) == (["MEMORY.md"], "")
    assert memory.status()["lastSync"] is not None
    runtime.close()
