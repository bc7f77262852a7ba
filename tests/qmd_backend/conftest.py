"""A workspace with a few notes, a stand-in of qmd, and a backend on both."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from qmd_programs import Scene

from lamella.testing import MemoryBackendContract
from lamella.testing.contract.files import FilesContract


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow parts of the contract, since each test starts programs: what files hold, which the core reads for all
    backends, and of tests with several values all but the first."""
    seen: set[tuple[type, str]] = set()
    for item in items:
        if isinstance(item, pytest.Function) and item.cls and issubclass(item.cls, MemoryBackendContract):
            if (item.cls, item.originalname) in seen or hasattr(FilesContract, item.originalname):
                item.add_marker(pytest.mark.slow)
            seen.add((item.cls, item.originalname))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """Makes a scene with the settings that are given, and closes it in the end."""
    made: list[Scene] = []

    def scene(**settings: object) -> Scene:
        made.append(Scene.make(tmp_path / f"scene{len(made)}", **settings))
        return made[-1]

    yield scene
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder for `scene`, and a copy of what is there when it begins: an index holds whole paths."""
    folder, kept = tmp_path_factory.mktemp("searched") / "scene", tmp_path_factory.mktemp("kept") / "scene"
    made = Scene.make(folder)
    made.write("MEMORY.md", "# Facts\n\n- The staging server is called bluebird.\n")
    made.write(
        "memory/2026-03-02.md",
        "# 2026-03-02\n\nWe raised the connection pool to 64.\n\n灰度发布定在周五，连接池已调大。\n",
    )
    assert made.paths("connection pool") == ["memory/2026-03-02.md"]
    made.close()
    shutil.copytree(folder, kept)
    return folder, kept


@pytest.fixture
def scene(searched: tuple[Path, Path]) -> Iterator[Scene]:
    """A scene with two notes, searched once, so that there is an index."""
    folder, kept = searched
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    made = Scene.on(folder)
    yield made
    made.close()
