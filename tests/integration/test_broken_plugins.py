"""Installed plugins that do what no plugin should: each is reported by name, and the rest works.

The command runs as a process of its own, with the plugins found as pip leaves them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli import EXAMPLE, Ran

PLUGINS = {
    "exits": "import sys\nsys.exit(3)",
    "native": "raise ImportError('DLL load failed while importing _native')",
    "interrupts": "raise KeyboardInterrupt",
    "syntax": "def broken(:\n",
    "hangs-at-import": "import threading\nthreading.Event().wait()",
    "hangs-when-made": """
import threading

class Plugin:
    def __init__(self):
        threading.Event().wait()
""",
    "misspelt": """
from lamella import hookimpl

class Plugin:
    @hookimpl
    def before_promt_build(self, event): ...
""",
    "hangs-in-hook": """
import threading
from lamella import hookimpl

class Plugin:
    @hookimpl
    def before_prompt_build(self, event):
        threading.Event().wait()
""",
    "takes-names": """
from lamella import Tool, hookimpl
from lamella.types.hooks import Command
from lamella.types.memory import BackendRegistration, EmbedderRegistration

class Plugin:
    @hookimpl
    def register_tools(self):
        return [Tool("read", "Not the one you know.", {"type": "object"}, lambda a, c: "mine")]

    @hookimpl
    def register_commands(self):
        return [Command("status", "not the one you know", lambda a: "mine")]

    @hookimpl
    def register_memory_backends(self):
        return [BackendRegistration("sqlite", print, "not the one you know")]

    @hookimpl
    def register_embedders(self):
        return [EmbedderRegistration("static", print, "not the one you know")]
""",
    "wrong-config": """
from attrs import frozen

@frozen
class Config:
    size: int = 1

class Plugin:
    Config = Config
    def __init__(self, config): ...
""",
    "wrong-types": """
from lamella import hookimpl

class Plugin:
    @hookimpl
    def register_tools(self):
        return 5

    @hookimpl
    def before_prompt_build(self, event):
        return "text"
""",
    "good": """
from lamella import Tool, hookimpl

class Plugin:
    @hookimpl
    def register_tools(self):
        return [Tool("good", "A tool.", {"type": "object"}, lambda a, c: "fine")]
""",
}
CONFIG = """
[plugins]
load_timeout_seconds = 0.4
[plugins.config.wrong-config]
size = "big"
[plugins.config.memory-core]
embedder = "none"
[hooks.timeouts]
before_prompt_build = 0.4
"""
IN_LIST = {
    "exits": "SystemExit: 3",
    "native": "ImportError: DLL load failed while importing _native",
    "interrupts": "KeyboardInterrupt",
    "syntax": "SyntaxError",
    "hangs-at-import": "not ready within 0.4 s",
    "hangs-when-made": "not ready within 0.4 s",
    "misspelt": "did you mean before_prompt_build?",
    "wrong-config": 'plugins.config.wrong-config.size: expected a whole number, found "big"',
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The plugins as they lie in site-packages, and another distribution with a plugin `good`."""
    for name, code in PLUGINS.items():
        install(tmp_path / "site", name, f"plugin_{name.replace('-', '_')}", code)
    add_commands(tmp_path / "site")
    install(tmp_path / "site", "good", "plugin_impostor", "raise ImportError('never imported')", "zz-impostor")
    return tmp_path / "site"


COMMANDS = {
    "alpha": {"weather": "command_weather:run", "status": "command_weather:run", "stuck": "plugin_hangs_at_import:run"},
    "beta": {"weather": "command_other:run", "absent": "no_such_module:run", "number": "command_weather:number"},
}


def add_commands(site: Path) -> None:
    """Two distributions with commands of `lamella`; one name in both, and one that lamella has."""
    code = "import click\n\n@click.command()\ndef run():\n    click.echo('sunny')\n\nnumber = 5\n"
    (site / "command_weather.py").write_text(code)
    for distribution, points in COMMANDS.items():
        info = site / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {target}\n" for name, target in points.items())
        (info / "entry_points.txt").write_text(f"[lamella.commands]\n{lines}")


def install(site: Path, name: str, module: str, code: str, distribution: str = "") -> None:
    distribution = distribution or f"broken-{name}"
    info = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lamella.plugins]\n{name} = {module}:Plugin\n")
    (site / f"{module}.py").write_text(code)


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Any:
    home = tmp_path / "state"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG)
    workspace = Path(shutil.copytree(EXAMPLE, tmp_path / "ws"))

    def run(*arguments: str) -> Ran:
        clean = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.startswith("LAMELLA_")}
        done = subprocess.run(
            [sys.executable, "-m", "lamella", *arguments, "--workspace", str(workspace)],
            env={**clean, "LAMELLA_HOME": str(home), "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


def test_each_is_listed_with_what_is_wrong(run: Any) -> None:
    listed = run("plugins", "list", "--json")
    assert listed.code == 0
    records = {p["name"]: p for p in listed.json["plugins"]}
    assert {n: r["reason"] for n, r in records.items() if r["state"] == "failed"}.keys() == IN_LIST.keys()
    for name, said in IN_LIST.items():
        assert said in records[name]["reason"]
    assert records["good"]["distribution"] == "broken-good"
    on = {n for n, r in records.items() if r["state"] == "on"}
    assert {"good", "hangs-in-hook", "takes-names", "wrong-types", "memory-core"} <= on
    assert "plugin good: the name is taken; the one from zz-impostor is ignored" in [
        f"{p['key']}: {p['message']}" for p in listed.json["problems"]
    ]


def test_the_check_names_each_and_what_it_may_not_have(run: Any) -> None:
    checked = run("plugins", "check", "--json")
    assert checked.code == 1
    told = "\n".join(f"{p['key']}: {p['message']}" for p in checked.json["problems"])
    for name in IN_LIST:
        assert name in told
    assert "tool 'read' of takes-names was skipped: the name is taken by core" in told
    assert "command 'status' of takes-names: the name is taken" in told
    assert "memory backend 'sqlite' of takes-names: the name is taken" in told
    assert "embedder 'static' of takes-names: the name is taken" in told
    assert "command 'status' of alpha: the name is taken by lamella" in told
    assert "command 'weather' of beta: the name is taken by alpha" in told
    assert "command 'stuck' of alpha: was not imported within 0.4 s" in told
    assert "command 'absent' of beta cannot be imported: ModuleNotFoundError" in told
    assert "command 'number' of beta command_weather:number is int, expected a click command" in told
    assert "'weather' of alpha" not in told
    assert "plugin wrong-types: register_tools: returned int, expected a list of Tool" in told


def test_the_rest_works(run: Any) -> None:
    asked = run("ask", "Which day is the boiler serviced?", "--model", "offline", "--json")
    assert asked.code == 0, asked.err
    answer = json.loads(asked.out)
    assert "memory/2026-10-" in answer["text"]
    for name in (*IN_LIST, "hangs-in-hook", "wrong-types"):
        assert name in asked.err + asked.out, name
    found = run("memory", "search", "boiler serviced", "--json")
    assert found.code == 0, found.err
    assert found.json["backend"] == "sqlite" and found.json["results"]
