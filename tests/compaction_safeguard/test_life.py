"""A session's life with small windows and a summariser that fails at random: nothing exact is lost."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import open_agent, scripted
from folding import HEADINGS, KEY, safeguard, summary

from lamella.models.offline import OfflineModel
from lamella.sessions.context import Context
from lamella.types.message_json import dump_message
from lamella.types.messages import text_of
from lamella.types.model import ModelRequest
from lamella.types.tools import Tool

TURNS = 30
ENGLISH = "the greenhouse fans turn slowly while seeds wait for rain and someone counts the trays again"
CHINESE = "温室里的风扇慢慢转着种子等着下雨有人又数了一遍托盘然后关上了门"
WORDS = {"en": ENGLISH.split(), "zh": list(CHINESE)}
FAULTS: tuple[Any, ...] = (
    "",
    "Sorry, I cannot do that.",
    {"throwBeforeStart": "503 service unavailable", "status": 503},
    {"throwBeforeStart": "429 too many requests", "status": 429},
    {"throwBeforeStart": "invalid api key", "status": 401},
    {"error": "prompt is too long: 99999 tokens > 8000 maximum"},
    {"text": "## Decisions\n- half", "stopReason": "length"},
)


class Life:
    """A model that talks, calls a tool now and then, and is a bad summariser."""

    def __init__(self, seed: int, language: str) -> None:
        self.random = random.Random(seed)
        self.language = language
        self.summaries = 0
        self.calls = 0

    def words(self, count: int) -> str:
        glue, times = (" ", 2) if self.language == "en" else ("", 3)
        return glue.join(self.random.choice(WORDS[self.language]) for _ in range(count * times))

    def reply(self, request: ModelRequest) -> Any:
        last = request.messages[-1]
        if text_of(last.content).startswith("<conversation>"):
            self.summaries += 1
            good = summary(self.words(8), Decisions=f"- {self.words(12)}")
            return self.random.choice((good, good, *FAULTS))
        if last.role == "user" and self.random.random() < 0.3:
            self.calls += 1
            call = {"type": "toolCall", "id": f"c{self.calls}", "name": "count", "arguments": {"path": "trays.md"}}
            return {"content": [call]}
        return {"text": self.words(60)}


def whole_text(context: Context) -> str:
    return "\n".join(
        m.summary if m.role == "compactionSummary" else json.dumps(dump_message(m), ensure_ascii=False)
        for m in context.messages
    )


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 8))])
async def test_identifiers_and_the_newest_request_survive(tmp_path: Path, seed: int, language: str) -> None:
    life = Life(seed, language)
    model = scripted([life.reply] * TURNS * 20, context_window=8000)
    count = Tool("count", "Counts.", {"type": "object", "properties": {}}, lambda _a, _c: life.words(400))
    planted: list[str] = []
    asked_before = 0
    async with (
        open_agent(tmp_path, model, plugins=[safeguard()], tools=[count], settings={"retry.max_retries": 0}) as runtime,
        runtime.session() as session,
    ):
        stored = b""
        for turn in range(TURNS):
            request = f"{turn}: {life.words(40)}"
            if turn % 4 == 0:
                planted.append(f"ORD-{life.random.randrange(10**4, 10**5)}")
                request += f" {planted[-1]}"
            result = await session.prompt(request)
            assert result.error is None, result.error
            talk = [r for r in model.requests[asked_before:] if not is_summary(r)]
            assert all(request in "\n".join(text_of(m.content) for m in r.messages) for r in talk)
            assert len(model.requests) - asked_before - len(talk) <= 8
            asked_before = len(model.requests)
            text = whole_text(session.agent.file.context())
            assert not [identifier for identifier in planted if identifier not in text]
            now = session.agent.file.path.read_bytes()
            assert now.startswith(stored)
            stored = now
        entry = runtime.store.index.get(KEY) or {}
    rows = [json.loads(line) for line in stored.splitlines()]
    compactions = [row for row in rows if row["type"] == "compaction"]
    assert len(compactions) == entry["compactionCount"] >= 2
    assert {c["details"]["summarisedBy"] for c in compactions} <= {"scripted/script", "rules"}
    for compaction in compactions:
        assert all(heading in compaction["summary"].split("\n") for heading in HEADINGS)
        assert len(compaction["summary"]) <= 8000
        assert compaction["details"]["foldedEntryIds"]
    # What is stored beside a summary stays bounded, however long the session lives.
    assert max(len(json.dumps(c["details"])) for c in compactions) < 20_000


def is_summary(request: ModelRequest) -> bool:
    return text_of(request.messages[-1].content).startswith("<conversation>")


@pytest.mark.parametrize(
    ("say", "kept"),
    [
        (lambda n: f"Please note that order ORD-{5000 + n} goes to gate {n}. " + "It is heavy. " * 120, "ORD-5000"),
        (lambda n: f"请记住，订单 ORD-{5000 + n} 送到{n}号门。" + "它很重。" * 120, "ORD-5000"),
    ],
)
async def test_the_offline_model_writes_these_summaries_too(
    tmp_path: Path, say: Callable[[int], str], kept: str
) -> None:
    settings = {"context.window": 8000}
    async with open_agent(tmp_path, OfflineModel(), plugins=[safeguard()], settings=settings) as runtime:
        for number in range(24):
            result = await runtime.ask(say(number))
            assert result.error is None
        path = runtime.store.index.transcript_path(runtime.store.index.get(KEY) or {})
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    last = [row for row in rows if row["type"] == "compaction"][-1]
    assert last["details"]["summarisedBy"] == "offline/rules"
    body = last["summary"].partition("## Recent turns")[0]
    assert re.findall(r"^## .*$", body, re.MULTILINE)[:5] == list(HEADINGS)
    assert kept in body
