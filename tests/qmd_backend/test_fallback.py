"""qmd behind memory-core: who answers while it is broken, and after it is mended."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import lamella as run_lamella
from qmd_programs import Scene, wait_for

from lamella.errors import MemoryUnavailable
from lamella.runtime import Runtime
from lamella.types.memory import MemoryService, SearchQuery
from lamella_qmd_backend import Config

FOUND = ["memory/2026-03-02.md"]


@pytest.fixture
def opened(scene: Scene, tmp_path: Path) -> Iterator[Callable[..., MemoryService]]:
    runtimes: list[Runtime] = []

    def open_memory(**settings: Any) -> MemoryService:
        chosen = {
            "memory.backend": "qmd",
            "plugins.config.qmd-backend.command": scene.qmd.command,
            "plugins.config.qmd-backend.update.debounce_seconds": 0,
            "plugins.config.memory-core.embedder": "none",
            **settings,
        }
        home = {"LAMELLA_HOME": str(tmp_path / "home")}
        runtimes.append(Runtime.open(workspace=scene.workspace, settings=chosen, environ=home))
        return runtimes[-1].require_memory()

    yield open_memory
    for runtime in runtimes:
        runtime.close()


def paths(memory: MemoryService, text: str) -> list[str]:
    return [hit.path for hit in memory.search(SearchQuery(text)).hits]


def cool_down(folder: Path) -> None:
    """Make as if the time had passed until qmd is asked again."""
    (state,) = folder.rglob("memory-fallback.json")
    document = json.loads(state.read_text())

    def passed(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: 0 if k in ("retry_at", "retryAt") else passed(v) for k, v in value.items()}
        return value

    state.write_text(json.dumps(passed(document)))


def test_broken_answered_by_sqlite_mended_answered_by_qmd(
    scene: Scene, opened: Callable[..., MemoryService], tmp_path: Path
) -> None:
    memory = opened()
    found = memory.search(SearchQuery("connection pool"))
    assert found.backend == "qmd" and found.degraded is None and [h.path for h in found.hits] == FOUND

    for _ in range(2):
        scene.qmd.play("killed", "mcp")
        found = memory.search(SearchQuery("connection pool"))
        assert found.backend == "sqlite" and [h.path for h in found.hits] == FOUND
        assert found.degraded and "qmd mcp was killed by signal 9" in found.degraded.reason
        assert found.degraded.since and found.degraded.retry_at and found.degraded.retry_at > found.degraded.since

        calls = len(scene.qmd.calls)
        assert paths(memory, "connection pool") == FOUND
        status = memory.status()
        assert (status["backend"], status["active"], status["fallback"]["from"]) == ("qmd", "sqlite", "qmd")
        assert "signal 9" in status["fallback"]["reason"]
        assert len(scene.qmd.calls) == calls, "nothing is started while it is left alone"

        scene.qmd.play("", "mcp")
        cool_down(tmp_path / "home")
        found = memory.search(SearchQuery("connection pool"))
        assert found.backend == "qmd" and found.degraded is None
        assert memory.status()["fallback"] is None and memory.status()["active"] == "qmd"


def test_an_empty_answer_stays_with_qmd(scene: Scene, opened: Callable[..., MemoryService]) -> None:
    memory = opened()
    found = memory.search(SearchQuery("xyzzynothing"))
    assert found.hits == () and found.backend == "qmd" and found.degraded is None


def test_the_first_reason_is_told_when_nobody_answers(
    scene: Scene, opened: Callable[..., MemoryService], tmp_path: Path
) -> None:
    memory = opened(**{"plugins.config.memory-core.fallback": "none"})
    scene.qmd.play("exit1")
    with pytest.raises(MemoryUnavailable, match="boom"):
        memory.search(SearchQuery("pool"))


def test_a_sync_that_nobody_listens_to_does_not_wait_for_vectors(
    scene: Scene, opened: Callable[..., MemoryService]
) -> None:
    memory = opened(**{"plugins.config.qmd-backend.models.embed": "/e.gguf"})
    scene.qmd.play("hang", "embed")
    assert memory.sync().ok
    wait_for(lambda: bool(scene.qmd.calls_of("embed")))


def test_the_commands_say_who_answers(scene: Scene, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        '[memory]\nbackend = "qmd"\n[plugins.config.memory-core]\nembedder = "none"\n'
        f"[plugins.config.qmd-backend]\ncommand = '{scene.qmd.command}'\n"
    )
    home = tmp_path / "home"
    where = ("--workspace", scene.workspace, "--config", config)

    def lamella(*arguments: str) -> Any:
        return run_lamella("memory", *arguments, *where, "--json", home=home, check=True).json

    lamella("index")
    assert lamella("search", "connection pool")["backend"] == "qmd"
    status = lamella("status")
    assert (status["active"], status["documents"], status["version"]) == ("qmd", 2, "2.8.3")
    scene.qmd.play("sigsegv")
    answer = lamella("search", "connection pool")
    assert answer["backend"] == "sqlite" and answer["results"][0]["path"] == FOUND[0]
    assert "Node too old" in answer["degraded"]["reason"]


WRONG = {
    'mode = "fast"': ["plugins.config.qmd-backend.mode", "fast", "keywords, search, semantic, query"],
    'command = " "': ["plugins.config.qmd-backend.command", "expected a program"],
    'collections = ["-x"]': ["plugins.config.qmd-backend.collections", "'-x'", "qmd collection list"],
    "limits.timeout_seconds = 0": ["plugins.config.qmd-backend.limits.timeout_seconds", "0.1 to 600"],
    "update.debounce = 3": ["plugins.config.qmd-backend.update.debounce", "debounce_seconds"],
    'models.embed = "a\\nb"': ["plugins.config.qmd-backend.models.embed", "GGUF"],
    "mcp = 1": ["plugins.config.qmd-backend.mcp", "1"],
}


def test_wrong_settings_are_named_with_what_was_expected(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("\n".join(["[plugins.config.qmd-backend]", *WRONG]))
    ran = run_lamella("config", "check", "--config", config, home=tmp_path)
    assert ran.code == 2
    lines = ran.out.splitlines() + ran.err.splitlines()
    for line, told in WRONG.items():
        assert any(all(part in shown for part in told) for shown in lines), (line, lines)


def test_a_command_that_is_none_in_a_shell_is_told() -> None:
    with pytest.raises(ValueError, match="expected a program, as in a shell"):
        Config(command="'")
