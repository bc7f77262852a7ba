"""Holds: `lamella memory watch` follows files until a signal and ends cleanly; bars are for terminals only;
`index` and `status` say what is missing, out of date and off."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli import lamella
from inside import lamella as inside
from notes import make_workspace

from lamella.cli.memory_text import status_text
from lamella.cli.memory_watch import event_text
from lamella.types.memory import SyncReport, WatchEvent

pty = pytest.importorskip("pty")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path, {"MEMORY.md": "- okapi\n", "memory/a.md": "zebra\n"})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    config = '[plugins.config.memory-core]\nembedder = "none"\nwatch_debounce_ms = 50\n'
    (folder / "config.toml").write_text(config)
    return folder


@contextlib.contextmanager
def watching(workspace: Path, home: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "lamella", "memory", "watch", "--workspace", str(workspace), *options]
    environ = {**os.environ, "LAMELLA_HOME": str(home)}
    process = subprocess.Popen(
        command, env=environ, text=True, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_tells_each_sync_and_ends_at_a_signal(workspace: Path, home: Path, number: signal.Signals) -> None:
    with watching(workspace, home, "--json") as process:
        first = json.loads(line(process))
        assert (first["reason"], first["report"]["added"], first["error"]) == ("start", 2, "")
        (workspace / "memory/b.md").write_text("gnu\n")
        second = json.loads(line(process))
        assert (second["reason"], second["report"]["added"]) == ("change", 1)
        process.send_signal(number)
        assert (process.wait(20), process.stderr.read() if process.stderr else "") == (0, "")


def test_watch_speaks_to_people_in_one_line_a_sync(workspace: Path, home: Path) -> None:
    with watching(workspace, home) as process:
        assert "start: " in (said := line(process)) and "2 files, 2 indexed" in said
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_workspace_that_vanishes_is_said_in_one_line(workspace: Path, home: Path) -> None:
    with watching(workspace, home) as process:
        line(process)
        shutil.rmtree(workspace)
        assert line(process).endswith(f"failed: workspace {workspace} does not exist\n")
        process.send_signal(signal.SIGTERM)
        assert (process.wait(20), process.stderr.read() if process.stderr else "") == (0, "")


def test_watch_needs_a_workspace(tmp_path: Path, home: Path) -> None:
    ran = lamella("memory", "watch", "--workspace", tmp_path / "none", home=home)
    assert (ran.code, ran.out) == (2, "") and "does not exist" in ran.err


def test_a_failed_sync_is_one_line_too() -> None:
    assert event_text(WatchEvent("change", 0, error="disk full"), "UTC") == "1970-01-01 00:00 change: failed: disk full"
    assert "nothing to index" in event_text(WatchEvent("start", 0, SyncReport("ws", 0)), "UTC")


# --- bars ---------------------------------------------------------------------------------------------------


def stderr_at_a_terminal(home: Path, *arguments: str) -> str:
    """Run a command whose stderr is a terminal; what it wrote there."""
    control, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "lamella", *arguments],
        env={**os.environ, "LAMELLA_HOME": str(home), "TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    )
    os.close(terminal)
    written = b""
    with contextlib.suppress(OSError):  # the terminal is gone with the process
        while some := os.read(control, 4096):
            written += some
    os.close(control)
    assert process.wait(60) == 0
    return written.decode()


def test_a_bar_is_drawn_at_a_terminal_and_nowhere_else(workspace: Path, home: Path) -> None:
    index = ("memory", "index", "--force", "--workspace", str(workspace))
    assert "files" in stderr_at_a_terminal(home, *index)
    assert stderr_at_a_terminal(home, *index, "--json") == ""
    assert lamella(*index, home=home, check=True).err == ""


def test_eval_draws_a_bar_too(tmp_path: Path, home: Path) -> None:
    queries = [{"query": "okapi", "type": "t", "gold": [[["MEMORY.md", 1, 1]]]}]
    judged = {
        "workspaces": [{"id": "w1", "now": "2026-05-10", "files": {"MEMORY.md": "- okapi\n"}, "queries": queries}]
    }
    (tmp_path / "judged.json").write_text(json.dumps(judged))
    command = ("memory", "eval", str(tmp_path / "judged.json"))
    assert "questions" in stderr_at_a_terminal(home, *command)
    assert json.loads(lamella(*command, "--json", home=home, check=True).out)["overall"]["n"] == 1


# --- what is missing ----------------------------------------------------------------------------------------


def test_index_says_why_there_are_no_vectors(workspace: Path, home: Path) -> None:
    (home / "config.toml").write_text('[plugins.config.memory-core]\nembedder = "nonsuch"\n')
    ran = lamella("memory", "index", "--workspace", workspace, home=home, check=True)
    assert "2 files, 2 indexed" in ran.out
    assert "note: embedder 'nonsuch' is not installed" in ran.err


def test_an_embedder_that_fails_is_a_note_and_no_more(workspace: Path, home: Path) -> None:
    (home / "config.toml").write_text(
        '[plugins.config.memory-core]\nembedder = "openai"\n'
        '[plugins.config.embedders.openai]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
    )
    search = ("memory", "search", "okapi", "--workspace", workspace)
    quiet = lamella(*search, home=home, check=True)
    assert "MEMORY.md#L1" in quiet.out and "only words were compared" in quiet.out
    assert quiet.err == ""
    log = home / "logs" / "lamella.log"
    assert not log.exists()
    inside(*search, "-v", home=home, check=True)
    assert "WARNING lamella.memory.meaning: embedder openai" in log.read_text()


def test_status_says_what_is_out_of_date_and_what_is_off(workspace: Path, home: Path) -> None:
    status = ("memory", "status", "--workspace", workspace)
    assert "last sync: never" in lamella(*status, home=home, check=True).out
    lamella("memory", "index", "--workspace", workspace, home=home, check=True)
    (workspace / "memory/b.md").write_text("gnu\n")
    said = lamella(*status, home=home, check=True).out
    assert "behind: 1 file has changed since the last sync" in said
    assert 'problem: search by meaning is off: embedder is none; "static" turns it on' in said
    assert "off: recall before a turn; to turn it on: plugins.config.memory-core.auto_recall = true" in said
    assert "following files: begins with a program's second search" in said
    facts = lamella(*status, "--json", home=home, check=True).json
    assert (facts["behind"], facts["model"], facts["lastError"], facts["lastSync"] > 0) == (1, None, None, True)


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"backend": "other"}, "backend: other"),
        ({"backend": "sqlite", "mode": "hybrid"}, "backend: sqlite (hybrid search)"),
        ({"lastError": "disk full"}, "last error: disk full"),
        ({"behind": 0}, "behind: no file has changed since the last sync"),
        ({"watch": {"wanted": False, "active": False, "problem": None}}, "following files: off"),
        ({"watch": {"wanted": True, "active": True, "problem": None}}, "following files: active"),
        (
            {"watch": {"wanted": True, "active": False, "problem": "no watches left"}},
            "following files: no watches left",
        ),
        (
            {"vectors": [{"identity": "a", "count": 3}, {"identity": "b", "count": 4}]},
            "vectors: 3 by a, 4 by b",
        ),
        ({"custom": 7, "nothing": None}, "custom: 7"),
    ],
)
def test_status_of_any_memory_can_be_shown(facts: dict[str, Any], line: str) -> None:
    assert status_text(facts, "UTC") == line


def test_where_nothing_can_be_written_that_is_said(workspace: Path, home: Path) -> None:
    """As on a full disk: no file may grow, also not in the folder for temporary ones."""
    script = (
        "import resource, sys\nfrom lamella.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nsys.exit(main(sys.argv[1:]))\n"
    )
    env = {**os.environ, "LAMELLA_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    for command in (("search", "okapi"), ("index",)):
        line = [sys.executable, "-c", script, "memory", *command, "--workspace", str(workspace)]
        done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=60)
        said = done.stdout + done.stderr
        assert done.returncode == 3, said
        assert "memory.sqlite cannot be used: " in said
        assert "unexpected" not in said
