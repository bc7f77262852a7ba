"""Invariants of history repair over generated transcripts, for every provider profile.

I1 calls and results pair, I2 ids are unique and within limits, I3 no empty reply, I4 turns
alternate, I5 the newest user message stands once, I6 everything is valid text, I14 twice is once, I15
nothing that was given is changed. The runs marked slow try 10,000 histories each.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from legal import check_legal, check_newest, check_order, marked
from transcripts import MESSAGE, STEP, transcript_of

from lamella.context.profiles import PROFILES
from lamella.context.repair import repair
from lamella.context.repairs.pairing import pair_results
from lamella.sessions.transcript import SessionFile
from lamella.text.conversation import convert_to_model_messages
from lamella.text.unicode import well_formed
from lamella.types.message_json import dump_message, parse_message
from lamella.types.messages import (
    AssistantMessage,
    Message,
    ModelMessage,
    TextBlock,
    UserMessage,
    blocks_of,
)

OFTEN = settings(max_examples=10_000, deadline=None)
BY_DEFAULT = settings(max_examples=60, deadline=None)


def own(message: AssistantMessage) -> bool:
    return message.model == "m"


def check_repair(messages: tuple[ModelMessage, ...], name: str) -> None:
    rules = PROFILES[name]
    before = _snapshot(messages)
    once = repair(messages, rules, same_model=own)
    check_legal(once, rules)
    if any(isinstance(m, UserMessage) for m in messages):
        check_newest(repair(marked(messages), rules, same_model=own))
    check_order([t for m in messages for t in _said(m)], once)
    assert repair(once, rules, same_model=own) is once
    assert repair(messages, rules, same_model=own) == once
    assert _snapshot(messages) == before
    assert pair_results(once).messages is once


def _snapshot(messages: tuple[ModelMessage, ...]) -> str:
    return json.dumps([dump_message(m) for m in messages])


def _said(message: ModelMessage) -> list[str]:
    """The texts of a user message as they must arrive, blank ones aside."""
    if not isinstance(message, UserMessage):
        return []
    texts = (b.text for b in blocks_of(message.content) if isinstance(b, TextBlock))
    return [well_formed(t) for t in texts if t.strip()]


def messages_of(folder: Path, steps: list[tuple[str, Any, int]]) -> tuple[Message, ...]:
    path = folder / "s.jsonl"
    path.write_bytes(transcript_of(steps))
    return tuple(SessionFile.open(path).context().messages)


def check_transcript(folder: Path, steps: list[tuple[str, Any, int]]) -> None:
    messages = convert_to_model_messages(messages_of(folder, steps))
    for name in PROFILES:
        check_repair(messages, name)


@BY_DEFAULT
@given(steps=st.lists(STEP, max_size=14))
def test_any_transcript_becomes_legal(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    check_transcript(tmp_path_factory.getbasetemp(), steps)


@pytest.mark.slow
@OFTEN
@given(steps=st.lists(STEP, max_size=14))
def test_any_transcript_becomes_legal_often(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    check_transcript(tmp_path_factory.getbasetemp(), steps)


# Messages that never were in a file may hold what a file cannot: halves of characters.
MESSAGES = st.lists(MESSAGE.map(parse_message), max_size=14).map(lambda m: convert_to_model_messages(m))


@BY_DEFAULT
@given(messages=MESSAGES, name=st.sampled_from(sorted(PROFILES)))
def test_any_messages_become_legal(messages: tuple[ModelMessage, ...], name: str) -> None:
    check_repair(messages, name)


@BY_DEFAULT
@given(messages=MESSAGES, name=st.sampled_from(sorted(PROFILES)), cut=st.integers(0, 14))
def test_repair_after_a_cut_is_legal_too(messages: tuple[ModelMessage, ...], name: str, cut: int) -> None:
    rules = PROFILES[name]
    check_legal(repair(repair(messages, rules, same_model=own)[cut:], rules, same_model=own), rules)


@pytest.mark.slow
@OFTEN
@given(messages=MESSAGES, name=st.sampled_from(sorted(PROFILES)), cut=st.integers(0, 14))
def test_any_messages_become_legal_often(messages: tuple[ModelMessage, ...], name: str, cut: int) -> None:
    check_repair(messages, name)
    check_repair(messages[cut:], name)
