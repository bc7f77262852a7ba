"""`lamella plugins new`: names, files, and that what it writes is clean. Installed: tests/integration."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from inside import lamella

from lamella.errors import UsageError
from lamella.scaffold import KINDS
from lamella.scaffold.names import names_of
from lamella.scaffold.project import render_project

LONGEST = "twenty-four-letters-long"
ROOT = Path(__file__).parents[3]


def test_a_backend_is_named_so_that_it_can_be_found() -> None:
    names = names_of("plain-text", "backend", ())
    assert names.plugin == "plain-text-backend"
    assert names.distribution == "lamella-plain-text-backend"
    assert names.package == "lamella_plain_text_backend"
    assert (names.class_name, names.word) == ("PlainText", "plain_text")
    assert names_of("plain-text", "tool", ()).distribution == "lamella-plain-text"


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("", "tool", "expected small letters"),
        ("Weather", "tool", "expected small letters"),
        ("my_tool", "tool", "expected small letters"),
        ("9lives", "tool", "expected small letters"),
        ("a--b", "tool", "expected small letters"),
        ("-a", "tool", "expected small letters"),
        ("wetter-für-alle", "tool", "expected small letters"),
        ("天气", "tool", "expected small letters"),
        ("../x", "tool", "expected small letters"),
        ("x\n", "tool", "expected small letters"),
        (LONGEST + "t", "tool", "it has 25 characters, at most 24"),
        ("lamella-weather", "tool", "try 'weather'"),
        ("plain-backend", "backend", "try 'plain'"),
        ("class", "tool", "a meaning of its own"),
        ("memory", "backend", "a meaning of its own"),
        ("none", "backend", "a meaning of its own"),
        ("sqlite", "backend", "comes with memory-core"),
        ("tester", "tool", "pytest would take"),
        ("read", "tool", "lamella has a tool of this name"),
        ("exec", "tool", "lamella has a tool of this name"),
        ("session-recall", "tool", "lamella has a tool of this name"),
        ("openai", "model", "lamella has a model provider of this name"),
        ("offline", "model", "lamella has a model provider of this name"),
        ("memory-core", "tool", "there is one of this name"),
        ("workspace-files", "hook", "there is one of this name"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_with_the_reason(name: str, kind: str, reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        names_of(name, kind)
    assert repr(name) in str(refused.value)
    assert reason in str(refused.value)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "here"
    target.mkdir()
    assert lamella("plugins", "new", "weather", "--kind", "tool", "--dir", target, home=tmp_path, check=True).out
    before = {p: p.stat().st_mtime_ns for p in target.rglob("*")}
    again = lamella("plugins", "new", "weather", "--kind", "hook", "--dir", target, home=tmp_path)
    assert (again.code, again.out) == (2, "")
    assert f"{target} is not empty" in again.err and "--dir" in again.err
    assert {p: p.stat().st_mtime_ns for p in target.rglob("*")} == before
    (tmp_path / "file").write_text("mine")
    code = lamella("plugins", "new", "weather", "--kind", "tool", "--dir", tmp_path / "file", home=tmp_path).code
    assert (code, (tmp_path / "file").read_text()) == (2, "mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert lamella("plugins", "new", "weather", "--kind", "tool", "--dir", tmp_path / "link", home=tmp_path).code == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_project_is_whole_and_leaves_the_licence_to_its_author(kind: str) -> None:
    rendered = render_project(kind, names_of("weather", kind, ()))
    text = "\n".join(rendered.values())
    assert "@" not in text.replace("@hookimpl", "").replace("@frozen", "").replace("@pytest.mark", "")
    project = tomllib.loads(rendered["pyproject.toml"])["project"]
    assert "license" not in project
    assert any(need.startswith("lamella>=") for need in project["dependencies"])
    (plugin, target), *none = project["entry-points"]["lamella.plugins"].items()
    package = target.partition(":")[0]
    assert not none and plugin == names_of("weather", kind, ()).plugin
    assert {"README.md", ".gitignore", f"src/{package}/__init__.py", f"src/{package}/py.typed"} <= rendered.keys()


def test_the_next_step_can_be_pasted(tmp_path: Path) -> None:
    target = tmp_path / "my new plugin"
    written = lamella("plugins", "new", "weather", "--kind", "tool", "--dir", target, home=tmp_path, check=True)
    assert written.err.startswith(f"Next: cd '{target}'; ")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["any", "host", "tool", "model", "prompt-addition", "iterable", "i"])
def test_a_project_keeps_the_names_that_it_imports(name: str, kind: str) -> None:
    for path, text in render_project(kind, names_of(name, kind, ())).items():
        if path.endswith(".py"):
            module = ast.parse(text)
            imported = [a.asname or a.name for n in ast.walk(module) if isinstance(n, ast.ImportFrom) for a in n.names]
            made = [n.name for n in ast.walk(module) if isinstance(n, ast.ClassDef | ast.FunctionDef)]
            assert len(set(imported + made)) == len(imported) + len(made), f"{path}: {sorted(imported + made)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["i", LONGEST])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_clean(kind: str, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    lamella("plugins", "new", name, "--kind", kind, "--dir", folder, home=tmp_path, check=True)
    environ = {**os.environ, "MYPYPATH": "src", "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache" / "scaffold")}
    for command in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        done = subprocess.run([sys.executable, "-m", *command], cwd=folder, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
