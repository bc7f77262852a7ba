"""Whole turns on sessions that other programs left in any state, with history limit, pruning, compaction and a
plugin that adds context: every request is legal (I1 to I6), and the user's newest words stand in it once.

The runs marked slow try 1,000 sessions.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent
from hypothesis import given, settings
from hypothesis import strategies as st
from legal import MARK, check_legal, check_newest
from transcripts import STEP, transcript_of

from lamella import hookimpl
from lamella.context.profiles import profile_for
from lamella.errors import ContextOverflow
from lamella.models.scripted import ScriptedModel
from lamella.types import hooks as h
from lamella_context_pruning import ContextPruning

APIS = [
    ("anthropic", "anthropic-messages"),
    ("openai", "openai-completions"),
    ("openai", "openai-responses"),
    ("google", "google-generative-ai"),
    ("mistral", "openai-completions"),
    ("unknown", "unknown"),
]
KEYS = ["agent:main:main", "agent:main:irc:group:x", "agent:main:irc:direct:9:thread:4"]
CALL = {"content": [{"type": "toolCall", "id": "a", "name": "nope", "arguments": {}}]}
LONG = [{"type": "text", "text": "文 and x " * 3000}]
NUMBER = itertools.count()


class Adds:
    """Adds context with half a character."""

    name = "adds"

    @hookimpl
    def before_prompt_build(self, event: h.BeforePromptBuild) -> h.PromptAddition:
        return h.PromptAddition(prepend_context="known \ud83d", append_system="rule \ud83d")


async def check_turn(home: Path, steps: list[Any], side: tuple[str, str], key: str, window: int, long: bool) -> None:
    facts: dict[str, Any] = {"provider": side[0], "api": side[1], "id": "m", "context_window": window}
    small = {"plugins.config.history-limit.group": 2, "compaction.reserve_tokens": 100}
    plugins = [Adds(), ContextPruning()]
    async with open_agent(home, ScriptedModel(["begun"], **facts), settings=small, plugins=plugins) as runtime:
        await runtime.ask("begin", key=key)
        (file,) = runtime.store.folder.glob("*.jsonl")
    _go_on(file, steps, long)
    model = ScriptedModel([CALL, "one", "two", "three", "four"], **facts)
    async with open_agent(home, model, settings=small, plugins=plugins) as runtime:
        result = await runtime.ask(MARK, key=key)
    assert result.error is None or isinstance(result.error, ContextOverflow)
    for request in model.requests:
        if "<conversation>" in repr(request.messages[0]):  # asks for a summary
            continue
        request.system_prompt.encode()
        check_legal(request.messages, profile_for(*side))
        check_newest(request.messages)


def _go_on(file: Path, steps: list[Any], long: bool) -> None:
    """Append the entries of another session below the last one; with `long`, its results are long."""
    last = json.loads(file.read_text().splitlines()[-1])["id"]
    rows = [json.loads(line) for line in transcript_of(steps).splitlines()[1:]]
    for row in rows:
        row["parentId"] = row["parentId"] or last
        if long and row.get("message", {}).get("role") == "toolResult":
            row["message"]["content"] = LONG
    with file.open("a") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


SESSIONS = {
    "steps": st.lists(STEP, max_size=14),
    "side": st.sampled_from(APIS),
    "key": st.sampled_from(KEYS),
    "window": st.sampled_from([600, 2000, 100_000]),
    "long": st.booleans(),
}


@settings(max_examples=25, deadline=None)
@given(**SESSIONS)
async def test_every_request_is_legal(tmp_path_factory: pytest.TempPathFactory, **session: Any) -> None:
    await check_turn(tmp_path_factory.getbasetemp() / f"session{next(NUMBER)}", **session)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None)
@given(**SESSIONS)
async def test_every_request_is_legal_often(tmp_path_factory: pytest.TempPathFactory, **session: Any) -> None:
    await check_turn(tmp_path_factory.getbasetemp() / f"session{next(NUMBER)}", **session)
