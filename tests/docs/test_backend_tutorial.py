"""The tutorial of a backend, step by step: its files, the tests that fail and then pass, its commands."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pages import ROOT, Code, blocks, steps

PAGE = blocks(ROOT / "docs" / "tutorial-backend.md")
FILES = [b for b in PAGE if b.info]
BACKEND = "src/lamella_notes_backend/backend.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """All files of the page in their first form, and what pip leaves when they are installed in place."""
    for block in reversed([b for b in FILES if b.language != "text"]):
        write(tmp_path, block)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    info = tmp_path / "src" / "notes-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    points = project["entry-points"]["lamella.plugins"].items()
    (info / "entry_points.txt").write_text("[lamella.plugins]\n" + "".join(f"{n} = {p}\n" for n, p in points))
    return tmp_path


def write(folder: Path, block: Code) -> None:
    path = folder / block.info
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")


def environ(project: Path) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LAMELLA_", "PYTEST")) and "API_KEY" not in k}
    return {**clean, "LAMELLA_HOME": str(project / "state"), "PYTHONPATH": str(project / "src")}


def failures(project: Path) -> list[str]:
    """The tests that fail, without their class."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "tests"]
    done = subprocess.run(command, cwd=project, env=environ(project), capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert re.search(r"\d+ passed", done.stdout), done.stdout
    return re.findall(r"^FAILED \S+::(\S+)", done.stdout, re.MULTILINE)


def test_the_first_form_fails_where_the_page_says_so_and_the_second_passes(project: Path) -> None:
    (listed,) = (b for b in FILES if b.language == "text")
    assert sorted(failures(project)) == sorted(listed.text.split())
    write(project, [b for b in FILES if b.info == BACKEND][-1])
    assert failures(project) == []


def test_the_commands_of_the_page(project: Path) -> None:
    write(project, [b for b in FILES if b.info == BACKEND][-1])
    checker = doctest.OutputChecker()
    (console,) = (b for b in PAGE if b.language == "console")
    for command, expected in steps(console):
        done = subprocess.run(
            command.replace("lamella", f"{sys.executable} -m lamella", 1),
            shell=True,
            cwd=project,
            env=environ(project),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        shown = done.stdout or done.stderr
        assert checker.check_output(expected, shown, doctest.ELLIPSIS), f"{command}\n{shown}"
