"""Wheels of the repository, and virtual environments with nothing of the checkout in them."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attrs import frozen

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "plugins"
BIN = "Scripts" if os.name == "nt" else "bin"


@functools.cache
def _uv() -> tuple[str, ...]:
    """uv as a module of this environment, or the one on the PATH."""
    return (sys.executable, "-m", "uv") if importlib.util.find_spec("uv") else ("uv",)


def uv(*arguments: str | Path) -> None:
    done = subprocess.run([*_uv(), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@frozen
class Member:
    """A distribution of the repository, from its pyproject.toml."""

    folder: Path
    name: str
    plugins: tuple[str, ...]
    needs: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path) -> Member:
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        needs = (re.match(r"[\w.-]+", need) for need in project.get("dependencies", ()))
        plugins = project.get("entry-points", {}).get("lamella.plugins", {})
        return cls(folder, project["name"], tuple(plugins), tuple(n[0] for n in needs if n))


CORE = Member.of(ROOT / "core")
PLUGINS = tuple(Member.of(p.parent) for p in sorted(ROOT.glob("plugins/*/pyproject.toml")))
MEMBERS = (CORE, *PLUGINS)


def with_needs(members: Iterable[Member]) -> tuple[Member, ...]:
    """The members, and those of the repository that they depend on."""
    wanted = [m.name for m in members]
    for name in wanted:
        member = next((m for m in MEMBERS if m.name == name), None)
        wanted += [n for n in (member.needs if member else ()) if n not in wanted and n.startswith("lamella")]
    return tuple(m for m in MEMBERS if m.name in wanted)


def build(folder: Path, out: Path) -> None:
    """Build the wheel of a project."""
    uv("build", "--quiet", "--wheel", "--out-dir", out, folder)


def wheel_of(name: str, folder: Path) -> Path:
    """The wheel of a distribution in a folder of wheels."""
    (found,) = folder.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
    return found


class Environment:
    """A virtual environment, with a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "venv" / BIN
        self.home = folder / "home"
        uv("venv", "--quiet", "--python", sys.executable, folder / "venv")

    def install(self, *wheels: Path | str) -> None:
        uv("pip", "install", "--quiet", "--python", self.bin / "python", *wheels)

    def uninstall(self, name: str) -> None:
        uv("pip", "uninstall", "--quiet", "--python", self.bin / "python", name)

    def run(self, program: str, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; without any key, setting or path of the developer."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("LAMELLA_", "PYTHON", "PYTEST"))}
        env = {**{k: v for k, v in clean.items() if "API_KEY" not in k}, "LAMELLA_HOME": str(self.home)}
        command = [str(self.bin / program), *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", env=env, cwd=cwd or self.bin.parent
        )

    def lamella(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        ran = self.run("lamella", *arguments)
        assert "Traceback" not in ran.stderr, ran.stderr
        return ran

    def json(self, *arguments: str | Path) -> Any:
        """What a command that succeeds prints as JSON."""
        ran = self.lamella(*arguments, "--json")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout)

    def states(self) -> dict[str, str]:
        """Plugins that are not built in, with their states."""
        return {p["name"]: p["state"] for p in self.json("plugins", "list")["plugins"] if not p["builtin"]}
