"""What users and systems do to a command line: one clear line, the right exit code, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli import lamella

OFFLINE = ("--model", "offline")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_a_workspace_that_is_a_file(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.touch()
    asked = lamella("ask", "hello", *OFFLINE, "--workspace", file, home=home)
    assert (asked.code, asked.out) == (2, "")
    assert f"workspace {file} is a file" in asked.err


def test_an_unknown_home_folder(tmp_path: Path) -> None:
    ran = lamella("status", home=Path("~nobody-of-that-name/state"))
    assert ran.code == 2
    assert "~nobody-of-that-name/state: the home folder is not known" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ('[agent]\ntimezone = "Mars/X"', "agent.timezone: unknown time zone 'Mars/X'"),
        ('[plugins.slots]\nmemory = ""', "plugins.slots.memory: expected a name"),
        ('[memory]\nbackend = ""', "memory.backend: expected a name"),
        ("[hooks.timeouts]\ninput = -1", "hooks.timeouts: input: expected more than 0"),
    ],
)
def test_a_wrong_config_names_file_and_key(text: str, said: str, home: Path) -> None:
    home.mkdir()
    file = home / "config.toml"
    file.write_text(text)
    ran = lamella("status", home=home)
    assert ran.code == 2
    assert str(file) in ran.err
    assert said in ran.err


def test_a_config_that_is_no_file_is_not_waited_for(home: Path) -> None:
    home.mkdir()
    os.mkfifo(home / "config.toml")
    ran = lamella("status", home=home)
    assert ran.code == 2
    assert "is not a regular file" in ran.err


def test_a_config_link_that_leads_nowhere_is_not_taken_for_no_config(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").symlink_to(home / "moved.toml")
    ran = lamella("status", home=home)
    assert ran.code == 2
    assert "config.toml: cannot be read" in ran.err


def test_a_huge_workspace_file_is_not_parsed(home: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "lamella.toml").write_text("a" + ".a" * 100_000 + " = 1")
    ran = lamella("status", "--workspace", workspace, home=home)
    assert ran.code == 0
    assert "lamella.toml: has more than" in ran.err


def test_images_that_are_no_files(home: Path, tmp_path: Path) -> None:
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    for name in ("zero.png", "absent.png"):
        ran = lamella("ask", "hello", *OFFLINE, "--image", tmp_path / name, home=home)
        assert ran.code == 2
        assert "no such file" in ran.err
    (tmp_path / "text.png").write_text("not a picture")
    ran = lamella("ask", "hello", *OFFLINE, "--image", tmp_path / "text.png", home=home)
    assert ran.code == 2
    assert "expected a png, jpg, gif or webp image" in ran.err


def test_an_image_does_not_enter_the_offline_models_search(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x89PNG\r\n\x1a\n")  # told by its content, whatever its name
    ran = lamella("ask", "Where is the boiler?", *OFFLINE, "--image", tmp_path / "a", home=home, check=True)
    assert '· memory_search query="Where is the boiler?"' in ran.err


@pytest.mark.parametrize("key", ["agent:main:a\nb", "agent:main:\x1b[31m"])
def test_keys_with_control_characters(key: str, home: Path) -> None:
    ran = lamella("ask", "hello", *OFFLINE, "--key", key, home=home)
    assert ran.code == 2
    assert "expected no control characters" in ran.err


def run(*arguments: str, home: Path, script: str = 'exec "$@"', **environ: str) -> subprocess.CompletedProcess[bytes]:
    """A command with its streams arranged by a shell."""
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "lamella", *arguments]
    return subprocess.run(
        command, capture_output=True, timeout=60, env={**os.environ, "LAMELLA_HOME": str(home), **environ}
    )


def test_a_question_survives_a_locale_without_utf8(home: Path) -> None:
    bare = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert run("ask", "你好，中文", *OFFLINE, home=home, **bare).returncode == 0
    (transcript,) = (home / "agents/main/sessions").glob("*.jsonl")
    assert "你好，中文" in transcript.read_text(encoding="utf-8")


def test_closed_standard_input(home: Path) -> None:
    ran = run("ask", "-", *OFFLINE, home=home, script='exec "$@" <&-')
    assert ran.returncode == 2
    assert b"the question is empty" in ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("status", "--json"), ("--help",)])
def test_output_that_cannot_be_written(arguments: tuple[str, ...], home: Path) -> None:
    ran = run(*arguments, home=home, script='exec "$@" >/dev/full')
    assert ran.returncode != 0
    assert ran.stderr.splitlines()[0] == b"Error: No space left on device"
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize("time", [10**18, -(10**18), 10**30])
def test_times_that_no_calendar_has(time: int, home: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    assert lamella("ask", "hello", *OFFLINE, "--workspace", workspace, home=home).code == 0
    file = home / "agents/main/sessions/sessions.json"
    entries = json.loads(file.read_text())
    entries["agent:main:main"]["updatedAt"] = time
    file.write_text(json.dumps(entries))
    for command in (["sessions", "list"], ["status"]):
        ran = lamella(*command, "--workspace", workspace, home=home)
        assert (ran.code, "agent:main:main" in ran.out) == (0, True), ran.err
