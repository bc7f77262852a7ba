"""`lamella import pi`: sessions that the real Pi wrote are opened, continued, and taken over again."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from inside import lamella
from other_programs import PI_SESSIONS, pi, say, snapshot, write

from lamella.sessions.transcript import SessionFile

STORE = Path("agents/main/sessions")


def moved(home: Path, folder: Path, *more: str) -> dict[str, Any]:
    return dict(lamella("import", "pi", folder, "--json", *more, home=home, check=True).json)


def sources(folder: Path) -> dict[str, Path]:
    """Transcripts by their session id."""
    return {SessionFile.open(file).id: file for file in folder.rglob("*.jsonl")}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return pi(tmp_path)


def test_every_session_arrives_byte_for_byte(home: Path, folder: Path) -> None:
    before = snapshot(folder)
    moved(home, folder)
    assert snapshot(folder) == before
    found = sources(folder)
    assert found
    listed = {row["key"]: row for row in lamella("sessions", "list", "--json", home=home, check=True).json}
    assert listed.keys() == {f"agent:main:pi-{session_id}" for session_id in found}
    for session_id, file in found.items():
        assert (home / STORE / f"{session_id}.jsonl").read_bytes() == file.read_bytes()
    assert moved(home, folder)["changes"] == 0


def test_settings(home: Path, folder: Path) -> None:
    settings = {"defaultThinkingLevel": "high", "compaction": {"reserveTokens": 9000}, "theme": "dark"}
    write(folder / "settings.json", json.dumps({**settings, "defaultProvider": "mystery", "defaultModel": "m"}))
    report = moved(home, folder)
    config = tomllib.loads((home / "config.toml").read_text())
    assert config == {"agent": {"thinking": "high"}, "compaction": {"reserve_tokens": 9000}}
    left = {i["source"] for i in report["items"] if i["kind"] == "setting" and i["action"] == "left_out"}
    assert left == {"theme", "defaultProvider", "defaultModel"}


def test_a_session_goes_on_on_both_sides(home: Path, folder: Path) -> None:
    moved(home, folder)
    (here, source), (grown, other) = sorted(sources(folder).items())[:2]
    lamella("ask", "Go on.", "--key", f"agent:main:pi-{here}", "--model", "offline", home=home, check=True)
    say(other, "later", parent=str(SessionFile.open(other).leaf_id))
    report = moved(home, folder)
    actions = {i["source"]: i["action"] for i in report["items"] if i["kind"] == "transcript"}
    assert (actions[str(source)], actions[str(other)]) == ("kept", "grow")
    assert (home / STORE / f"{grown}.jsonl").read_bytes() == other.read_bytes()
    assert (home / STORE / f"{here}.jsonl").read_bytes().startswith(source.read_bytes())


def test_ids_that_are_there_twice_and_files_that_are_none(home: Path, folder: Path) -> None:
    session_id, file = next(iter(sources(folder).items()))
    shutil.copy(file, file.with_name("zz_copy.jsonl"))
    write(file.with_name("prose.jsonl"), "once upon a time\n")
    write(file.with_name("empty.jsonl"), "")
    report = moved(home, folder)
    left = {Path(i["source"]).name for i in report["items"] if i["kind"] == "transcript" and i["action"] == "left_out"}
    assert left == {"prose.jsonl", "empty.jsonl"}
    assert (home / STORE / "zz_copy.jsonl").read_bytes() == (home / STORE / f"{session_id}.jsonl").read_bytes()
    assert moved(home, folder)["changes"] == 0


def test_in_place_turns_append_to_the_files_of_pi(home: Path, folder: Path) -> None:
    project = folder / "sessions" / "--home-me-project0--"
    ran = lamella("import", "pi", project, "--in-place", home=home, check=True)
    assert "Turns append" in ran.err
    session_id, file = next(iter(sources(project).items()))
    before = file.read_bytes()
    lamella("ask", "Go on.", "--key", f"agent:main:pi-{session_id}", "--model", "offline", home=home, check=True)
    assert file.read_bytes().startswith(before)
    assert b"Go on." in file.read_bytes()
    assert moved(home, project, "--in-place")["changes"] == 0


def test_in_place_needs_the_folder_of_one_project(home: Path, folder: Path) -> None:
    ran = lamella("import", "pi", folder, "--in-place", home=home)
    assert (ran.code, "2 projects" in ran.err) == (2, True)
    assert not home.exists()


def test_other_folders_are_refused(home: Path, tmp_path: Path) -> None:
    ran = lamella("import", "pi", tmp_path, home=home)
    assert (ran.code, "no folder of Pi" in ran.err) == (2, True)


@pytest.mark.parametrize("file", sorted(PI_SESSIONS.glob("*.jsonl")), ids=lambda p: p.stem)
def test_every_recorded_session_keeps_its_context(file: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    shutil.copy(file, tmp_path / "one")
    moved(home, tmp_path / "one")
    (here,) = (home / STORE).glob("*.jsonl")
    assert SessionFile.open(here).context() == SessionFile.open(file).context()
