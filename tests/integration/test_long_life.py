"""A long life of one session: what must hold at every step, and what is left at its end.

Every request is legal, fits the window and holds the user's newest words; model calls are bounded; the transcript
only grows, and in proportion; planted identifiers are in the context after every compaction; facts that a flush
saved are found in memory; whoever is killed between two appends goes on with the same context.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from legal import check_legal
from long_life import FACT_EVERY, WINDOW, Died, LifeModel, fact, flush_runs, open_life, request_of, size

from lamella.context.profiles import PROFILES
from lamella.errors import ContextOverflow, ModelError
from lamella.runtime import Runtime
from lamella.sessions.keys import parse_key
from lamella.sessions.transcript import SessionFile
from lamella.text.silent import SILENT
from lamella.types import events as e
from lamella.types.memory import SearchQuery
from lamella.types.message_json import dump_message
from lamella.types.messages import AssistantMessage, text_of

KEY = "agent:main:main"
IDENTIFIERS = 40
RESTART_EVERY = 17
MOST_CALLS = 12  # of a turn, outside the loop
TAIL = 1 << 16


@define
class Witness:
    """Looks at a life from outside, step by step."""

    model: LifeModel
    turns: int
    transcript: Path | None = None
    said: str = ""
    planted: list[str] = field(factory=list)
    sizes: list[int] = field(factory=list)
    errors: list[ModelError] = field(factory=list)
    compactions: int = 0
    deaths: int = 0
    _end: bytes = b""

    def request_is_right(self) -> None:
        """Each request of the turn: legal, within the window, with the user's words."""
        for purpose, request in self.model.calls:
            check_legal(request.messages, PROFILES["anthropic"])
            assert size(request) <= WINDOW
            if purpose == "talk":
                assert self.said in "\n".join(text_of(m.content) for m in request.messages)

    def work_is_bounded(self) -> None:
        outside = [purpose for purpose, _ in self.model.calls if purpose != "talk"]
        assert len(outside) <= MOST_CALLS
        assert flush_runs(self.model.calls) <= 1

    def transcript_only_grew(self) -> None:
        """The end that it had stands where it stood. The whole file is compared at the end of the life."""
        assert self.transcript is not None
        before = self.sizes[-1] if self.sizes else 0
        with self.transcript.open("rb") as file:
            file.seek(max(before - TAIL, 0))
            data = file.read()
        assert data.startswith(self._end)
        self._end = data[-TAIL:]
        self.sizes.append(self.transcript.stat().st_size)

    def identifiers_are_there(self, context: str) -> None:
        assert not [name for name in self.planted if name not in context]

    def grows_in_proportion(self) -> None:
        """A turn of the last third adds about as much as one of the first."""
        third = len(self.sizes) // 3
        first, last = self.sizes[third] / third, (self.sizes[-1] - self.sizes[-third]) / third
        assert last < 1.6 * first


def texts(context: Any) -> str:
    return "\n".join(m.summary if m.role == "compactionSummary" else str(dump_message(m)) for m in context.messages)


def same_after_a_kill(file: SessionFile) -> None:
    """Another process would go on with the same context."""
    mine = [m.summary if m.role == "compactionSummary" else dump_message(m) for m in file.context().messages]  # type: ignore[union-attr]
    read = SessionFile.open(file.path).context().messages
    assert [m.summary if m.role == "compactionSummary" else dump_message(m) for m in read] == mine  # type: ignore[union-attr]


async def one_turn(runtime: Runtime, witness: Witness, turn: int, *, closely: bool) -> None:
    """A turn, which may be the process's last one."""
    text, planted = request_of(witness.model.seed, turn, turns=witness.turns, identifiers=IDENTIFIERS)
    witness.said, told = text, ""
    async with runtime.session() as session:

        def watch(event: e.AgentEvent) -> None:
            nonlocal told
            if isinstance(event, e.MessageUpdate):
                told += event.delta.delta
            if isinstance(event, e.MessageEnd) and closely and session.agent.file.on_disk:
                same_after_a_kill(session.agent.file)

        runtime.listeners[:] = [watch]
        try:
            result = await session.prompt(text)
        finally:
            witness.planted += planted
            witness.transcript = session.agent.file.path
        assert result.compactions <= 3
        witness.compactions += result.compactions
        if result.error is not None:
            witness.errors.append(result.error)
        assert SILENT not in told
        context = session.agent.file.context()
        witness.identifiers_are_there(texts(context))
        assert not any(isinstance(m, AssistantMessage) and "write" in str(m.tool_calls) for m in context.messages)


async def live(home: Path, seed: int, turns: int) -> tuple[Witness, dict[str, Any]]:
    model = LifeModel(seed)
    witness = Witness(model, turns)
    turn = 0
    while turn < turns:
        try:
            async with open_life(home, model) as runtime:
                for _ in range(RESTART_EVERY):
                    if turn == turns:
                        break
                    model.begin(turn)
                    turn += 1
                    await one_turn(runtime, witness, turn - 1, closely=turn % 10 == 0)
                    witness.request_is_right()
                    witness.work_is_bounded()
                    witness.transcript_only_grew()
        except Died:
            witness.deaths += 1
            witness.request_is_right()
            witness.work_is_bounded()
            witness.transcript_only_grew()
    async with open_life(home, model) as runtime:
        entry = runtime.store.index.get(KEY) or {}
        located = runtime.store.require(parse_key(KEY))
        assert not runtime.store.open(located, cwd="", whole=True).damage
        memory = runtime.require_memory()
        for saved in model.saved.values():
            found = memory.search(SearchQuery(saved.what, 6))
            assert any(saved.line in hit.snippet for hit in found.hits), saved
    return witness, entry


def all_is_well(witness: Witness, entry: Mapping[str, Any], turns: int) -> None:
    assert witness.compactions >= turns // 60
    assert entry["compactionCount"] >= witness.compactions
    assert witness.deaths >= turns // 300
    witness.grows_in_proportion()
    # Overflows that are told again and again in one turn, and rate limits that last, are the user's to know.
    assert len(witness.errors) <= turns // 50
    assert all(isinstance(error, ContextOverflow) or error.retryable for error in witness.errors)
    # Facts that were said before the last flush; what is not saved was folded in cycles whose flushes failed.
    planted = {fact(n).what for n in range(witness.model.last_saved // FACT_EVERY)}
    assert len(planted) >= turns // 20
    assert len(witness.model.saved.keys() & planted) >= 0.8 * len(planted)


@pytest.mark.parametrize("seed", [1])
async def test_a_life_of_150_turns(tmp_path: Path, seed: int) -> None:
    all_is_well(*await live(tmp_path, seed, 150), 150)


@pytest.mark.slow
async def test_a_life_of_3000_turns(tmp_path: Path) -> None:
    all_is_well(*await live(tmp_path, 7, 3_000), 3_000)
