"""Holds: processes that index, search, edit and are killed at random moments lose no update and leave
tables that equal a fresh rebuild."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from index_tables import contents, stored
from notes import make_workspace
from soak import open_memory

SCRIPT = Path(__file__).parents[1] / "support" / "soak.py"


def start(role: str, workspace: Path, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), role, str(workspace), name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str], line: str) -> list[str]:
    tell(process, line)
    assert process.stdout is not None
    return process.stdout.readline().split()


def ended(process: subprocess.Popen[str]) -> int:
    tell(process, "end")
    return process.wait(60)


def equals_a_fresh_start(workspace: Path) -> bool:
    for state in ("state", "fresh"):
        memory = open_memory(workspace, state)
        assert memory.sync().ok
        memory.close()
    same = contents(workspace) == contents(workspace, "fresh")
    return same and stored(workspace) == stored(workspace, "fresh")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path, {f"memory/n{i}.md": f"note {i} of many\n" * 20 for i in range(30)})


SECONDS = [pytest.param(3, id="short"), pytest.param(60, id="a minute", marks=pytest.mark.slow)]


@pytest.mark.parametrize("seconds", SECONDS)
def test_two_use_a_memory_while_a_third_edits_it(workspace: Path, seconds: int) -> None:
    users = [start("use", workspace, name) for name in ("alpha", "beta")]
    editor = start("edit", workspace, f"seed {seconds}")
    time.sleep(seconds)
    assert [u.poll() for u in (*users, editor)] == [None, None, None]
    assert ended(editor) == 0
    for number, user in enumerate(users * 3):
        (workspace / f"memory/last{number}.md").write_text(f"token{number}\n")
        assert answer(user, f"find token{number}") == [f"memory/last{number}.md"]
    assert [ended(u) for u in users] == [0, 0]
    assert equals_a_fresh_start(workspace)


KILLS = [pytest.param(3, id="short"), pytest.param(40, id="many", marks=pytest.mark.slow)]


@pytest.mark.parametrize("kills", KILLS)
def test_killed_at_any_moment_the_next_start_is_right(workspace: Path, kills: int) -> None:
    chance = random.Random(kills)
    editor = start("edit", workspace, f"kills {kills}")
    for number in range(kills):
        user = start("use", workspace, f"user {number}")
        time.sleep(chance.uniform(0.3, 2.0))
        user.kill()
        assert user.wait() == -9
    assert ended(editor) == 0
    (workspace / "memory/last.md").write_text("token\n")
    user = start("use", workspace, "last")
    assert answer(user, "find token") == ["memory/last.md"]
    assert ended(user) == 0
    assert equals_a_fresh_start(workspace)
    assert not list((workspace.parent / "state").glob("*.broken-*"))
