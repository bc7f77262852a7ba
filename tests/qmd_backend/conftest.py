"""A workspace with a few notes, a stand-in of qmd, and a backend on both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from qmd_programs import Scene


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


@pytest.fixture
def scene(make: Callable[..., Scene]) -> Scene:
    """A scene with two notes, searched once, so that there is an index."""
    made = make()
    made.write("MEMORY.md", "# Facts\n\n- The staging server is called bluebird.\n")
    made.write(
        "memory/2026-03-02.md",
        "# 2026-03-02\n\nWe raised the connection pool to 64.\n\n灰度发布定在周五，连接池已调大。\n",
    )
    assert made.paths("connection pool") == ["memory/2026-03-02.md"]
    return made
