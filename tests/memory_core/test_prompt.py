"""The section about memory stands in a prompt only where there is a memory tool to follow it with (row A29 of
the table of edge cases)."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents import scripted

from lamella.runtime import Runtime

TOOLS = ["memory_search", "memory_get", "memory_append"]


@pytest.mark.parametrize(
    ("denied", "there"), [([], True), (TOOLS[:1], True), (TOOLS[:2], False), (TOOLS, False)], ids=str
)
async def test_A29_the_section_needs_a_tool_that_recalls(tmp_path: Path, denied: list[str], there: bool) -> None:
    model = scripted(["ok"])
    runtime = Runtime.open(
        workspace=tmp_path,
        model=model,
        settings={"tools.deny": denied},
        environ={"LAMELLA_HOME": str(tmp_path / "state"), "LAMELLA_PLUGINS": "memory-core"},
    )
    async with runtime:
        await runtime.ask("hello")
    assert ("## Memory" in model.requests[0].system_prompt) == there
