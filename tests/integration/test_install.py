"""Real wheels in fresh environments: the core alone, then with its plugins beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from cli import EXAMPLE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MEMBERS = sorted(p.parent for p in [ROOT / "core/pyproject.toml", *ROOT.glob("plugins/*/pyproject.toml")])


def uv(*arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, "-m", "uv", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    for member in MEMBERS:
        uv("build", "--quiet", "--wheel", "--out-dir", out, member)
    return out


class Environment:
    """A virtual environment with nothing of the checkout in it."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.home = folder / "home"
        uv("venv", "--quiet", "--python", sys.executable, folder / "venv")

    def install(self, *wheels: Path) -> None:
        uv("pip", "install", "--quiet", "--python", self.bin / "python", *wheels)

    def lamella(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("LAMELLA_", "PYTHON")) and "API_KEY" not in k}
        env = {**clean, "LAMELLA_HOME": str(self.home)}
        command = [str(self.bin / "lamella"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd=self.bin.parent)


def test_every_wheel_is_complete(wheels: Path) -> None:
    built = sorted(wheels.glob("*.whl"))
    assert len(built) == len(MEMBERS)
    for wheel in built:
        names = zipfile.ZipFile(wheel).namelist()
        assert any(n.endswith("/py.typed") for n in names), wheel.name
        if not wheel.name.startswith("lamella-"):
            entry_points = next(n for n in names if n.endswith("entry_points.txt"))
            assert "[lamella.plugins]" in zipfile.ZipFile(wheel).read(entry_points).decode()
        else:
            assert "lamella/templates/AGENTS.md" in names


def test_the_core_alone_and_then_with_plugins(wheels: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    workspace = Path(shutil.copytree(EXAMPLE, tmp_path / "ws"))
    environment.install(*wheels.glob("lamella-0*.whl"))
    question = ("ask", "Which day is the boiler serviced?", "--model", "offline", "--workspace", workspace)

    alone = environment.lamella(*question)
    assert alone.returncode == 0, alone.stderr
    assert "pip install lamella-memory-core" in alone.stderr
    assert environment.lamella("memory", "search", "boiler", "--workspace", workspace).returncode == 3
    assert environment.lamella("plugins", "check").returncode == 0

    environment.install(*wheels.glob("*.whl"))
    listed = environment.lamella("plugins", "list")
    assert "memory-core" in listed.stdout
    assert "embedders" in listed.stdout
    assert "compaction-safeguard" in listed.stdout
    assert "context-pruning" in listed.stdout
    assert "session-memory" in listed.stdout
    answered = environment.lamella(*question, "--new")
    assert answered.returncode == 0, answered.stderr
    assert "memory/2026-10-" in answered.stdout


def test_a_provider_without_its_extra_names_the_command(wheels: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path)
    environment.install(*wheels.glob("lamella-0*.whl"))
    environment.home.mkdir(parents=True)
    (environment.home / "config.toml").write_text('[models.providers.anthropic]\napi_key = "x"\n')
    asked = environment.lamella("ask", "hi", "--model", "anthropic/claude-x")
    assert asked.returncode == 3
    assert "pip install 'lamella[anthropic]'" in asked.stderr
