"""What the documentation shows runs: Python blocks, the tutorial's commands, the examples."""

from __future__ import annotations

import doctest
import json
import runpy
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from cli import EXAMPLE
from inside import lamella
from pages import ROOT, Code, blocks, page, pages, sections, steps

from lamella.config.load import load_config
from lamella.paths import Paths

PYTHON = [b for p in pages() for b in blocks(p) if b.language == "python"]
TOY = ROOT / "examples" / "plugins" / "lamella-toy"
LIBRARY = sorted((ROOT / "examples" / "library").glob("*.py"))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an empty workspace `notes` and the repository's examples; no key in the environment."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "LAMELLA_MODEL", "LAMELLA_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAMELLA_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "notes").mkdir()
    (tmp_path / "workspace").symlink_to(EXAMPLE)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def test_there_is_something_to_run() -> None:
    assert len(PYTHON) > 8
    assert {f.name for f in LIBRARY} >= {"ten_lines.py", "watch_events.py", "memory.py"}


@pytest.mark.parametrize("block", PYTHON, ids=lambda b: b.place)
def test_python_in_the_docs_runs(block: Code, scratch: Path) -> None:
    exec(compile(block.text, block.place, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("path", LIBRARY, ids=lambda p: p.name)
def test_examples_run(path: Path, scratch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    expected = {
        "ten_lines.py": "High water is at 14:20. Thank you!",
        "watch_events.py": "The folder is empty.",
        "memory.py": "The staging server is called bluebird.",
    }
    assert expected[path.name] in capsys.readouterr().out


def test_toml_in_the_docs_is_a_valid_configuration(tmp_path: Path) -> None:
    for block in (b for p in ROOT.glob("docs/**/*.md") for b in blocks(p) if b.language == "toml"):
        if tomllib.loads(block.text).keys() & {"build-system", "project"}:  # a pyproject.toml
            continue
        file = tmp_path / "config.toml"
        file.write_text(block.text, encoding="utf-8")
        assert not load_config(Paths(tmp_path), file=file, environ={}, strict=True).problems, block.place


def test_the_toy_in_the_docs_is_the_toy_in_the_examples() -> None:
    shown = [b.text for b in blocks(ROOT / "docs" / "how-to" / "write-a-plugin.md")]
    assert (TOY / "pyproject.toml").read_text(encoding="utf-8") in shown
    assert (TOY / "src/lamella_toy/__init__.py").read_text(encoding="utf-8") in shown


# --- the tutorial ------------------------------------------------------------------------------------------


def test_the_tutorial_says_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checker = doctest.OutputChecker()
    installed = "memory-core,embedders"  # by the page
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    consoles = [b for b in blocks(ROOT / "docs" / "tutorial.md") if b.language == "console"]
    assert len(consoles) > 6
    for block in consoles:
        for command, expected in steps(block):
            program, *arguments = shlex.split(command)
            assert program == "lamella", block.place
            ran = lamella(*arguments, home=tmp_path / "state", check=True, LAMELLA_PLUGINS=installed)
            assert checker.check_output(expected, ran.out, flags), f"{block.place}: {command}\n{ran.out}"


def test_the_prepared_replies_in_the_docs_can_be_played(tmp_path: Path) -> None:
    (block,) = (b for b in blocks(ROOT / "docs/how-to/use-a-provider.md") if b.language == "json")
    script = tmp_path / "script.json"
    script.write_text(block.text, encoding="utf-8")
    ran = lamella("ask", "x", "--model", f"scripted/{script}", home=tmp_path / "state", check=True)
    assert ran.out.strip() == json.loads(block.text)[0]


# --- files of a session --------------------------------------------------------------------------------------


def test_fields_of_session_files_are_documented(tmp_path: Path) -> None:
    """What a turn and a memory write leave on disk is in the reference, field by field."""
    workspace = tmp_path / "notes"
    workspace.mkdir()
    home = tmp_path / "state"
    lamella(
        "ask", "Remember that tea is at four.", "--workspace", workspace, "--model", "offline", home=home, check=True
    )
    agent = home / "agents" / "main"
    (transcript,) = (agent / "sessions").glob("*.jsonl")
    index = json.loads((agent / "sessions" / "sessions.json").read_text(encoding="utf-8"))
    parts = sections(page("session-files.md"))
    header, *entries = [json.loads(line) for line in transcript.read_text(encoding="utf-8").splitlines()]
    assert not [name for name in header if f'"{name}"' not in parts["Header"] and f"`{name}`" not in parts["Header"]]
    assert not [name for e in entries for name in e if f"`{name}`" not in parts["Transcripts"]]
    messages = [e["message"] for e in entries if e["type"] == "message"]
    assert {m["role"] for m in messages} == {"user", "assistant", "toolResult"}
    assert not [name for m in messages for name in m if name != "role" and f"`{name}`" not in parts["Messages"]]
    fields: dict[str, Any] = index["agent:main:main"]
    assert not [name for name in fields if f"`{name}`" not in parts["sessions.json"]]
    journal = json.loads((agent / "memory-journal.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert not [name for name in journal if f"`{name}`" not in parts["memory-journal.jsonl"]]
