"""Requests built from recorded sessions and from hostile histories are taken by servers as strict as the real ones.

The requests go through the adapters to a server on the loopback, which answers with status 400 to
whatever breaks its rules. OpenAI's Responses has no adapter; there the rules look at the repaired
history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import turn_rules as rules
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from pi_golden import session_cases
from provider_server import ProviderServer, Reply
from transcripts import MESSAGE

from lamella.agent.request import legal_history
from lamella.context.profiles import PROFILES
from lamella.context.repair import repair
from lamella.context.repairs.responses import is_reasoning_item
from lamella.models import anthropic, gemini, openai
from lamella.models.endpoint import Endpoint
from lamella.sessions.transcript import SessionFile
from lamella.text.conversation import convert_to_model_messages
from lamella.types.message_json import parse_message
from lamella.types.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from lamella.types.model import Done, Model, ModelInfo, ModelRequest

INFO = ModelInfo(1_000_000, 8_000, True, True)
PROMPT = UserMessage((TextBlock("and now?"),))


@frozen
class Side:
    """A provider: its adapter, its name, and its server's rules."""

    provider: str
    maker: Any
    rule: rules.Rule
    path: str = ""
    info: ModelInfo = INFO


SIDES = {
    "anthropic": Side("anthropic", anthropic.make, rules.anthropic),
    "openai-chat": Side("local", openai.make, rules.openai_chat, "/v1"),
    "gemini": Side("gemini", gemini.make, rules.gemini),
    # Its models with eyes take no images in tool results.
    "mistral": Side("mistral", openai.make, rules.mistral, "/v1", evolve(INFO, supports_images=False)),
}
every_side = pytest.mark.parametrize("side", SIDES.values(), ids=SIDES)


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def model_of(side: Side, server: ProviderServer) -> Model:
    endpoint = Endpoint(side.provider, "some-model", side.info, "key", server.url + side.path, timeout=10.0)
    made: Model = side.maker(endpoint)
    return made


def as_if_by(model: Model, messages: Sequence[Message]) -> list[Message]:
    """The messages as if this model had written all replies, so that thinking and signatures go back."""
    own = {"provider": model.provider, "model": model.id, "api": model.api}
    return [evolve(m, **own) if isinstance(m, AssistantMessage) else m for m in messages]


async def refusal(model: Model, messages: Sequence[Message]) -> str:
    """What the server has against a history, or nothing."""
    request = ModelRequest(legal_history([*messages, PROMPT], model), "system")
    async for event in model.stream(request):
        if isinstance(event, Done):
            return str(event.error or "")
    return "the stream ended without a reply"


async def refusals(side: Side, server: ProviderServer, histories: Sequence[Sequence[Message]], own: bool) -> list[str]:
    model = model_of(side, server)
    found = []
    for messages in histories:
        server.reset()
        server.script([rules.refusing(side.rule, Reply("ok"))])
        found.append(await refusal(model, as_if_by(model, messages) if own else messages))
    return found


@pytest.fixture(scope="module")
def recorded() -> dict[str, Sequence[Message]]:
    """The contexts of the recorded sessions by their file's name."""
    files = [session for _, session in session_cases()]
    return {f.name: SessionFile.open(f).context().messages for f in files if f.stat().st_size}


@every_side
@pytest.mark.parametrize(
    "own", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["same model", "another model"]
)
async def test_recorded_sessions_are_taken(
    side: Side, own: bool, server: ProviderServer, recorded: dict[str, Sequence[Message]]
) -> None:
    found = await refusals(side, server, list(recorded.values()), own)
    assert {name: fault for name, fault in zip(recorded, found, strict=True) if fault} == {}


HOSTILE = st.lists(MESSAGE.map(parse_message), max_size=14)


@every_side
@settings(max_examples=15, deadline=None)
@given(messages=HOSTILE, own=st.booleans())
def test_hostile_histories_are_taken(side: Side, server: ProviderServer, messages: list[Message], own: bool) -> None:
    assert asyncio.run(refusals(side, server, [messages], own)) == [""]


# --- the servers refuse what they should -------------------------------------------------------------------------


def sent(side: Side, messages: Sequence[Any], server: ProviderServer) -> str:
    """The answer to a history that was not repaired."""

    async def send() -> str:
        server.reset()
        server.script([rules.refusing(side.rule, Reply("ok"))])
        async for event in model_of(side, server).stream(ModelRequest(messages, "system")):
            if isinstance(event, Done):
                return str(event.error or "")
        return ""

    return asyncio.run(send())


CALL = AssistantMessage((ToolCall("call_1", "read", {}),))
RESULT = ToolResultMessage("call_1", "read", (TextBlock("x"),))
BROKEN = {
    "a call without a result": [PROMPT, CALL, PROMPT],
    "a result without a call": [PROMPT, RESULT, PROMPT],
}


@every_side
@pytest.mark.parametrize("messages", BROKEN.values(), ids=BROKEN)
def test_broken_histories_are_refused(side: Side, messages: Sequence[Any], server: ProviderServer) -> None:
    assert sent(side, messages, server)


# --- OpenAI's Responses --------------------------------------------------------------------------------------------


def input_items(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """A repaired history as input items. `reasoned`: a reasoning item stands before it in its reply."""
    items: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            items.append({"type": "function_call_output", "call_id": message.tool_call_id.partition("|")[0]})
        elif isinstance(message, UserMessage):
            items.append({"type": "message", "role": "user"})
        else:
            items += _reply_items(message)
    return items


def _reply_items(reply: AssistantMessage) -> Iterator[dict[str, Any]]:
    reasoned = False
    for block in reply.content:
        if is_reasoning_item(block):
            reasoned = True
            yield {"type": "reasoning"}
        elif isinstance(block, TextBlock) and block.text:
            yield {"type": "message", "role": "assistant"}
        elif isinstance(block, ToolCall):
            call_id, _, item_id = block.id.partition("|")
            yield {"type": "function_call", "call_id": call_id, "id": item_id, "reasoned": reasoned}


def responses_fault(messages: Sequence[Message], own: bool) -> str:
    history = repair(convert_to_model_messages(messages), PROFILES["openai-responses"], same_model=lambda _m: own)
    return next(rules.responses({"input": input_items(history)}), "")


@pytest.mark.parametrize("own", [True, False], ids=["same model", "another model"])
def test_responses_takes_recorded_sessions(own: bool, recorded: dict[str, Sequence[Message]]) -> None:
    found = {name: responses_fault(messages, own) for name, messages in recorded.items()}
    assert {name: fault for name, fault in found.items() if fault} == {}


@settings(max_examples=60, deadline=None)
@given(messages=HOSTILE, own=st.booleans())
def test_responses_takes_hostile_histories(messages: list[Message], own: bool) -> None:
    assert responses_fault(messages, own) == ""
