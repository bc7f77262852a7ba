"""Results that the real Pi recorded, merged so that the newest recorded version counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "pi"

# (folder of goldens, folder of sessions)
SETS = (("golden", "sessions"), ("golden_written", "sessions_written_by_pi"))


def session_cases() -> list[tuple[Path, Path]]:
    """(golden, session) of every recorded session file."""
    cases = []
    for goldens, sessions in SETS:
        for golden in sorted((DATA / goldens).glob("*.golden.json")):
            cases.append((golden, DATA / sessions / golden.name.replace(".golden.json", ".jsonl")))
    return cases


def load_golden(path: Path) -> dict[str, Any]:
    """What Pi 1.6.0 gave, or 0.58.0 where 1.6.0 gave the same.

    1.6.0 refuses three damaged files that 0.58.0 opens; there 0.58.0 counts.
    """
    recorded = json.loads(path.read_text(encoding="utf-8"))["pi"]
    primary, newest = dict(recorded["0.58.0"]), recorded.get("1.6.0")
    if not isinstance(newest, dict) or "error" in (newest.get("open") or {}):
        return primary
    sections = {k: v for k, v in newest.items() if k not in ("sameAsPrimary", "differingSections")}
    for name, value in sections.items():
        if isinstance(value, dict) and name in ("prepare", "cutPoints"):
            primary[name] = {**(primary.get(name) or {}), **value}
        else:
            primary[name] = value
    return primary


def scenarios(name: str) -> list[dict[str, Any]]:
    """The recorded scenarios of `loop`, `ops` or `agent`."""
    found = json.loads((DATA / name / f"{name}.golden.json").read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


def newest(scenario: dict[str, Any]) -> Any:
    """The result of the newest version that differs, else of 0.58.0."""
    recorded = scenario["pi"]
    for version in ("1.6.0", "0.73.1"):
        if isinstance(recorded.get(version), dict):
            return recorded[version]
    return recorded["0.58.0"]
