"""A whole turn in a chat that others read: neither the prompt nor the tools show what is the user's own, be it in
`MEMORY.md` or in the note of a private session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import QUICK, scripted

from lamella.memory.session_notes import key_in, key_line
from lamella.runtime import Runtime
from lamella_memory_core import Config, MemoryCore

GROUP = "agent:main:discord:group:7"


def steps() -> list[dict[str, Any]]:
    calls = [
        {"type": "toolCall", "id": "c1", "name": "memory_search", "arguments": {"query": "okapi"}},
        {"type": "toolCall", "id": "c2", "name": "memory_get", "arguments": {"path": "MEMORY.md"}},
    ]
    return [{"content": calls, "stopReason": "toolUse"}, {"text": "done"}]


@pytest.mark.parametrize(
    ("key", "config", "settings", "seen"),
    [
        ("agent:main:main", {}, {}, True),
        ("agent:main:discord:direct:ana", {}, {}, True),
        (GROUP, {}, {}, False),
        ("agent:main:slack:channel:general", {}, {}, False),
        (f"{GROUP}:thread:3", {}, {}, False),
        (GROUP, {"curated_in_groups": True}, {"plugins.config.workspace-files.memory_in_groups": True}, True),
    ],
)
async def test_what_a_chat_sees(tmp_path: Path, key: str, config: Any, settings: Any, seen: bool) -> None:
    workspace = tmp_path / "ws"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("- the okapi likes figs\n")
    (workspace / "memory/a.md").write_text("- an okapi sleeps\n")
    model = scripted(steps())
    runtime = Runtime.open(
        workspace=workspace,
        model=model,
        settings={**QUICK, **settings},
        plugins=[MemoryCore(Config(embedder="none", **config))],
        environ={"LAMELLA_HOME": str(tmp_path / "state"), "LAMELLA_PLUGINS": ""},
    )
    async with runtime.session(key) as session:
        await session.prompt("what does it like?")
    runtime.close()
    first, last = model.requests[0], model.requests[-1]
    assert ("figs" in first.system_prompt) is seen
    assert "## Memory Recall" in first.system_prompt
    assert ("MEMORY.md holds lasting facts" in first.system_prompt) is seen
    answers = str(last.messages)
    assert "sleeps" in answers
    assert ("figs" in answers) is seen
    assert ("MEMORY_PATH_NOT_ALLOWED" in answers) is not seen


# --- notes of sessions -------------------------------------------------------------------------------------

NOTE = "memory/2026-05-10-okapi.md"
OPENCLAW = (
    "# Session: 2026-05-10 12:00:00 UTC\n\n- **Session Key**: {key}\n- **Session ID**: abc\n\nuser: the okapi naps\n"
)
LAMELLA = "# Session of 2026-05-10 12:00 (UTC+00:00)\n\n{line}\n- Session id: `abc`\n\n> - user: the okapi naps\n"


def note_of(key: str) -> str:
    return LAMELLA.format(line=key_line(key))


@pytest.mark.parametrize(
    ("reader", "text", "settings", "seen"),
    [
        ("agent:main:main", note_of("agent:main:main"), {}, True),
        (GROUP, note_of("agent:main:main"), {}, False),
        ("agent:main:slack:channel:general", note_of("agent:main:direct:ana"), {}, False),
        (GROUP, note_of("agent:main:elsewhere:7"), {}, False),
        (GROUP, note_of("agent:main:main"), {"sessions_in_groups": True}, True),
        (GROUP, note_of(GROUP), {}, True),
        (GROUP, OPENCLAW.format(key="agent:main:main"), {}, False),
        (GROUP, OPENCLAW.format(key="main"), {}, False),
        (GROUP, OPENCLAW.format(key=GROUP), {}, True),
        (GROUP, "\ufeff" + note_of("agent:main:main").replace("\n", "\r\n"), {}, False),
        (GROUP, "# Animals\n\n- Session key: `agent:main:main`\n- the okapi naps\n", {}, True),
    ],
)
@pytest.mark.parametrize("name", [NOTE, "memory/old/2026-05-10-okapi.md"])
async def test_notes_of_private_sessions(
    tmp_path: Path, reader: str, text: str, settings: Any, seen: bool, name: str
) -> None:
    path = tmp_path / "ws" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    calls = [
        {"type": "toolCall", "id": "c1", "name": "memory_search", "arguments": {"query": "okapi"}},
        {"type": "toolCall", "id": "c2", "name": "memory_get", "arguments": {"path": name, "from": 5}},
    ]
    model = scripted([{"content": calls, "stopReason": "toolUse"}, {"text": "done"}])
    config = Config(embedder="none", auto_recall=True, recall_min_score=0.0, recall_timeout_ms=10_000, **settings)
    runtime = Runtime.open(
        workspace=tmp_path / "ws",
        model=model,
        settings=QUICK,
        plugins=[MemoryCore(config)],
        environ={"LAMELLA_HOME": str(tmp_path / "state"), "LAMELLA_PLUGINS": ""},
    )
    async with runtime.session(reader) as session:
        await session.prompt("okapi")
    runtime.close()
    for request in model.requests:  # the first has what is recalled, the last one the answers of the tools
        assert ("naps" in str(request.messages)) is seen
    assert ("MEMORY_PATH_NOT_ALLOWED" in str(model.requests[-1].messages)) is not seen


def test_only_the_head_names_a_session() -> None:
    assert key_in(note_of("agent:main:main")) == "agent:main:main"
    assert key_in("# Sessions\n\n- Session key: `agent:main:main`\n") is None
    assert key_in("# Session of today\n\ntext\n- Session key: `agent:main:main`\n") is None
