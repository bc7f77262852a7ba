"""The real Pi opens what lamella wrote and sees the same context.

Needs LAMELLA_PI, a folder with `npm install @earendil-works/pi-coding-agent@1.6.0`, and Node.js 24
(LAMELLA_NODE, default `node`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from builders import user
from inside import lamella
from other_programs import claude, openclaw
from other_programs import pi as pi_folder
from pi_golden import session_cases

from lamella.sessions.mend import mended_lines
from lamella.sessions.reader import read_transcript
from lamella.sessions.transcript import SessionFile
from lamella.types.messages import text_of

PI = os.environ.get("LAMELLA_PI")
SCRIPT = Path(__file__).parents[2] / "bench" / "pi_context.mjs"
# 1.6.0 refuses these damaged files.
REFUSED = {"o21_empty_file", "o22_blank_lines_only", "o29_no_header"}

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(not PI, reason="LAMELLA_PI names no folder with the real Pi")]


def pi(path: Path) -> dict[str, Any]:
    node = os.environ.get("LAMELLA_NODE", "node")
    done = subprocess.run([node, str(SCRIPT), str(PI), str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def ours(path: Path) -> dict[str, Any]:
    context = SessionFile.open(path).context()
    state = context.state
    said = [[m.role, getattr(m, "summary", None) or text_of(getattr(m, "content", ""))] for m in context.messages]
    model = {"provider": state.provider, "modelId": state.model_id} if state.provider is not None else None
    return {"model": model, "thinkingLevel": state.thinking_level, "messages": said}


async def test_a_session_with_compactions_branches_and_tools(tmp_path: Path) -> None:
    steps = [{"text": f"answer {i} " + "word " * 60, "usage": {"input": 300, "totalTokens": 300}} for i in range(9)]
    settings = {"compaction.reserve_tokens": 200, "compaction.keep_recent_tokens": 60}
    model = scripted(steps, context_window=1000)
    async with open_agent(tmp_path, model, settings=settings) as runtime, runtime.session() as session:
        for question in ("one", "two"):
            await session.prompt(question)
        await session.compact()
        await session.prompt("three 数据")
        path = session.agent.file.path
        session.agent.file.branch(session.agent.file.branch_entries()[-2].id)
        assert pi(path) == ours(path)
        await session.prompt("four, on another branch")
    assert pi(path) == ours(path)


@pytest.mark.parametrize("source", [pytest.param(s, id=s.stem) for _, s in session_cases() if s.stem not in REFUSED])
def test_files_of_pi_that_lamella_continued(source: Path, tmp_path: Path) -> None:
    path = tmp_path / source.name
    path.write_bytes(source.read_bytes())
    file = SessionFile.open(path)
    file.append_message(user("continued by lamella"))
    file.close()
    theirs, mine = pi(path), ours(path)
    assert theirs["messages"][-1] == ["user", "continued by lamella"]
    if source.stem != "o25_unicode_surrogates":  # half characters become U+FFFD in lamella
        assert theirs == mine


def test_a_folder_of_pi_that_lamella_works_in_place(tmp_path: Path) -> None:
    home, folder = tmp_path / "state", pi_folder(tmp_path) / "sessions" / "--home-me-project0--"
    lamella("import", "pi", folder, "--in-place", home=home, check=True)
    for file in sorted(folder.glob("*.jsonl")):
        before = pi(file)["messages"]
        key = f"agent:main:pi-{SessionFile.open(file).id}"
        lamella("ask", "Continued by lamella.", "--key", key, "--model", "offline", home=home, check=True)
        theirs = pi(file)
        assert theirs == ours(file)
        assert theirs["messages"][: len(before)] == before
        assert ["user", "Continued by lamella."] in theirs["messages"][len(before) :]


def test_what_was_imported_continued_and_exported(tmp_path: Path) -> None:
    home, out = tmp_path / "state", tmp_path / "out"
    lamella("import", "pi", pi_folder(tmp_path), home=home, check=True)
    lamella("import", "openclaw", openclaw(tmp_path), home=home, check=True)
    lamella("import", "claude-code", claude(tmp_path), home=home, check=True)
    for row in lamella("sessions", "list", "--json", home=home, check=True).json:
        lamella("ask", "Go on.", "--key", row["key"], "--model", "offline", home=home, check=True)
    lamella("export", "openclaw", out, home=home, check=True)
    files = sorted((out / "agents/main/sessions").glob("*.jsonl"))
    assert len(files) == 9
    for file in files:
        assert pi(file) == ours(file)


@pytest.mark.parametrize("source", [pytest.param(s, id=s.stem) for _, s in session_cases() if s.stem not in REFUSED])
def test_what_the_doctor_has_mended(source: Path, tmp_path: Path) -> None:
    path = tmp_path / source.name
    path.write_bytes(b"\n".join(mended_lines(read_transcript(source))) + b"\n")
    if source.stem != "o25_unicode_surrogates":
        assert pi(path) == ours(source)
