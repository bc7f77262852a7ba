"""The real qmd. It is installed from the npm registry the first time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import real_qmd
from attrs import evolve
from qmd_programs import ODD_NAMES, Scene, is_gone, wait_for

from lamella.errors import MemoryUnavailable
from lamella.testing import MemoryBackendContract, registered_backend
from lamella.types.memory import BackendRegistration, SearchQuery
from lamella_qmd_backend import QmdBackendPlugin

pytestmark = pytest.mark.slow

NAMES = [*ODD_NAMES, "UPPER_case-Name.v2"]


@pytest.fixture(scope="module")
def qmd() -> str:
    try:
        return str(real_qmd.install())
    except real_qmd.Unreachable as error:
        pytest.skip(str(error))


@pytest.fixture
def real(make: Callable[..., Scene], qmd: str) -> Scene:
    scene = make(command=qmd, mcp=True)
    scene.write("MEMORY.md", "# Facts\n\n- The staging server is called bluebird.\n")
    scene.write(
        "memory/2026-03-02.md",
        "# 2026-03-02\n\nWe raised the connection pool to 64.\n\n灰度发布定在周五，连接池已调大。\n",
    )
    return scene


class TestContract(MemoryBackendContract):
    @pytest.fixture
    def lamella_backend(self, qmd: str) -> BackendRegistration:
        return registered_backend(QmdBackendPlugin, "qmd", command=qmd)


@pytest.mark.parametrize("mcp", [True, False])
def test_questions_find_their_notes(real: Scene, mcp: bool) -> None:
    real.backends.insert(0, real.another(mcp=mcp))
    assert real.paths("How large is the connection pool now?")[0] == "memory/2026-03-02.md"
    assert real.paths("我们什么时候灰度发布？") == ["memory/2026-03-02.md"]
    assert real.paths("what is the staging server called?")[0] == "MEMORY.md"
    assert real.paths("xyzzynothing") == []
    assert real.backend.status()["version"] == real_qmd.VERSION


@pytest.mark.parametrize("mcp", [True, False])
def test_names_of_all_kinds_come_back(real: Scene, mcp: bool) -> None:
    for number, name in enumerate(NAMES):
        real.write(f"memory/{name}.md", f"the okapi number{number}x eats figs\n")
    real.backends.insert(0, real.another(mcp=mcp))
    assert real.backend.sync().chunks == len(NAMES) + 2
    for number, name in enumerate(NAMES):
        assert real.paths(f"number{number}x") == [f"memory/{name}.md"]
    assert real.backend.status()["droppedResults"] == 0


def test_a_folder_of_qmd_in_the_workspace_changes_nothing(real: Scene) -> None:
    real.write(".qmd/index.yml", '{"collections": {"evil": {"path": "/", "pattern": "etc/*.md", "update": "false"}}}')
    assert real.paths("connection pool") == ["memory/2026-03-02.md"]
    assert sorted(path.name for path in (real.workspace / ".qmd").iterdir()) == ["index.yml"]


@pytest.mark.parametrize("damage", [b"no database at all, only text" * 100, b""])
def test_a_damaged_database_is_replaced(real: Scene, damage: bytes) -> None:
    backend = real.another(mcp=False)
    backend.sync()
    database = Path(backend.status()["database"])
    for path in database.parent.glob("index.sqlite*"):
        path.unlink()
    database.write_bytes(damage)
    deadline = time.monotonic() + 60
    found: list[str] = []
    while not found and time.monotonic() < deadline:
        try:
            found = [hit.path for hit in backend.search(SearchQuery("connection pool")).hits]
        except MemoryUnavailable as error:
            assert "database" in str(error)
        if not found:
            backend.sync()
    assert found == ["memory/2026-03-02.md"]


def test_broken_settings_are_written_again(real: Scene) -> None:
    backend = real.another(mcp=False)
    backend.sync()
    (real.state / "qmd" / "config" / "index.yml").write_text("collections: [")
    assert [hit.path for hit in backend.search(SearchQuery("connection pool")).hits] == ["memory/2026-03-02.md"]


def test_killed_in_the_middle_of_a_search_it_fails_at_once_and_serves_again(real: Scene) -> None:
    assert real.paths("connection pool") == ["memory/2026-03-02.md"]
    child = real.backend._asker._child
    assert child is not None
    pid = child[2]._process.pid
    os.killpg(pid, signal.SIGSTOP)  # so that the search is in the middle for as long as it takes to kill it
    failed: list[MemoryUnavailable] = []

    def search() -> None:
        try:
            real.search("connection pool")
        except MemoryUnavailable as error:
            failed.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    time.sleep(0.5)
    assert thread.is_alive()
    os.killpg(pid, signal.SIGKILL)
    thread.join(30)
    assert [str(error) for error in failed] == ["qmd mcp was killed by signal 9"]
    wait_for(lambda: is_gone(pid))
    assert real.paths("connection pool") == ["memory/2026-03-02.md"]


def test_a_missing_model_is_told_and_not_waited_for(real: Scene) -> None:
    backend = real.another(mode="semantic", models=evolve(real.config.models, embed="/nowhere/model.gguf"))
    assert "qmd embed failed" in backend.sync(force=True).degraded
    found = backend.search(SearchQuery("connection pool"))
    assert [hit.path for hit in found.hits] == ["memory/2026-03-02.md"] and found.mode == "keyword"
    assert found.degraded and "only words were compared: qmd embed failed" in found.degraded.reason
