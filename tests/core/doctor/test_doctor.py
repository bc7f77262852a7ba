"""`lamella doctor`: every kind of harm is found, told with one command, mended with a backup, and gone then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import transcript, write_lines
from inside import lamella

MAIN = Path("agents/main/sessions")


def examined(home: Path, *more: str) -> dict[str, Any]:
    ran = lamella("doctor", "--json", *more, home=home)
    found = dict(ran.json)
    assert ran.code == (0 if found["ok"] else 1)
    return found


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state folder with one turn in it."""
    home = tmp_path_factory.mktemp("well")
    lamella("ask", "Remember that tea is at four.", "--model", "offline", home=home, check=True)
    return home


@pytest.fixture
def home(well: Path, tmp_path: Path) -> Path:
    """A copy of a state folder in which all is well."""
    return Path(shutil.copytree(well, tmp_path / "state"))


def the_transcript(home: Path) -> Path:
    return home / MAIN / str(index_of(home)["agent:main:main"]["sessionFile"])


def index_of(home: Path) -> dict[str, Any]:
    return dict(json.loads((home / MAIN / "sessions.json").read_bytes()))


def change_index(home: Path, **fields: Any) -> None:
    entries = index_of(home)
    entries["agent:main:main"].update(fields)
    (home / MAIN / "sessions.json").write_text(json.dumps(entries))


def test_all_is_well(home: Path) -> None:
    found = examined(home)
    assert found["ok"]
    assert found["findings"] == found["skipped"] == []
    assert lamella("doctor", home=home).out.count(" ok (") == len(found["checks"]) == 10


def test_a_new_machine_is_well(tmp_path: Path) -> None:
    assert examined(tmp_path / "nothing")["ok"]


# --- what can be mended ---------------------------------------------------------------------------------------


def broken_line(home: Path) -> None:
    file = the_transcript(home)
    first, *rest = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + b'{"half": \n' + b"".join(rest) + b'{"torn')


def not_a_transcript(home: Path) -> None:
    (home / MAIN / "prose.jsonl").write_text("once upon a time\n")


def repeated_ids(home: Path) -> None:
    rows = transcript(["one", "two", "three"])
    write_lines(home / MAIN / "s.jsonl", [*rows, {**rows[1], "parentId": "m2"}])


def broken_index(home: Path) -> None:
    file = home / MAIN / "sessions.json"
    file.write_bytes(file.read_bytes()[:-20])


def pointer_outside(home: Path) -> None:
    change_index(home, sessionFile="../../../../etc/passwd")


def bad_key(home: Path) -> None:
    entries = index_of(home)
    (home / MAIN / "sessions.json").write_text(json.dumps({**entries, "nobody": {"sessionId": "x"}}))


def gone_transcript(home: Path) -> None:
    the_transcript(home).unlink()


def left_lock(home: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    lock = {"pid": ended.pid, "createdAt": "2026-05-10T08:00:00.000Z"}
    (home / MAIN / "sessions.json.lock").write_text(json.dumps(lock))


def wrong_setting(home: Path) -> None:
    (home / "config.toml").write_text('# mine\n[compaction]\nreserve_tokens = "many"\n')


def open_to_all(home: Path) -> None:
    (home / MAIN).chmod(0o777)


def index_ahead(home: Path) -> None:
    change_index(home, updatedAt=4_102_444_800_000)


def file_ahead(home: Path) -> None:
    os.utime(the_transcript(home), (4_102_444_800, 4_102_444_800))


HARM: list[tuple[str, Callable[[Path], None]]] = [
    ("transcripts", broken_line),
    ("transcripts", not_a_transcript),
    ("transcripts", repeated_ids),
    ("index", broken_index),
    ("index", pointer_outside),
    ("index", bad_key),
    ("index", gone_transcript),
    ("locks", left_lock),
    ("config", wrong_setting),
    ("permissions", open_to_all),
    ("clocks", index_ahead),
    ("clocks", file_ahead),
]


@pytest.mark.parametrize(("check", "harm"), HARM, ids=[harm.__name__ for _, harm in HARM])
def test_harm_is_found_told_and_mended(home: Path, check: str, harm: Callable[[Path], None]) -> None:
    harm(home)
    found = examined(home)
    assert not found["ok"]
    assert {f["check"] for f in found["findings"]} == {check}
    assert {f["command"] for f in found["findings"]} == {"lamella doctor --fix"}
    assert {f["mended"] for f in found["findings"]} == {None}
    assert "lamella doctor --fix" in lamella("doctor", home=home).out

    mended = examined(home, "--fix")
    assert mended["ok"], mended
    assert len(mended["findings"]) == len(found["findings"])
    assert all(f["mended"] for f in mended["findings"])
    again = examined(home)
    assert again["ok"], again
    assert again["findings"] == []


def test_looking_changes_nothing(home: Path) -> None:
    for _, harm in HARM:
        if harm not in (broken_index, gone_transcript, wrong_setting, pointer_outside):
            harm(home)
    before = {p: p.read_bytes() for p in (home / MAIN).glob("*") if p.is_file()}
    assert len(examined(home)["findings"]) > 5
    assert {p: p.read_bytes() for p in (home / MAIN).glob("*") if p.is_file()} == before


def test_what_is_mended_is_kept_beside_it(home: Path) -> None:
    said = lamella("sessions", "show", "--json", home=home, check=True).json
    broken_line(home)
    file, damaged = the_transcript(home), the_transcript(home).read_bytes()
    examined(home, "--fix")
    (backup,) = (home / MAIN).glob("*.jsonl.bak.*")
    assert backup.read_bytes() == damaged
    assert lamella("sessions", "show", "--json", home=home, check=True).json == said
    assert b"half" not in file.read_bytes()


def test_a_wrong_setting_hides_the_rest_until_it_is_mended(home: Path) -> None:
    wrong_setting(home)
    found = examined(home)
    assert found["checks"] == ["config"]
    assert "transcripts" in found["skipped"]
    assert "not checked" in lamella("doctor", home=home).out
    mended = examined(home, "--fix")
    assert mended["skipped"] == []
    assert (home / "config.toml").read_text() == "# mine\n[compaction]\n"
    (backup,) = home.glob("config.toml.bak.*")
    assert "many" in backup.read_text()


# --- what only people can mend --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "check", "command"),
    [
        ("[agent]\nnane = 'x'\n", "config", "lamella config unset agent.nane"),
        ("[plugins.config.absent]\nx = 1\n", "config", "lamella config unset plugins.config.absent"),
        ("[plugins.slots]\nmemory = 'memory-absent'\n", "plugins", "pip install lamella-memory-absent"),
        ("[agent]\nworkspace = '/nowhere/notes'\n", "workspace", "lamella init /nowhere/notes"),
        ("[memory]\nbackend = 'bm25'\n", "memory", "pip install lamella-bm25-backend"),
        ("[plugins.config.memory-core]\nembedder = 'openai'\n", "memory", "export OPENAI_API_KEY=..."),
    ],
)
def test_each_problem_names_its_command(home: Path, settings: str, check: str, command: str) -> None:
    (home / "config.toml").write_text(settings)
    (found,) = [f for f in examined(home, "--fix")["findings"] if f["check"] == check]
    assert found["command"] == command
    assert found["mended"] is None


def test_settings_of_a_workspace_and_of_another_file(home: Path, tmp_path: Path) -> None:
    (home / "workspace" / "lamella.toml").write_text("[tools]\nexec = true\n")
    (found,) = examined(home)["findings"]
    assert ("lamella.toml" in found["where"], found["command"]) == (True, "")
    (home / "workspace" / "lamella.toml").unlink()
    (tmp_path / "mine.toml").write_text("[agent]\nnane = 'x'\n")
    (found,) = examined(home, "--config", str(tmp_path / "mine.toml"))["findings"]
    assert found["command"] == f"lamella config unset agent.nane --config {tmp_path / 'mine.toml'}"


def test_a_config_file_that_is_no_toml_stays_as_it_is(home: Path) -> None:
    (home / "config.toml").write_text("[agent\n")
    (found,) = examined(home, "--fix")["findings"]
    assert "not valid TOML" in found["message"]
    assert (home / "config.toml").read_text() == "[agent\n"


def test_memory_that_cannot_answer(home: Path) -> None:
    database = home / "agents/main/memory.sqlite"
    database.unlink(missing_ok=True)
    database.mkdir()
    (found,) = examined(home)["findings"]
    assert (found["check"], found["level"]) == ("memory", "warning")
    assert found["command"]


def test_a_session_that_is_running_is_left_alone(home: Path) -> None:
    broken_line(home)
    lock = {"pid": os.getppid(), "createdAt": "2999-05-10T08:00:00.000Z"}
    the_transcript(home).with_name(f"{the_transcript(home).name}.lock").write_text(json.dumps(lock))
    assert examined(home, "--fix")["ok"]
    assert not list((home / MAIN).glob("*.bak.*"))


def test_a_pipe_among_the_transcripts_does_not_hold_it_up(home: Path) -> None:
    os.mkfifo(home / MAIN / "pipe.jsonl")
    (found,) = examined(home, "--fix")["findings"]
    assert found["message"] == "is not a regular file"
    assert examined(home)["ok"]


def test_a_check_that_cannot_be_made_is_a_finding(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (home / "config.toml").write_text(f"[agent]\nworkspace = '{tmp_path / 'file'}'\n")
    found = examined(home)
    assert [(f["check"], "is a file" in f["message"]) for f in found["findings"]] == [("config", True)]
    assert found["skipped"]


def test_what_is_unusual_about_compactions_is_told_and_nothing_is_wrong(home: Path) -> None:
    sizes = {"before": 10_000, "fixed": 2_000, "summary": 500, "limit": 12_000}
    note = {"at": 1, "cause": "threshold", "flush": "done", "by": "rules", **sizes}
    change_index(home, compactions=[{**note, "turn": 5, "after": 5_000}, {**note, "turn": 9, "after": 9_500}])
    found = examined(home)
    assert found["ok"]
    assert [(f["check"], f["level"], f["where"]) for f in found["findings"]] == [
        ("compactions", "note", "agent:main:main")
    ]
    assert "freed 5%" in found["findings"][0]["message"]
    assert examined(home, "--fix")["findings"] == found["findings"]


def test_other_agents_have_folders_of_their_own(home: Path) -> None:
    broken_line(home)
    assert examined(home, "--agent", "other")["ok"]
