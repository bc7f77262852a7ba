"""All three adapters against a real HTTP server that speaks their wire formats."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from attrs import evolve, frozen
from provider_server import Call, Failure, ProviderServer, Reply, Tokens

from lamella.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelTransient,
)
from lamella.models import anthropic, gemini, openai
from lamella.models.endpoint import Endpoint
from lamella.types.messages import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from lamella.types.model import Delta, Done, Model, ModelInfo, ModelRequest, ToolSpec

MAKERS = {"openai": openai.make, "anthropic": anthropic.make, "gemini": gemini.make}
APIS = {"openai": "openai-completions", "anthropic": "anthropic-messages", "gemini": "google-generative-ai"}
WIRES = tuple(MAKERS)
NAMES = {"openai": "some-model", "anthropic": "claude-haiku-4-5", "gemini": "gemini-2.5-flash"}
INFO = ModelInfo(100_000, 8_000, True, True, cost_input=1.0, cost_output=2.0, cost_cache_read=0.5, cost_cache_write=3.0)
SEARCH = ToolSpec(
    "memory_search",
    "Search memory.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
SIGNATURE = base64.b64encode(b"signed \x00\xff thoughts").decode()


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def make(server: ProviderServer, wire: str, **changes: Any) -> Model:
    base = server.url + ("/v1" if wire == "openai" else "")
    endpoint = Endpoint("local", NAMES[wire], INFO, "key-1", base, timeout=5.0)
    return MAKERS[wire](evolve(endpoint, **changes))


@frozen
class Streamed:
    deltas: list[Delta]
    done: Done

    @property
    def message(self) -> AssistantMessage:
        return self.done.message

    @property
    def error(self) -> ModelError:
        assert self.done.error is not None
        return self.done.error


async def run(model: Model, request: ModelRequest | str) -> Streamed:
    if isinstance(request, str):
        request = ModelRequest((UserMessage(request),))
    events = [event async for event in model.stream(request)]
    assert isinstance(events[-1], Done)
    deltas = [event for event in events if isinstance(event, Delta)]
    assert len(deltas) == len(events) - 1, "Done comes once, at the end"
    return Streamed(deltas, events[-1])


@pytest.mark.parametrize("wire", WIRES)
async def test_text_arrives_in_steps(server: ProviderServer, wire: str) -> None:
    server.script([Reply("Grüße, 世界!", tokens=Tokens(20, 17))])
    model = make(server, wire)
    streamed = await run(model, "Hello")

    types = [delta.type for delta in streamed.deltas]
    assert types[:2] == ["start", "text_start"]
    assert types[-1] == "text_end"
    assert set(types[2:-1]) == {"text_delta"}
    assert "".join(delta.delta for delta in streamed.deltas) == "Grüße, 世界!"
    assert [text_of(d.partial.content) for d in streamed.deltas][-1] == "Grüße, 世界!"

    message = streamed.message
    assert streamed.done.error is None
    assert message.content == (TextBlock("Grüße, 世界!"),)
    assert (message.provider, message.model, message.api) == ("local", NAMES[wire], APIS[wire])
    assert (model.provider, model.id, model.api) == ("local", NAMES[wire], APIS[wire])
    assert message.stop_reason == "stop"
    assert message.timestamp is not None


@pytest.mark.parametrize("wire", WIRES)
async def test_usage_keeps_the_cache_apart_and_counts_costs(server: ProviderServer, wire: str) -> None:
    write = 7 if wire == "anthropic" else 0  # the other formats do not report what they put into a cache
    server.script([Reply("Hi", tokens=Tokens(20, 17, 100, write))])
    usage = (await run(make(server, wire), "Hello")).message.usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (20, 17, 100, write)
    assert usage.total_tokens == 137 + write
    expected = (20 * 1.0 + 17 * 2.0 + 100 * 0.5 + write * 3.0) / 1e6
    assert usage.cost.total == pytest.approx(expected)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("interleave", [False, True])
async def test_parallel_calls_in_fragments(server: ProviderServer, wire: str, interleave: bool) -> None:
    calls = (
        Call("memory_search", {"query": 'café "x" \\ 1'}, "call_a"),
        Call("memory_get", {"path": "MEMORY.md", "from": 3}, "call_b"),
    )
    server.script([Reply("Looking.", calls=calls, piece=3, interleave=interleave)])
    streamed = await run(make(server, wire), ModelRequest((UserMessage("Find it"),), tools=(SEARCH,)))

    assert streamed.message.stop_reason == "toolUse"
    assert streamed.message.content[0] == TextBlock("Looking.")
    assert [(c.id, c.name, dict(c.arguments)) for c in streamed.message.tool_calls] == [
        (c.id, c.name, dict(c.arguments)) for c in calls
    ]
    for index, call in enumerate(calls, start=1):
        steps = [d for d in streamed.deltas if d.index == index]
        assert [steps[0].type, steps[-1].type] == ["toolcall_start", "toolcall_end"]
        assert json.loads("".join(d.delta for d in steps)) == call.arguments
        ended = steps[-1].partial.content[index]
        assert isinstance(ended, ToolCall)
        assert dict(ended.arguments) == call.arguments


async def test_arguments_that_are_not_whole_are_never_guessed(server: ProviderServer) -> None:
    cut = Reply(calls=(Call("write", {"path": "a.md", "text": "long " * 9}, "call_a"),), stop="length", piece=10)
    server.script([cut])
    whole = await run(make(server, "openai"), "write")
    assert whole.message.tool_calls[0].arguments["path"] == "a.md"
    assert whole.message.stop_reason == "length"

    server.script([evolve(cut, cut_after=4)])
    broken = await run(make(server, "openai"), "write")
    assert isinstance(broken.error, ModelTransient)
    (call,) = broken.message.tool_calls
    assert call.arguments == {}
    assert call.extra["argumentsText"].startswith('{"path"')
    assert "not JSON" in call.extra["argumentsError"]


async def test_anthropic_thinking_goes_back_byte_for_byte(server: ProviderServer) -> None:
    calls = (Call("memory_search", {"query": "x"}, "toolu_1"),)
    thinking = "Let me ponder.\n\n  Déjà vu… 思考 "
    server.script([Reply("Looking.", thinking, "SIG/+==", ("RED==", "RED2=="), calls), Reply("Done.")])
    model = make(server, "anthropic")
    first = await run(model, "Hello")
    assert first.message.content[:3] == (
        ThinkingBlock(thinking, "SIG/+=="),
        ThinkingBlock("", "RED==", redacted=True),
        ThinkingBlock("", "RED2==", redacted=True),
    )
    assert [d.type for d in first.deltas][1:4:2] == ["thinking_start", "thinking_delta"]

    await run(model, ModelRequest(_with_result(first.message)))
    sent = server.requests[1].body["messages"][1]["content"]
    assert [_uncached(block) for block in sent] == [
        {"type": "thinking", "thinking": thinking, "signature": "SIG/+=="},
        {"type": "redacted_thinking", "data": "RED=="},
        {"type": "redacted_thinking", "data": "RED2=="},
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "toolu_1", "name": "memory_search", "input": {"query": "x"}},
    ]


async def test_gemini_signatures_go_back_on_their_own_parts(server: ProviderServer) -> None:
    calls = (Call("memory_search", {"query": "x"}, "c1", SIGNATURE), Call("memory_get", {"path": "a"}, "c2"))
    text_signature = base64.b64encode(b"text").decode()
    server.script([Reply("Hm.", "Pondering.", text_signature, calls=calls), Reply("Done.")])
    model = make(server, "gemini")
    first = (await run(model, "Hello")).message
    assert first.content[:2] == (ThinkingBlock("Pondering."), TextBlock("Hm.", text_signature))
    assert [c.thought_signature for c in first.tool_calls] == [SIGNATURE, None]

    results = (ToolResultMessage("c1", "memory_search", "one"), ToolResultMessage("c2", "memory_get", "two"))
    await run(model, ModelRequest((UserMessage("Hello"), first, *results)))
    parts = server.requests[1].body["contents"][1]["parts"]
    assert [_plain_base64(part.get("thoughtSignature")) for part in parts] == [None, text_signature, SIGNATURE, None]
    assert parts[0] == {"text": "Pondering.", "thought": True}
    assert parts[2]["functionCall"]["args"] == {"query": "x"}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_openai_thinking_goes_back_in_its_own_field(server: ProviderServer, name: str) -> None:
    calls = (Call("memory_search", {"query": "x"}, "call_1"),)
    server.script([Reply("", "Let me ponder.", calls=calls, thinking_field=name), Reply("Done.")])
    model = make(server, "openai")
    first = (await run(model, "Hello")).message
    assert first.content[0] == ThinkingBlock("Let me ponder.", name)
    await run(model, ModelRequest(_with_result(first)))
    sent = server.requests[1].body["messages"][1]
    assert sent[name] == "Let me ponder."
    assert sent["tool_calls"][0]["id"] == "call_1"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("change", [{"provider": "other"}, {"model": "other"}, {"api": "other"}])
async def test_thinking_of_another_model_stays_behind(
    server: ProviderServer, wire: str, change: dict[str, str]
) -> None:
    model = make(server, wire)
    content = (
        ThinkingBlock("SECRET", "SECRETSIGN"),
        ThinkingBlock("", "SECRETDATA", redacted=True),
        TextBlock("Looking.", "SECRETTEXT"),
        ToolCall("call_1", "memory_search", {"query": "x"}, "SECRETCALL"),
    )
    foreign = AssistantMessage(content, provider="local", model=model.id, api=model.api)
    server.script([Reply("Done.")])
    history = _with_result(evolve(foreign, **change))
    before = repr(history)
    await run(model, ModelRequest(history))
    sent = json.dumps(server.requests[0].body)
    assert "SECRET" not in sent
    assert "Looking." in sent
    assert "memory_search" in sent
    assert repr(history) == before


@pytest.mark.parametrize("wire", WIRES)
async def test_images_reach_models_that_see(server: ProviderServer, wire: str) -> None:
    data = base64.b64encode(b"\x89PNG fake").decode()
    user = UserMessage((TextBlock("Look:"), ImageBlock(data, "image/png")))
    call = AssistantMessage((ToolCall("c1", "camera", {}),), "local", NAMES[wire], APIS[wire])
    result = ToolResultMessage("c1", "camera", (TextBlock("a photo"), ImageBlock(data, "image/png")))
    server.script([Reply("Nice."), Reply("Blind.")])
    await run(make(server, wire), ModelRequest((user, call, result)))
    assert json.dumps(server.requests[0].body).count(data) == 2

    blind = make(server, wire, info=evolve(INFO, supports_images=False))
    await run(blind, ModelRequest((user, call, result)))
    sent = json.dumps(server.requests[1].body)
    assert data not in sent
    assert sent.count("the model does not take images") == 2


@pytest.mark.parametrize("wire", WIRES)
async def test_broken_image_data_does_not_break_the_request(server: ProviderServer, wire: str) -> None:
    server.script([Reply("Hm.")])
    streamed = await run(make(server, wire), ModelRequest((UserMessage((ImageBlock("no base64!", "image/png"),)),)))
    assert streamed.done.error is None
    assert "its data is not base64" in json.dumps(server.requests[0].body)


@pytest.mark.parametrize("wire", WIRES)
async def test_system_prompt_tools_limit_and_key_are_sent(server: ProviderServer, wire: str) -> None:
    server.script([Reply("Ok.")])
    model = make(server, wire, headers={"x-team": "ferns"})
    await run(model, ModelRequest((UserMessage("Hi"),), "You are terse.", (SEARCH,), max_tokens=5_000))
    request = server.requests[0]
    sent = json.dumps(request.body)
    assert "You are terse." in sent
    assert '"memory_search"' in sent
    assert "5000" in sent
    assert "key-1" in " ".join(request.headers.values())
    assert request.headers["x-team"] == "ferns"


async def test_servers_that_copy_openai_get_the_plain_dialect(server: ProviderServer) -> None:
    server.script([Reply("Ok.")])
    await run(make(server, "openai"), ModelRequest((UserMessage("Hi"),), tools=(SEARCH,), max_tokens=100))
    body = server.requests[0].body
    assert body["max_tokens"] == 100
    assert "max_completion_tokens" not in body
    assert "strict" not in body["tools"][0]["function"]


async def test_openai_organisation_is_not_told_to_others(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    server.script([Reply("Ok.")])
    await run(make(server, "openai", api_key=""), "Hi")
    assert "secret" not in " ".join(server.requests[0].headers.values())


@pytest.mark.parametrize("wire", WIRES)
async def test_failed_tool_results_keep_their_text(server: ProviderServer, wire: str) -> None:
    call = AssistantMessage((ToolCall("c1", "read", {"path": "x"}),), "local", NAMES[wire], APIS[wire])
    result = ToolResultMessage("c1", "read", (TextBlock("no such file"),), is_error=True)
    server.script([Reply("Oh.")])
    await run(make(server, wire), ModelRequest((UserMessage("Read x"), call, result)))
    body = server.requests[0].body
    if wire == "openai":
        assert body["messages"][-1]["content"] == "no such file"
    elif wire == "anthropic":
        block = _uncached(body["messages"][-1]["content"][0])
        assert (block["tool_use_id"], block["is_error"]) == ("c1", True)
        assert "no such file" in json.dumps(block["content"])
    else:
        assert body["contents"][-1]["parts"][0]["functionResponse"]["response"] == {"error": "no such file"}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure(401, "bad key", "authentication_error"), ModelAuthError),
        (Failure(404, "no such model", "not_found_error"), ModelRejected),
        (Failure(400, "temperature: out of range", "invalid_request_error"), ModelRejected),
        (Failure(500, "boom", "api_error"), ModelTransient),
        (Failure(503, "busy", "unavailable"), ModelTransient),
        (Failure(529, "Overloaded", "overloaded_error"), ModelTransient),
        (Failure(400, "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"), ContextOverflow),
        (Failure(400, "request (5000 tokens) exceeds the available context size (4096 tokens)"), ContextOverflow),
        (Failure(500, "prompt too long; exceeded max context length by 4 tokens"), ContextOverflow),
        (Failure(400, "context window exceeds limit"), ContextOverflow),
        (Failure(413, "request too large", "request_too_large"), ContextOverflow),
        (Failure(413, body=""), ContextOverflow),
        (
            Failure(413, "Request too large on tokens per minute (TPM): Limit 6000", "rate_limit_exceeded"),
            ModelRateLimited,
        ),
        (Failure(429, "quota", "insufficient_quota"), ModelRejected),
        (Failure(402, "pay first", "billing_error"), ModelRejected),
    ],
    ids=lambda value: f"{value.status}-{value.message[:20]}" if isinstance(value, Failure) else "",
)
async def test_failures_come_as_the_last_event(
    server: ProviderServer, wire: str, failure: Failure, kind: type[ModelError]
) -> None:
    server.script([failure])
    streamed = await run(make(server, wire), "Hi")
    assert streamed.deltas == []
    assert type(streamed.error) is kind
    assert streamed.error.status == failure.status
    assert streamed.message.stop_reason == "error"
    assert streamed.message.content == ()
    assert streamed.message.error_message == str(streamed.error)
    assert failure.message in str(streamed.error)
    assert len(server.requests) == 1, "adapters never retry"


@pytest.mark.parametrize("wire", WIRES)
async def test_a_web_page_for_an_error_is_cut_short(server: ProviderServer, wire: str) -> None:
    server.script([Failure(502, body="<html>Bad Gateway</html>" * 10_000)])
    error = (await run(make(server, wire), "Hi")).error
    assert isinstance(error, ModelTransient)
    assert len(str(error)) < 3_000


@pytest.mark.parametrize("wire", WIRES)
async def test_rate_limits_say_when_to_come_back(server: ProviderServer, wire: str) -> None:
    server.script([Failure(429, "slow down", "rate_limit_error", {"retry-after": "7"})])
    error = (await run(make(server, wire), "Hi")).error
    assert isinstance(error, ModelRateLimited)
    assert error.retry_after == 7.0
    assert len(server.requests) == 1


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_inside_the_stream_keeps_what_had_arrived(server: ProviderServer, wire: str) -> None:
    failure = Failure(529, "Overloaded, try again", "overloaded_error")
    server.script([Reply("Half an answer", fail_after=4, failure=failure)])
    streamed = await run(make(server, wire), "Hi")
    assert isinstance(streamed.error, ModelTransient)
    assert "Overloaded" in str(streamed.error)
    text = text_of(streamed.message.content)
    assert text
    assert "Half an answer".startswith(text)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_cut_connection_is_transient(server: ProviderServer, wire: str) -> None:
    server.script([Reply("Half an answer that never ends", cut_after=4)])
    streamed = await run(make(server, wire), "Hi")
    assert isinstance(streamed.error, ModelTransient)
    assert streamed.message.stop_reason == "error"
    assert "Half an answer".startswith(text_of(streamed.message.content)[:14])


async def test_a_server_that_is_not_there_is_transient() -> None:
    with ProviderServer() as gone:
        pass
    for wire in WIRES:
        error = (await run(make(gone, wire), "Hi")).error
        assert isinstance(error, ModelTransient)
        assert "onnection" in str(error)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_silent_server_runs_into_the_time_limit(server: ProviderServer, wire: str) -> None:
    server.script([Reply("Half an answer", hold_after=3)])
    streamed = await run(make(server, wire, timeout=0.3), "Hi")
    assert isinstance(streamed.error, ModelTransient)


@pytest.mark.parametrize("wire", WIRES)
async def test_cancelling_closes_the_connection(server: ProviderServer, wire: str) -> None:
    server.script([Reply("Half an answer", hold_after=3), Reply("Still here")])
    model = make(server, wire)
    started = asyncio.Event()

    async def consume() -> None:
        stream: AsyncIterator[Any] = model.stream(ModelRequest((UserMessage("Hi"),)))
        async with aclosing(stream):
            async for event in stream:
                assert isinstance(event, Delta)
                if event.type == "text_delta" or event.type == "start":
                    started.set()

    task = asyncio.create_task(consume())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.disconnected.wait, 5.0)
    assert text_of((await run(model, "Again")).message.content) == "Still here"


@pytest.mark.parametrize("wire", WIRES)
async def test_stop_reasons(server: ProviderServer, wire: str) -> None:
    withheld = {"openai": "content_filter", "anthropic": "refusal", "gemini": "SAFETY"}[wire]
    server.script([Reply("cut", stop="length"), Reply("no", stop=withheld)])
    model = make(server, wire)
    cut = await run(model, "Hi")
    assert (cut.message.stop_reason, cut.done.error) == ("length", None)
    refused = await run(model, "Hi")
    assert isinstance(refused.error, ModelRejected)
    assert refused.message.stop_reason == "error"


@pytest.mark.parametrize("wire", WIRES)
def test_one_model_serves_several_event_loops(server: ProviderServer, wire: str) -> None:
    server.script([Reply("one"), Reply("two")])
    model = make(server, wire)
    for expected in ("one", "two"):
        assert text_of(asyncio.run(run(model, "Hi")).message.content) == expected


@pytest.mark.parametrize("wire", WIRES)
async def test_extra_overflow_patterns_reach_the_adapter(server: ProviderServer, wire: str) -> None:
    server.script([Failure(400, "rucksack voll")])
    model = make(server, wire, overflow_patterns=("rucksack voll",))
    assert isinstance((await run(model, "Hi")).error, ContextOverflow)


async def test_anthropic_thinking_leaves_room_for_the_answer(server: ProviderServer) -> None:
    server.script([Reply("a"), Reply("b"), Reply("c")])
    model = make(server, "anthropic")
    for limit in (8_000, 4_000, 1_500):
        await run(model, ModelRequest((UserMessage("Hi"),), max_tokens=limit, thinking="high", temperature=0.2))
    sent = [request.body for request in server.requests]
    assert sent[0]["thinking"] == {"type": "enabled", "budget_tokens": 4_000}
    assert sent[1]["thinking"] == {"type": "enabled", "budget_tokens": 2_000}
    assert "thinking" not in sent[2]
    assert all("temperature" not in body for body in sent)


def _with_result(reply: AssistantMessage) -> tuple[UserMessage, AssistantMessage, ToolResultMessage]:
    call = reply.tool_calls[0]
    return UserMessage("Hello"), reply, ToolResultMessage(call.id, call.name, (TextBlock("found"),))


def _uncached(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"}


def _plain_base64(text: str | None) -> str | None:
    """Clients may write base64 for URLs; the bytes are what counts."""
    return None if text is None else base64.b64encode(base64.urlsafe_b64decode(text)).decode()
