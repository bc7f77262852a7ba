"""Case K128: whatever the memory slot names, a turn is answered, and what is wrong is said once.

The slot values of the case are names of modules; a plugin's name has `-` for `_`. For null the key
is left out, since TOML has none.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
from agents import Recorder, scripted
from builders import CASES

from lamella.errors import ConfigError
from lamella.runtime import Runtime
from lamella.types.events import Notice
from lamella.types.messages import ToolResultMessage

BROKEN = "broken-on-import"
SLOTS = json.loads((CASES / "K128/configs.json").read_text())


@pytest.fixture(autouse=True)
def without_lancedb(monkeypatch: pytest.MonkeyPatch) -> None:
    """The case is about a machine on which this one is not installed."""
    installed = importlib.metadata.entry_points

    def others(**wanted: Any) -> list[importlib.metadata.EntryPoint]:
        return [point for point in installed(**wanted) if point.name != "memory-lancedb"]

    monkeypatch.setattr(importlib.metadata, "entry_points", others)


@pytest.fixture(autouse=True)
def broken_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed plugin whose module cannot be imported."""
    info = tmp_path / "site/broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lamella.plugins]\n{BROKEN} = broken_on_import:Memory\n")
    (tmp_path / "site/broken_on_import.py").write_text("raise ImportError('libokapi.so is missing')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


def open_with(home: Path, slot: Any, model: Any) -> Runtime:
    (home / "ws").mkdir()
    settings = {"retry.base_delay_ms": 1}
    if slot is not None:
        settings["plugins.slots.memory"] = slot.replace("_", "-") if isinstance(slot, str) else slot
    return Runtime.open(
        workspace=home / "ws", model=model, settings=settings, environ={"LAMELLA_HOME": str(home / "state")}
    )


@pytest.mark.parametrize("case", [c for c in SLOTS if c["ok"] is True], ids=lambda c: str(c["slot"]))
async def test_a_turn_is_answered(tmp_path: Path, case: dict[str, Any]) -> None:
    wanted = {"type": "toolCall", "id": "c1", "name": "memory_search", "arguments": {"query": "okapi"}}
    model = scripted([{"content": [wanted], "stopReason": "toolUse"}, {"text": "here I am"}])
    recorder = Recorder()
    async with open_with(tmp_path, case["slot"], model) as runtime:
        runtime.listeners.append(recorder)
        async with runtime.session() as session:
            assert (await session.prompt("hello")).text == "here I am"
    has_tools = case.get("tools", False)
    assert ({"memory_search", "memory_get"} <= {t.name for t in model.requests[0].tools}) is has_tools
    (result,) = [m for m in model.requests[1].messages if isinstance(m, ToolResultMessage)]
    assert result.is_error is not has_tools
    name = str(case["slot"]).replace("_", "-")
    named = [n.message for n in recorder.of(Notice) if name in n.message]
    assert len(named) == (1 if case.get("warn") else 0), named
    if name == BROKEN:
        assert "libokapi.so is missing" in named[0]


def test_a_slot_of_another_kind_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plugins\.slots\.memory: expected a string, found 42"):
        _ = open_with(tmp_path, 42, scripted([])).settings
