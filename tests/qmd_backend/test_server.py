"""`qmd mcp` as a child: batches, life and death, whose index it holds."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from qmd_programs import Scene, is_gone, wait_for

from lamella.errors import MemoryUnavailable
from lamella.types.memory import SearchQuery
from lamella_qmd_backend.backend import QmdBackend
from lamella_qmd_backend.config import Limits, Update

FOUND = ["memory/2026-03-02.md"]


@pytest.fixture
def served(scene: Scene) -> Scene:
    """A scene whose backend asks the server."""
    scene.backends.insert(0, scene.another(mcp=True))
    return scene


def servers(scene: Scene) -> list[int]:
    return [call["pid"] for call in scene.qmd.calls_of("mcp")]


def test_searches_share_one_server(served: Scene) -> None:
    for _ in range(3):
        assert served.paths("connection pool") == FOUND
    assert len(servers(served)) == 1 and len(served.qmd.queries) == 3
    assert served.qmd.queries[0]["rerank"] is False
    assert served.qmd.queries[0]["collections"] == ["memory"]
    assert served.backend.status()["qmdServer"] == "running"


def test_many_words_are_several_requests(served: Scene) -> None:
    words = " ".join(f"word{n}" for n in range(24))
    assert served.paths(f"{words} pool") == FOUND
    assert [len(query["searches"]) for query in served.qmd.queries] == [10, 10, 5]


def test_words_have_a_limit_and_the_longest_stay(served: Scene) -> None:
    served.search(" ".join(f"w{n}" for n in range(60)) + " connection")
    asked = [search["query"] for query in served.qmd.queries for search in query["searches"]]
    assert len(asked) == 30 and "connection" in asked


def test_a_server_ends_with_the_backend(served: Scene) -> None:
    served.search("pool")
    served.backend.close()
    (pid,) = servers(served)
    wait_for(lambda: is_gone(pid))


def test_a_server_that_is_killed_while_it_answers_fails_that_search(served: Scene) -> None:
    served.search("pool")
    served.qmd.play("killed", "mcp")
    with pytest.raises(MemoryUnavailable, match="qmd mcp was killed by signal 9"):
        served.search("pool")
    served.qmd.play("", "mcp")
    assert served.paths("pool") == FOUND
    assert len(servers(served)) == 2


def test_a_server_that_died_between_searches_is_started_again(served: Scene) -> None:
    served.search("pool")
    (pid,) = servers(served)
    os.killpg(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid))
    assert served.paths("pool") == FOUND
    assert len(servers(served)) == 2


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("error", "no such table: documents"),
        ("no_results", "gave no answer that can be read"),
        ("hang_query", "took too long"),
    ],
)
def test_a_server_that_does_not_answer_is_a_failure(scene: Scene, mode: str, reason: str) -> None:
    backend = scene.another(mcp=True, limits=Limits(timeout_seconds=2.0))
    backend.search(SearchQuery("pool"))
    scene.qmd.play(mode, "mcp")
    with pytest.raises(MemoryUnavailable, match=reason):
        backend.search(SearchQuery("pool"))
    (pid,) = servers(scene)
    wait_for(lambda: is_gone(pid))


def test_a_server_that_does_not_start_in_time_is_tried_again_later(scene: Scene) -> None:
    scene.qmd.play("hang", "mcp")
    backend = scene.another(mcp=True, limits=Limits(timeout_seconds=2.0))
    with pytest.raises(MemoryUnavailable, match="qmd mcp took too long"):
        backend.search(SearchQuery("pool"))
    scene.qmd.play("", "mcp")
    assert [hit.path for hit in backend.search(SearchQuery("pool")).hits] == FOUND
    assert len(servers(scene)) == 2


def test_noise_between_the_messages_is_passed_over(served: Scene) -> None:
    served.qmd.play("noise", "mcp")
    assert served.paths("pool") == FOUND


@pytest.mark.parametrize("mode", ["missing", "old_tools"])
def test_without_a_server_of_use_the_command_line_is_asked(served: Scene, mode: str) -> None:
    served.qmd.play(mode, "mcp")
    assert served.paths("pool") == FOUND
    assert served.paths("pool") == FOUND
    assert len(servers(served)) == 1, "it is not tried again and again"
    assert served.backend.status()["qmdServer"].startswith("not available: ")


def test_a_server_that_is_killed_as_it_starts_is_tried_again(served: Scene) -> None:
    served.qmd.play("sigsegv", "mcp")
    assert served.paths("pool") == FOUND, "the command line is asked meanwhile"
    served.qmd.play("", "mcp")
    assert served.paths("pool") == FOUND
    assert len(served.qmd.queries) == 1 and served.backend.status()["qmdServer"] == "running"


def test_a_server_that_is_killed_whenever_it_starts_is_given_up(served: Scene) -> None:
    served.qmd.play("sigsegv", "mcp")
    for _ in range(5):
        assert served.paths("pool") == FOUND
    assert len(servers(served)) == 3
    assert served.backend.status()["qmdServer"] == "not available: qmd mcp was killed by signal 11"


def test_old_versions_are_asked_by_the_command_line(make: Callable[..., Scene]) -> None:
    scene = make(mcp=True)
    scene.qmd.be("2.0.1")
    scene.write("memory/a.md", "the okapi eats figs\n")
    assert scene.paths("okapi") == ["memory/a.md"]
    assert not servers(scene)


def test_a_server_of_another_index_is_not_trusted(served: Scene) -> None:
    served.qmd.play("another_index", "mcp")
    with pytest.raises(MemoryUnavailable, match="Collection not found: memory at /"):
        served.search("pool")
    assert not served.qmd.queries


def test_a_server_that_finds_its_database_broken_has_it_made_anew(served: Scene) -> None:
    served.search("pool")
    served.qmd.play("corrupt", "mcp")
    with pytest.raises(MemoryUnavailable, match="malformed"):
        served.search("pool")
    served.qmd.play("", "mcp")
    assert served.paths("pool") == FOUND
    assert list((served.state / "qmd").glob("*.broken"))


def test_a_new_index_gets_a_new_server(served: Scene) -> None:
    served.search("pool")
    served.another().sync(force=True)
    assert served.paths("pool") == FOUND
    assert len(servers(served)) == 2


def test_an_update_is_seen_by_the_server(served: Scene) -> None:
    served.search("pool")
    served.write("memory/new.md", "the okapi eats figs\n")
    served.another().sync()
    found = served.search("okapi")
    assert [hit.path for hit in found.hits] == ["memory/new.md"] and found.in_step
    assert len(servers(served)) == 1


def test_a_workspace_without_notes_has_a_server_all_the_same(make: Callable[..., Scene]) -> None:
    scene = make(mcp=True, update=Update(debounce_seconds=3600.0))
    assert scene.search("okapi").hits == ()
    backend: QmdBackend = scene.backend
    scene.write("memory/a.md", "the okapi eats figs\n")
    assert [h.path for h in backend.search(SearchQuery("okapi")).hits] == ["memory/a.md"]
    assert len(servers(scene)) == 1
