"""Holds: four processes on one agent folder (turns, resets, compactions, maintenance, restoring, syncs of memory), of
which one is killed every few seconds, lose no message that was acknowledged and no change of sessions.json. That file
is valid at every read, no lock outlives its owner, and `lamella doctor` finds nothing at the end."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from session_soak import COUNTER, open_memory, open_runtime

from lamella.doctor.examination import Diagnosis, examine
from lamella.sessions.archive import is_live_name, parse_archive_name
from lamella.sessions.locks import PathLock
from lamella.sessions.reader import read_transcript

SCRIPT = Path(__file__).parents[1] / "support" / "session_soak.py"
# What a killed writer may leave: half a line, which the next one ends.
HALF_A_LINE = {"torn_line", "no_final_newline", "bad_json"}


class Crew:
    """The processes; what they say is in files of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: list[subprocess.Popen[bytes]] = []
        self._started = 0
        self.killed = 0

    def start(self) -> None:
        self._started += 1
        name = f"p{self._started}"
        said, wrong = (self.home / f"{name}.{kind}" for kind in ("said", "wrong"))
        with said.open("wb") as out, wrong.open("wb") as err:
            command = [sys.executable, str(SCRIPT), str(self.home), name]
            self.running.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err))

    def kill(self, chance: random.Random) -> None:
        victim = self.running.pop(chance.randrange(len(self.running)))
        assert victim.poll() is None, self.wrong()
        victim.kill()
        self.killed += 1
        victim.communicate()

    def end(self) -> None:
        for process in self.running:
            assert process.stdin is not None
            process.stdin.write(b"end\n")
            process.stdin.flush()
        assert [process.wait(120) for process in self.running] == [0] * len(self.running), self.wrong()
        for process in self.running:
            process.communicate()

    def acknowledged(self) -> list[str]:
        """Tokens whose line is whole."""
        return [line for file in self.home.glob("*.said") for line in file.read_text().split("\n")[:-1]]

    def wrong(self) -> str:
        return "\n".join(file.read_text()[-2000:] for file in self.home.glob("*.wrong"))


class Reader:
    """Reads sessions.json again and again, as any program might."""

    def __init__(self, path: Path) -> None:
        self.faults: list[str] = []
        self.reads = 0
        self._path = path
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        seen = False
        while not self._stop.is_set():
            time.sleep(0.002)
            try:
                sessions = json.loads(self._path.read_bytes())
                seen = True
                self.reads += 1
                if not all(entry["sessionId"] for entry in sessions.values()):
                    self.faults.append("an entry without a session")
            except FileNotFoundError:
                if seen:
                    self.faults.append("sessions.json is missing")
            except (ValueError, KeyError, TypeError) as error:
                self.faults.append(repr(error))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


SECONDS = [pytest.param(8, 1.5, id="short"), pytest.param(120, 3.0, id="two minutes", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("seconds", "pause"), SECONDS)
def test_several_processes_on_one_agent(tmp_path: Path, seconds: int, pause: float) -> None:
    chance, crew = random.Random(seconds), Crew(tmp_path)
    with_runtime = open_runtime(tmp_path)
    folder = with_runtime.sessions_dir
    for _ in range(4):
        crew.start()
    reader = Reader(folder / "sessions.json")
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until or len(crew.acknowledged()) < 20:
            time.sleep(chance.uniform(0.5, 1.5) * pause)
            crew.kill(chance)
            crew.start()
        crew.end()
    finally:
        reader.stop()
        for process in crew.running:
            process.kill()
            process.wait()

    assert reader.faults == []
    assert reader.reads > 100
    stored = stored_tokens(folder)
    acknowledged = crew.acknowledged()
    assert len(set(acknowledged)) == len(acknowledged) >= 20
    assert not set(acknowledged) - stored
    counted = with_runtime.store.index.load().sessions[COUNTER]["turns"]
    assert len(acknowledged) <= counted <= len(acknowledged) + crew.killed  # counted, and killed before it was said
    no_lock_is_left(folder)
    with_runtime.store.index.patch(next(iter(with_runtime.store.index.load().sessions)), {"label": "x"})
    assert not [file.name for file in folder.iterdir() if file.name.endswith((".lock", ".tmp"))]
    memory = open_memory(tmp_path, with_runtime)
    assert memory.sync().ok
    memory.close()
    the_doctor_is_content(tmp_path)
    assert not set(acknowledged) - stored_tokens(folder)


def the_doctor_is_content(home: Path) -> None:
    """All that killed writers leave is half lines, which can be mended; then nothing is wrong."""
    mended = examine(lambda: open_runtime(home), fix=True)
    assert _wrong(mended) <= {"transcripts"}
    assert mended.ok, mended
    assert _wrong(examine(lambda: open_runtime(home))) == set()


def _wrong(diagnosis: Diagnosis) -> set[str]:
    """The checks that found something; notes tell of what is unusual, such as many compactions."""
    return {result.check for result in diagnosis.results if result.finding.level != "note"}


def stored_tokens(folder: Path) -> set[str]:
    """The tokens in all transcripts, which have no other damage than half a line of a killed writer."""
    found: set[str] = set()
    for file in folder.iterdir():
        if is_live_name(file.name) or parse_archive_name(file.name) is not None:
            transcript = read_transcript(file)
            assert {damage.code for damage in transcript.damage} <= HALF_A_LINE, transcript.damage
            for entry in transcript.lines.entries():
                if entry.role == "user":
                    found.update(re.findall(r"<(p\d+\.\d+)>", json.dumps(entry.fields)))
    return found


def no_lock_is_left(folder: Path) -> None:
    """Whatever was locked can be taken at once."""
    for name in {file.name for file in (folder / ".locks").iterdir()} | {"sessions.json"}:
        with PathLock(folder / name, timeout=0):
            pass
