from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from lamella.errors import ContextOverflow, ModelAborted, ModelRateLimited, ModelRejected, UsageError
from lamella.models.scripted import ScriptedModel, Step
from lamella.types.messages import (
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    UserMessage,
)
from lamella.types.model import Delta, Done, Model, ModelRequest

STREAMS = json.loads((Path(__file__).parents[2] / "data" / "models" / "pi_streams.json").read_text(encoding="utf-8"))
REQUEST = ModelRequest([UserMessage("go")])


async def play(model, request=REQUEST):
    return [event async for event in model.stream(request)]


def in_short(message: AssistantMessage) -> dict:
    """A message as the recording of Pi's streams shows it."""
    parts = []
    for block in message.content:
        match block:
            case TextBlock(text):
                parts.append(text)
            case ThinkingBlock(thinking):
                parts.append(f"<thinking {thinking}>")
            case ToolCall(call_id, name, arguments):
                parts.append(f"<call {call_id} {name} {json.dumps(arguments)}>")
    short = {"role": "assistant", "text": "|".join(parts), "stopReason": message.stop_reason}
    return short | ({"errorMessage": message.error_message} if message.error_message else {})


def as_loop_events(events) -> list[dict]:
    """Stream events as an agent loop reports them."""
    out = []
    for event in events:
        if isinstance(event, Done):
            if not out:
                out.append({"type": "message_start", "message": in_short(event.message)})
            out.append({"type": "message_end", "message": in_short(event.message)})
        elif event.type == "start":
            out.append({"type": "message_start", "message": in_short(event.partial)})
        else:
            out.append({"type": "message_update", "message": in_short(event.partial), "delta": event.type})
    return out


@pytest.mark.parametrize("recording", STREAMS, ids=lambda r: r["name"])
async def test_streams_equal_pi(recording):
    names = {"stop": "stopReason", "abortAfterBlock": "abortInBlock"}
    script = [{names.get(k, k): v for k, v in step.items()} for step in recording["script"]]
    model = ScriptedModel(script)
    events = [event for _ in script for event in as_loop_events(await play(model))]
    assert events == recording["events"]


async def test_requests_are_kept_and_an_exhausted_script_says_so():
    model = ScriptedModel(["one"])
    assert isinstance(model, Model)
    await play(model)
    assert model.steps_left == 0
    (done,) = await play(model, ModelRequest([UserMessage("again")]))
    assert isinstance(done.error, ModelRejected)
    assert done.message.error_message == "script has no step 2"
    assert done.message.stop_reason == "error"
    assert [r.messages[0].content for r in model.requests] == ["go", "again"]


async def test_deltas_hold_the_text_of_their_block():
    call = ToolCall("1", "read", {"path": "a", "n": 1})
    events = await play(ScriptedModel([Step((ThinkingBlock("hm", "sig"), TextBlock("hello"), call), Usage(input=5))]))
    deltas = [(e.type, e.index, e.delta) for e in events if isinstance(e, Delta) and e.delta]
    assert deltas == [
        ("thinking_delta", 0, "hm"),
        ("text_delta", 1, "hello"),
        ("toolcall_delta", 2, '{"path":"a","n":1}'),
    ]
    message = events[-1].message
    assert (message.stop_reason, message.usage.input) == ("toolUse", 5)
    assert (message.provider, message.model, message.api) == ("scripted", "script", "scripted")


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ({"error": "prompt is too long: 9 tokens > 8 maximum"}, ContextOverflow),
        ({"throwBeforeStart": "slow down", "status": 429, "retryAfter": 7}, ModelRateLimited),
        ({"text": "half", "abortInBlock": 0}, ModelAborted),
        ({"stopReason": "aborted"}, ModelAborted),
        ({"stopReason": "error"}, ModelRejected),
    ],
)
async def test_failures_are_classified(step, kind):
    done = (await play(ScriptedModel([step])))[-1]
    assert type(done.error) is kind
    assert done.message.failed
    assert done.message.error_message == str(done.error)
    if kind is ModelRateLimited:
        assert (done.error.retry_after, done.error.status) == (7, 429)


async def test_a_step_may_depend_on_the_request():
    model = ScriptedModel([lambda request: f"you said {request.messages[-1].content}"])
    assert (await play(model))[-1].message.content == (TextBlock("you said go"),)


async def test_a_waiting_step_can_be_cancelled():
    task = asyncio.create_task(play(ScriptedModel([{"text": "late", "delayMs": 60_000}])))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_script_file(tmp_path):
    path = tmp_path / "script.json"
    step = {"content": [{"type": "toolCall", "id": "1", "name": "read", "arguments": {}}], "usage": {"totalTokens": 9}}
    path.write_text(json.dumps({"id": "demo", "contextWindow": 5000, "steps": [step, "bye"]}))
    model = ScriptedModel.from_file(path, provider="test")
    assert (model.id, model.context_window, model.provider, model.steps_left) == ("demo", 5000, "test", 2)
    assert (await play(model))[-1].message.usage.total_tokens == 9
    assert (await play(model))[-1].message.content == (TextBlock("bye"),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "script.json:1: not JSON: "),
        ("{}", "script.json: expected a list of steps"),
        ('{"steps": [], "name": "x"}', "script.json: unknown key 'name'; known are contextWindow, id, steps"),
        ('{"steps": [], "id": 5}', "script.json: id is 5; expected text"),
        ('["fine", 7]', "script.json, step 2: expected a text or an object, got int"),
        ('[{"txt": "x"}]', "script.json, step 1: unknown key 'txt'"),
        ('[{"text": 5}]', "script.json, step 1: text is 5; expected text"),
        ('[{"delayMs": true}]', "script.json, step 1: delayMs is true; expected a number"),
        ('[{"stopReason": "end"}]', "script.json, step 1: stopReason 'end'; expected one of stop, length"),
        ('[{"text": "x", "content": []}]', "script.json, step 1: give text or content, not both"),
        ('[{"content": [{"type": "text"}]}]', "script.json, step 1: content[0] is no text, thinking or toolCall"),
        ('[{"text": "x", "abortInBlock": 1}]', "script.json, step 1: abortInBlock 1; the step has 1 blocks"),
    ],
)
def test_mistakes_in_a_script_file_are_named(tmp_path, content, message):
    path = tmp_path / "script.json"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        ScriptedModel.from_file(path)
    assert str(caught.value).removeprefix(f"{tmp_path}/").startswith(message)


def test_a_missing_script_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"none\.json: No such file"):
        ScriptedModel.from_file(tmp_path / "none.json")
