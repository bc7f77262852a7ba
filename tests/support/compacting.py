"""Sessions in small windows, for tests of compactions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agents import open_agent
from builders import assistant, user

from lamella.runtime import Runtime
from lamella.sessions.keys import parse_key
from lamella.types.messages import Message, text_of
from lamella.types.model import ModelRequest

KEY = "agent:main:main"
# A window of 1,000 tokens whose compaction is due above 800 and keeps about 100.
WINDOW = 1_000
SMALL = {"compaction.reserve_tokens": 200, "compaction.keep_recent_tokens": 100, "context.estimator": "pi"}
OVERFLOW = {"error": "prompt is too long: 1200 tokens > 1000 maximum"}


def reply(text: str, used: int = 100) -> dict[str, Any]:
    return {"text": text, "usage": {"input": used, "totalTokens": used}}


def words(tag: str, count: int = 100) -> str:
    """About `count` tokens."""
    return (f"{tag} " * (4 * count))[: 4 * count]


def is_summary(request: ModelRequest) -> bool:
    return text_of(request.messages[-1].content).startswith("<conversation>")


def place(runtime: Runtime, source: Path | Iterable[Message]) -> Path:
    """A transcript (a file, or messages) as the main session's."""
    located = runtime.store.start(parse_key(KEY))
    located.path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(source, Path):
        shutil.copy(source, located.path)
        return located.path
    file = runtime.store.open(located, cwd=str(runtime.workspace))
    for message in source:
        file.append_message(message)
    file.close()
    return located.path


def rows(runtime: Runtime, kind: str = "") -> list[dict[str, Any]]:
    path = runtime.store.locate(parse_key(KEY)).path  # type: ignore[union-attr]
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [r for r in found if not kind or r["type"] == kind]


def entry(runtime: Runtime) -> dict[str, Any]:
    return dict(runtime.store.index.get(KEY) or {})


def agent(home: Path, model: Any, settings: Mapping[str, Any] | None = None, **options: Any) -> Runtime:
    return open_agent(home, model, settings={**SMALL, **(settings or {})}, **options)


def talk(*tags: str) -> list[Message]:
    """Turns of about 100 tokens each."""
    return [m for tag in tags for m in (user(f"ask {tag}"), assistant(words(tag)))]
