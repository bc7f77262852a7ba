"""Wrong settings are told with key, value and what was expected; nothing is opened then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted

from lamella_memory_lancedb import Config, MemoryLanceDB

KEY = "plugins.config.memory-lancedb"


def problems(tmp_path: Path, **settings: Any) -> str:
    given = {f"{KEY}.{name}": value for name, value in settings.items()} | {"plugins.slots.memory": "memory-lancedb"}
    runtime = open_agent(tmp_path, scripted([]), settings=given, plugins=[MemoryLanceDB])
    try:
        return "\n".join(str(p) for p in runtime.catalog.problems)
    finally:
        runtime.close()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"capture_max_chars": 99}, ("capture_max_chars", "99", "100 to 10000")),
        ({"capture_max_chars": 10_001}, ("capture_max_chars", "100 to 10000")),
        ({"capture_max": 500}, ("capture_max", "capture_max_chars")),
        ({"auto_recall": "yes please"}, ("auto_recall",)),
        ({"scope": "fleet"}, ("scope", "fleet", "agent, session, shared")),
        ({"uri": "ftp://host/x"}, ("uri", "s3://, gs:// or az://")),
        ({"uri": "~nobody-of-this-name/x"}, ("uri", "no user of the name behind ~")),
        ({"uri": "s3://${LAMELLA_TEST_UNSET}/x"}, ("uri", "LAMELLA_TEST_UNSET")),
        ({"storage_options": {"key": "${LAMELLA_TEST_UNSET}"}}, ("storage_options", "key", "LAMELLA_TEST_UNSET")),
        ({"recall_threshold": 2}, ("recall_threshold", "0 to 1.4")),
        ({"embedder": " "}, ("embedder", "expected a name")),
        ({"capture_triggers": [""]}, ("capture_triggers", "not empty")),
    ],
)
def test_wrong_settings_are_told(tmp_path: Path, settings: dict[str, Any], said: tuple[str, ...]) -> None:
    text = problems(tmp_path, **settings)
    assert all(part in text for part in (KEY, *said)), text


def test_right_settings_are_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_TEST_BUCKET", "fleet")
    assert problems(tmp_path, uri="s3://${LAMELLA_TEST_BUCKET}/memory", storage_options={"region": "eu"}) == ""


def test_capture_is_off_and_recall_is_on() -> None:
    assert (Config().auto_capture, Config().auto_recall) == (False, True)


async def test_an_embedder_without_its_key_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lamella_embedders import Embedders

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = {"plugins.slots.memory": "memory-lancedb", f"{KEY}.embedder": "openai"}
    runtime = open_agent(tmp_path, scripted([]), settings=settings, plugins=[MemoryLanceDB, Embedders])
    async with runtime:
        status = runtime.require_memory().status()
    assert status["mode"] == "keyword" and "OPENAI_API_KEY" in status["problem"]
