"""What one-shot commands import: nothing that they do not use, so that they begin quickly."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli import EXAMPLE, lamella

AGENT = ("lamella.agent", "lamella.models", "lamella.tools", "lamella.session")
LIBRARIES = ("sqlalchemy", "rich", "pydantic", "pydantic_ai", "jsonschema", "tomlkit", "asyncio")
FILES = ("msgspec", "filelock")
VECTORS = ("numpy",)
PLUGINS = ("lamella.plugins", "lamella_memory_core", "lamella_embedders")

COMMAND = "from lamella.cli.main import main; code = main(sys.argv[1:])"
FRONT_DOOR = "from lamella import Runtime; Runtime.open(workspace='ws'); code = 0"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "ws"))


def imported(program: str, *arguments: str, home: Path, tmp_path: Path) -> frozenset[str]:
    """The modules that a program has imported when it ends."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LAMELLA_")}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; {program}; print(*sys.modules, file=sys.stderr); sys.exit(code)",
            *arguments,
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**clean, "LAMELLA_HOME": str(home)},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    return frozenset(done.stderr.splitlines()[-1].split())


def of(packages: tuple[str, ...], modules: frozenset[str]) -> list[str]:
    """The modules that belong to packages."""
    return sorted(m for m in modules if any(m == package or m.startswith(f"{package}.") for package in packages))


@pytest.mark.parametrize(
    ("command", "unused"),
    [
        ("--help", (*AGENT, *LIBRARIES, *FILES, *VECTORS, *PLUGINS, "lamella.runtime", "lamella.sessions")),
        ("memory --help", (*AGENT, *LIBRARIES, *FILES, *VECTORS, *PLUGINS, "lamella.runtime")),
        ("sessions list", (*AGENT, *LIBRARIES, *VECTORS, *PLUGINS, "lamella.context")),
        ("status", (*AGENT, *LIBRARIES, *VECTORS, *PLUGINS, "lamella.context")),
        ("config show", (*AGENT, *LIBRARIES, *FILES, *VECTORS, *PLUGINS, "lamella.context")),
        ("plugins list", (*AGENT, *LIBRARIES, *FILES, *VECTORS, "lamella.memory")),
        ("memory get MEMORY.md", (*AGENT, *LIBRARIES, *FILES, *VECTORS)),
    ],
)
def test_a_command_imports_only_what_it_uses(
    command: str, unused: tuple[str, ...], home: Path, workspace: Path, tmp_path: Path
) -> None:
    where = () if "--help" in command or command == "plugins list" else ("--workspace", str(workspace))
    modules = imported(COMMAND, *command.split(), *where, home=home, tmp_path=tmp_path)
    assert "lamella.cli.main" in modules
    assert of(unused, modules) == []


def test_a_search_of_an_index_imports_no_agent_and_no_writer(home: Path, workspace: Path, tmp_path: Path) -> None:
    at = ("--workspace", str(workspace))
    time.sleep(2.1)  # files that were written just now are read again by the next search
    lamella("memory", "index", *at, home=home, check=True)
    modules = imported(COMMAND, "memory", "search", "boiler", *at, home=home, tmp_path=tmp_path)
    assert {"numpy", "lamella_memory_core.ranking.search"} <= modules
    assert of((*AGENT, *LIBRARIES, *FILES, "lamella.memory.writer"), modules) == []


def test_the_front_door_is_light(home: Path, tmp_path: Path) -> None:
    modules = imported(FRONT_DOOR, home=home, tmp_path=tmp_path)
    assert "lamella.runtime" in modules
    assert of((*AGENT, *LIBRARIES, *FILES, *VECTORS, *PLUGINS, "lamella.context", "lamella.memory"), modules) == []
