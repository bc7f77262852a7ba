"""What holds a user's words or keys can be read by that user alone."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from cli import lamella

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions of Windows are not those of POSIX")


@pytest.fixture(autouse=True)
def open_umask() -> None:
    """The usual mask lets everyone read new files; processes inherit it."""
    os.umask(0o022)


def modes(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*") if p.is_file()}


def test_sessions_and_configuration_are_for_their_owner(tmp_path: Path) -> None:
    home, workspace = tmp_path / "home", tmp_path / "ws"
    common = ("--workspace", workspace)
    lamella("init", workspace, home=home, check=True)
    lamella("ask", "Remember that the gate code is 4711.", "--model", "offline", *common, home=home, check=True)
    lamella("config", "set", "models.providers.openai.api_key", "k", home=home, check=True)
    index = home / "agents" / "main" / "sessions" / "sessions.json"
    index.write_text("{broken", encoding="utf-8")
    lamella("ask", "What is the gate code?", "--model", "offline", *common, home=home, check=True)

    found = modes(home)
    private = {name: mode for name, mode in found.items() if "sessions/" in name or name.startswith("config")}
    assert any(name.endswith(".jsonl") for name in private)
    assert any(".corrupt." in name for name in private)
    assert "config.toml" in private
    readable = {name: oct(mode) for name, mode in private.items() if mode & 0o077 and "/.locks/" not in name}
    assert not readable  # locks are empty files


def test_permissions_that_a_user_gave_are_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[agent]\ntimezone = "UTC"\n')
    (home / "config.toml").chmod(0o640)
    lamella("config", "set", "agent.timezone", "Europe/Prague", home=home, check=True)
    assert modes(home)["config.toml"] == 0o640
