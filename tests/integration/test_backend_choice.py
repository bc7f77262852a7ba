"""Holds, through the commands: whoever the backend is and however it breaks, sqlite answers, it is said, and later
processes do not pay for it again; with the slot `none` everything else works, and memory says that it is off."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from backends import FAILS, HANGS, NOT_OPENED, OK, RAISES, REASON
from builders import CASES
from cli import Ran, lamella
from inside import lamella as inside

SUPPORT = Path(__file__).parents[1] / "support"
OFFLINE = ("--model", "offline")
PLUGIN = """
import os
from pathlib import Path
from backends import Mood, ProbedBackend, Shaky, ShakyBackend

class Installed(Shaky):
    def __init__(self):
        kind = ProbedBackend if os.environ.get("SHAKY_PROBE") else ShakyBackend
        super().__init__(Mood(path=Path(os.environ["SHAKY_MOOD"])), kind)
"""


class Machine:
    """A machine with the plugin of a backend that a test breaks, installed as a distribution is."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = folder / "state"
        self.mood_file = folder / "mood"
        self.workspace = Path(shutil.copytree(CASES / "K111/ws", folder / "ws"))
        info = folder / "site/shaky-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shaky\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[lamella.plugins]\nshaky-backend = shaky_plugin:Installed\n")
        (folder / "site/shaky_plugin.py").write_text(PLUGIN)
        monkeypatch.syspath_prepend(str(folder / "site"))
        path = os.pathsep.join([str(folder / "site"), str(SUPPORT), os.environ.get("PYTHONPATH", "")])
        self.environ = {"PYTHONPATH": path, "SHAKY_MOOD": str(self.mood_file)}
        self.apart = False
        self.configure()

    def configure(self, backend: str = "shaky", slot: str = "memory-core", **settings: Any) -> None:
        self.home.mkdir(exist_ok=True)
        values = {"embedder": "none", "backend_timeout_seconds": 1.0, **settings}
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())
        (self.home / "config.toml").write_text(
            f'[memory]\nbackend = "{backend}"\n[plugins.slots]\nmemory = "{slot}"\n'
            f"[plugins.config.memory-core]\n{lines}\n"
        )

    def run(self, *arguments: str, mood: str = "", check: bool = True, **environ: str) -> Ran:
        """Run a command: in a process of its own if `apart` is set."""
        if mood:
            self.mood_file.write_text(mood)
        at = ("--workspace", str(self.workspace))
        command = lamella if self.apart else inside
        return command(*arguments, *at, home=self.home, check=check, **self.environ, **environ)

    def search(self, mood: str = "") -> tuple[Any, Any]:
        """Who answered, and why not the first; the hit is always the same."""
        found = self.run("memory", "search", "anemometer", "--json", mood=mood).json
        assert [hit["path"] for hit in found["results"]] == ["MEMORY.md"]
        return found["backend"], found["degraded"]

    def calls(self) -> list[str]:
        file = self.mood_file.with_suffix(".calls")
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


MODES = {"absent": NOT_OPENED, "exit1": FAILS, "hang": HANGS}


@pytest.mark.parametrize("mode", [case["mode"] for case in json.loads((CASES / "K111/modes.json").read_text())])
def test_case_k111(machine: Machine, mode: str) -> None:
    machine.apart = mode == "hang"  # the process must end by itself all the same
    if mode == "ok_after":
        machine.configure(backend_retry_seconds=0.1)
        for _ in range(2):
            backend, why = machine.search(FAILS)
            assert backend == "sqlite"
            time.sleep(max(why["retry_at"] - time.time(), 0))
        assert machine.search(OK) == ("shaky", None)
        return
    backend, why = machine.search(MODES[mode])
    assert (backend, why["answered_by"]) == ("sqlite", "sqlite")
    assert why["reason"] == ("shaky: it did not answer within 1 s" if mode == "hang" else REASON)
    status = machine.run("memory", "status", "--json").json
    assert (status["backend"], status["active"]) == ("shaky", "sqlite")
    said = machine.run("memory", "status").out
    assert said.startswith("backend: shaky, answered by sqlite (keyword search)\nfallback: ")
    assert f"fallback: {why['reason']}, since 20" in said
    assert ", asked again at 20" in said


def test_later_processes_do_not_ask_again(machine: Machine) -> None:
    machine.apart = True
    machine.search(FAILS)
    machine.mood_file.write_text(HANGS)
    asked = machine.calls()
    for command in ("memory search anemometer", "ask anemometer --model offline"):
        machine.run(*command.split(), check=False)
    assert machine.calls() == asked


def test_every_door_says_who_answers(machine: Machine) -> None:
    assert machine.search(OK) == ("shaky", None)
    machine.run("ask", "hello", *OFFLINE)
    whole = {"slot": "memory-core", "backend": "shaky", "answers": "shaky", "fallback": None}
    assert machine.run("status", "--json").json[0]["memory"] == whole
    assert machine.run("plugins", "check").code == machine.run("doctor").code == 0
    machine.run("memory", "search", "anemometer", mood=RAISES)
    said = machine.run("memory", "search", "anemometer").out
    assert f"note: ValueError: {REASON} second line 第二行; answered by sqlite, since 20" in said
    memory = machine.run("status", "--json").json[0]["memory"]
    assert (memory["answers"], memory["fallback"]["from"]) == ("sqlite", "shaky")
    assert memory["fallback"]["retryAt"] > memory["fallback"]["since"]
    assert "backend shaky, answers sqlite, fallback ValueError" in machine.run("status", "agent:main:main").out
    checked = machine.run("plugins", "check", "--json", check=False)
    assert (checked.code, checked.json["ok"]) == (1, False)
    assert REASON in checked.json["problems"][0]["message"]
    examined = machine.run("doctor", "--json", check=False)
    assert examined.code == 1
    assert REASON in examined.out
    index = machine.run("memory", "index", "--json", check=False)
    assert (index.code, index.json["seen"]) == (1, 1)
    assert REASON in index.json["problem"]
    assert "failed: not up to date: " in machine.run("memory", "index", check=False).err


def test_a_check_asks_it_now(machine: Machine) -> None:
    probing = {"SHAKY_PROBE": "1"}
    checked = machine.run("plugins", "check", mood=FAILS, check=False, **probing)
    assert checked.code == 1
    assert REASON in checked.err
    assert machine.calls() == ["open", "probe", "close"]
    assert machine.search()[0] == "sqlite"
    before = machine.search()[1]["retry_at"]
    assert machine.run("doctor", check=False, **probing).code == 1
    assert machine.search()[1]["retry_at"] == before
    machine.run("doctor", mood=OK, **probing)
    assert machine.search() == ("shaky", None)


def test_an_answer_to_a_question_tells_it_too(machine: Machine) -> None:
    machine.search(FAILS)
    asked = machine.run("ask", "where is the anemometer?", "--json", *OFFLINE).json
    assert "roof" in asked["text"]
    (notice,) = [n for n in asked["notices"] if n["code"] == "memory_fallback"]
    assert REASON in notice["message"]
    assert f"memory is searched by sqlite: {REASON}" in machine.run("ask", "where is the anemometer?", *OFFLINE).err


def test_the_slot_none_leaves_everything_else_working(machine: Machine) -> None:
    machine.configure(slot="none")
    asked = machine.run("ask", "hello", *OFFLINE)
    assert (asked.out.strip() != "", asked.err) == (True, "")
    for command in ("search anemometer", "index", "status", "get MEMORY.md", "add nothing", "watch"):
        ran = machine.run("memory", *command.split(), check=False)
        assert (ran.code, ran.out) == (3, "")
        assert "memory is switched off: plugins.slots.memory is none" in ran.err
    assert machine.run("plugins", "check").code == machine.run("doctor").code == 0
    memory = machine.run("status", "--json").json[0]["memory"]
    assert memory == {"slot": "none", "backend": None, "answers": None, "fallback": None}
    shown = machine.run("context", "--json").out
    assert "memory_search" not in shown
    assert (machine.workspace / "MEMORY.md").read_bytes() == (CASES / "K111/ws/MEMORY.md").read_bytes()
    assert machine.calls() == []
