"""A whole turn in a chat that others read: neither the prompt nor the tools show what is the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import QUICK, scripted

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
