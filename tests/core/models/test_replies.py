"""Replies put together from pieces: whatever the pieces, the whole is what was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import messages as pai

from lamella.models.blocks import BlockMapping, complete, read_arguments
from lamella.models.replies import ReplyBuilder
from lamella.types.messages import TextBlock, ToolCall
from lamella.types.model import Delta

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(max_size=6), JSON, max_size=3)


def cut(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


@given(ARGUMENTS, st.data())
def test_only_whole_arguments_are_read(arguments: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(arguments)
    assert read_arguments(text) == (arguments, {})
    part = text[: data.draw(st.integers(0, len(text) - 1))]
    assert not complete(pai.ToolCallPart("tool", part))
    read, extra = read_arguments(part)
    assert read == {}
    assert not part or extra["argumentsText"] == part


@given(st.lists(JSON.filter(lambda v: not isinstance(v, dict)), min_size=1, max_size=3))
def test_arguments_that_are_no_object_are_refused(values: list[Any]) -> None:
    for value in (*values, values):
        read, extra = read_arguments(json.dumps(value))
        assert read == {}
        assert "expected an object" in extra["argumentsError"]


@given(st.text(min_size=1), st.lists(ARGUMENTS, max_size=3), st.integers(1, 7), st.randoms())
def test_any_pieces_in_any_turns(text: str, calls: list[dict[str, Any]], size: int, random: Any) -> None:
    builder = ReplyBuilder.begin("p", "m", "a", BlockMapping())
    deltas: list[Delta] = []

    def feed(event: pai.ModelResponseStreamEvent) -> None:
        deltas.extend(builder.feed(event))

    feed(pai.PartStartEvent(index=0, part=pai.TextPart("")))
    for piece in cut(text, size):
        feed(pai.PartDeltaEvent(index=0, delta=pai.TextPartDelta(piece)))
    feed(pai.PartEndEvent(index=0, part=pai.TextPart(text)))
    waiting = {n: cut(json.dumps(c), size) for n, c in enumerate(calls, 1)}
    for n in waiting:
        feed(pai.PartStartEvent(index=n, part=pai.ToolCallPart("tool", None, f"call_{n}")))
    while waiting:
        n = random.choice(list(waiting))
        feed(pai.PartDeltaEvent(index=n, delta=pai.ToolCallPartDelta(args_delta=waiting[n].pop(0))))
        if not waiting[n]:
            del waiting[n]
            feed(pai.PartEndEvent(index=n, part=pai.ToolCallPart("tool", None, f"call_{n}")))
    deltas.extend(builder.close_blocks())

    expected = (TextBlock(text), *(ToolCall(f"call_{n}", "tool", c) for n, c in enumerate(calls, 1)))
    assert builder.partial.content == expected
    for n in range(len(expected)):
        steps = [d.type.rpartition("_")[2] for d in deltas if d.index == n]
        assert steps[0] == "start"
        assert steps[-1] == "end"
        assert set(steps[1:-1]) == {"delta"}
    lengths = [len(d.partial.content) for d in deltas]
    assert lengths == sorted(lengths), "what has arrived never goes away"


@pytest.mark.parametrize("depth", [200, 100_000])
def test_arguments_that_nest_deeply_are_a_fault_of_the_call(depth: int) -> None:
    text = '{"a": ' + "[" * depth + "]" * depth + "}"
    read, extra = read_arguments(text)
    assert (read, extra["argumentsError"]) == ({}, "lists and objects in one another more than 100 times")
    complete(pai.ToolCallPart("tool", text))
    if depth == 200:
        assert read_arguments(json.loads(text))[1].keys() == {"argumentsError"}
