"""Two processes on one session: what one has written the other goes on from, and who is stopped leaves no lock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agents import open_agent, scripted
from cli import lamella

from lamella.types.messages import UserMessage, text_of


def script(path: Path, *steps: object) -> str:
    path.write_text(json.dumps(steps))
    return f"scripted/{path}"


async def test_a_transcript_that_another_process_has_grown_is_read_again(tmp_path: Path) -> None:
    model = scripted(["one", "three"])
    async with open_agent(tmp_path, model) as runtime, runtime.session() as session:
        await session.prompt("first")
        other = script(tmp_path / "other.json", {"text": "two"})
        common = ("--workspace", tmp_path / "ws", "--model", other)
        lamella("ask", "second", *common, home=tmp_path / "state", check=True, LAMELLA_PLUGINS="")
        await session.prompt("third")
        seen = [text_of(m.content) for m in model.requests[-1].messages if isinstance(m, UserMessage)]
        assert seen == ["first", "second", "third"]
        file = runtime.store.open(runtime.store.require(runtime.key()), cwd="/")
        assert len(file.path_of()) == len(file.lines())  # one branch, no fork


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without telling it")
def test_g10_a_terminated_command_removes_its_locks(tmp_path: Path) -> None:
    model = script(tmp_path / "slow.json", {"text": "late", "delayMs": 60_000})
    command = [sys.executable, "-m", "lamella", "ask", "hello", "--model", model, "--workspace", str(tmp_path)]
    env = {**os.environ, "LAMELLA_HOME": str(tmp_path / "state"), "LAMELLA_PLUGINS": ""}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    folder = tmp_path / "state/agents/main/sessions"
    for _ in range(600):
        if list(folder.glob("*.jsonl")):  # the user's words are stored before the model is asked
            break
        time.sleep(0.05)
    assert list(folder.glob("*.jsonl.lock"))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not list(folder.glob("*.lock"))
    assert "hello" in next(folder.glob("*.jsonl")).read_text()
