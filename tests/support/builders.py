"""Messages and transcripts for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lamella.types.messages import (
    AssistantMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)

CASES = Path(__file__).parents[1] / "data" / "cases"


def user(text: str) -> UserMessage:
    return UserMessage((TextBlock(text),), 1_772_355_600_000)


def assistant(text: str = "", *calls: ToolCall, **fields: Any) -> AssistantMessage:
    content = ((TextBlock(text),) if text else ()) + calls
    fields.setdefault("stop_reason", "toolUse" if calls else "stop")
    return AssistantMessage(content, "p", "m", "x", timestamp=1_772_355_600_000, **fields)


def call(call_id: str, name: str = "demo", **arguments: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments)


def result(call_id: str, text: str = "done", name: str = "demo", *, is_error: bool = False) -> ToolResultMessage:
    return ToolResultMessage(call_id, name, (TextBlock(text),), is_error, timestamp=1_772_355_600_000)


def usage(total: int) -> Usage:
    return Usage(input=total, total_tokens=total)


def transcript(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Header and a chain of user messages."""
    rows: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "s", "timestamp": "2026-05-10T09:00:00.000Z", "cwd": "/w"}
    ]
    parent = None
    for i, text in enumerate(texts):
        rows.append(
            {
                "type": "message",
                "id": f"m{i}",
                "parentId": parent,
                "timestamp": "2026-05-10T09:00:00.000Z",
                "message": {"role": "user", "content": text, "timestamp": 1},
            }
        )
        parent = f"m{i}"
    return rows


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path
