"""Recorded inputs and outputs of OpenClaw's pure functions (tests/data/context)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lamella.types.message_json import parse_message
from lamella.types.messages import Message

FOLDER = Path(__file__).parents[1] / "data" / "context"


def recorded(file: str) -> list[dict[str, Any]]:
    """All rows of a file: group, name, input (written out), output."""
    rows = json.loads((FOLDER / file).read_text(encoding="utf-8"))["vectors"]
    return [{**row, "input": written_out(row["input"])} for row in rows]


def written_out(value: Any) -> Any:
    """A recorded input with repeated and joined texts written out."""
    if isinstance(value, list):
        return [written_out(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "$rep" in value:
        return str(value["$rep"][0]) * int(value["$rep"][1])
    if "$cat" in value:
        return "".join(map(written_out, value["$cat"]))
    return {key: written_out(item) for key, item in value.items()}


def is_recorded(found: str, output: Any) -> bool:
    """Whether a text is the recorded one, which may be given by length and hash."""
    if isinstance(output, str):
        return found == output
    return len(found) == output["$len"] and hashlib.sha256(found.encode()).hexdigest() == output["$sha256"]


def messages(raw: Any) -> list[Message]:
    return [parse_message(item) for item in raw]
