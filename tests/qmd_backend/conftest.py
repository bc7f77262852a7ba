"""A workspace with a few notes, a stand-in of qmd, and a backend on both."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from qmd_programs import Scene

from lamella.testing import MemoryBackendContract
from lamella.testing.contract.files import FilesContract

# Of the contract: each starts twenty programs, or is about what the core tells for all backends.
SLOW = ("test_two_objects_can_share", "test_a_search_can_run_beside", "test_line_numbers")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow parts of the contract, since each test starts programs: which files are memory, and of tests with several
    values all but the first, too."""
    seen: set[tuple[type, str]] = set()
    for item in items:
        if isinstance(item, pytest.Function) and item.cls and issubclass(item.cls, MemoryBackendContract):
            name = item.originalname
            if (item.cls, name) in seen or hasattr(FilesContract, name) or name.startswith(SLOW):
                item.add_marker(pytest.mark.slow)
            seen.add((item.cls, name))


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
