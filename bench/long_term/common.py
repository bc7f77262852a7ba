"""Judged sets as memories and questions, for the benches beside this file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from lamella.types.hooks import MemoryContext
from lamella.types.memory import EmbedderRegistration
from lamella_embedders.choice import registrations
from lamella_embedders.config import Config as EmbeddersConfig
from lamella_memory_lancedb import Config
from lamella_memory_lancedb.service import Memories


@frozen
class User:
    """One person of a judged set: what he said that answers a question, and the questions with their answers."""

    name: str
    memories: tuple[str, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]


def workspaces(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["workspaces"]
    return found


def users(path: Path) -> Iterator[User]:
    """The users of a set of dialogues, with their gold turns as memories."""
    for workspace in workspaces(path):
        lines = {name: text.split("\n") for name, text in workspace["files"].items()}
        memories: dict[str, None] = {}
        questions = []
        for query in workspace["queries"]:
            places = {(name, n) for group in query["gold"] for name, a, b in group for n in range(a, b + 1)}
            texts = [lines[name][n - 1].lstrip("- ").strip() for name, n in sorted(places)]
            gold = frozenset(text for text in texts if text)
            memories |= dict.fromkeys(sorted(gold))
            questions.append((query["query"], gold))
        yield User(workspace["id"], tuple(memories), tuple(questions))


def questions(path: Path) -> list[str]:
    return [query["query"] for workspace in workspaces(path) for query in workspace["queries"]]


def embedders() -> dict[str, EmbedderRegistration]:
    return {found.name: found for found in registrations(EmbeddersConfig())}


def opened(folder: Path, config: Config) -> Memories:
    """Long-term memory in a scratch folder."""
    context = MemoryContext("main", folder, folder / "state", "", "", {}, embedders())
    return Memories(context, config)
