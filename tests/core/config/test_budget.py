"""The numbers of a window: one set for every decision, whatever the settings (K51, K63, E1, E24, E26)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import CASES
from cli import lamella
from hypothesis import given
from hypothesis import strategies as st

from lamella.config.budget import Budget, budget
from lamella.config.schema import CompactionSection
from lamella.text.estimate import should_compact


def table(case: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((CASES / case / "table.json").read_text())
    return rows


def of(row: dict[str, Any]) -> Budget:
    names = {"floor": "reserve_tokens_floor", "keepRecent": "keep_recent_tokens", "soft": "flush_soft_tokens"}
    settings = {name: row[key] for key, name in names.items() if key in row}
    if row["reserve"] is not None:
        settings["reserve_tokens"] = row["reserve"]
    return budget(CompactionSection(**settings), row["window"])


@pytest.mark.parametrize("row", table("K51"), ids=lambda r: f"window {r['window']}")
def test_k51_every_window_works(row: dict[str, Any]) -> None:
    found, window = of(row), row["window"]
    asked = max(row["reserve"] or 16_384, row["floor"])
    assert 0 < found.reserve <= window / 2
    assert found.reserve >= min(asked, window // 4)
    assert not should_compact(1, window, found.reserve)
    assert should_compact(window, window, found.reserve)
    assert found.keep_recent < found.limit
    assert 0 < found.flush_at < found.limit
    if window == 200_000:
        assert (found.reserve, found.limit) == (20_000, 180_000)


@pytest.mark.parametrize("row", table("K63"), ids=lambda r: f"window {r['window']}, reserve {r['reserve']}")
def test_k63_the_flush_comes_before_the_compaction(row: dict[str, Any]) -> None:
    found = of(row)
    if isinstance(row["trigger"], int):
        assert (found.limit, found.flush_at) == (row["trigger"], row["flush"])
    assert 0 < found.flush_at <= found.limit
    assert row["soft"] == 0 or found.flush_at < found.limit


@given(
    window=st.integers(8, 2_000_000),
    reserve=st.integers(0, 10**6),
    floor=st.integers(0, 10**6),
    keep=st.integers(1, 10**6),
    soft=st.integers(0, 10**6),
)
def test_the_numbers_fit_each_other_whatever_is_asked(
    window: int, reserve: int, floor: int, keep: int, soft: int
) -> None:
    found = of({"window": window, "reserve": reserve, "floor": floor, "keepRecent": keep, "soft": soft})
    assert 0 <= found.reserve <= window // 4
    assert 1 <= found.keep_recent <= max(found.limit // 2, 1)
    assert 1 <= found.flush_at <= found.limit
    assert found.limit - found.flush_at <= max(soft, 0)


def test_e01_exactly_at_the_limit_nothing_is_compacted() -> None:
    assert not should_compact(180_000, 200_000, 20_000)
    assert should_compact(180_001, 200_000, 20_000)


def test_with_compaction_or_flushes_off_there_is_no_flush() -> None:
    for settings in (CompactionSection(enabled=False), CompactionSection(flush=False)):
        found = budget(settings, 200_000)
        assert (found.flush_at, found.flush_bytes) == (0, 0)


# --- config check -------------------------------------------------------------------------------------------


def check(tmp_path: Path, text: str) -> list[dict[str, str]]:
    file = tmp_path / "config.toml"
    file.write_text(text)
    ran = lamella("config", "check", "--config", file, "--json", home=tmp_path / "state", LAMELLA_MODEL="offline")
    problems: list[dict[str, str]] = ran.json["problems"]
    assert ran.code == (2 if problems else 0)
    return problems


def test_settings_that_a_window_does_not_allow_are_told_with_numbers(tmp_path: Path) -> None:
    problems = check(
        tmp_path,
        "[context]\nwindow = 32000\n[compaction]\nreserve_tokens = 70000\nkeep_recent_tokens = 20000\n"
        "flush_soft_tokens = 4000\n",
    )
    assert [(p["key"], p["message"]) for p in problems] == [
        (
            "compaction.reserve_tokens",
            "70000 is more than the window allows; 8000 counts, a quarter of the window of 32000",
        ),
        (
            "compaction.keep_recent_tokens",
            "20000 is more than the window allows; 12000 counts, half of the 24000 tokens that the reserve leaves of "
            "the window of 32000",
        ),
    ]


def test_e24_defaults_fit_every_window(tmp_path: Path) -> None:
    """OpenClaw refuses windows below 16,000 tokens; here the numbers shrink with the window."""
    assert check(tmp_path, "[context]\nwindow = 4000\n") == []
