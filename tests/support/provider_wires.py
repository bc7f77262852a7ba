"""What a scripted provider says, written in the three wire formats.

A behaviour is the same whatever the format: `Reply`, or `Failure` before the stream opens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import Factory, frozen


@frozen
class Call:
    """A tool call. `signature` is Gemini's thought signature, base64."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""
    signature: str = ""


@frozen
class Tokens:
    """Token counts in lamella's terms: `input` excludes what the cache held or took."""

    input: int = 20
    output: int = 17
    cache_read: int = 0
    cache_write: int = 0


@frozen
class Reply:
    """A streamed answer: thinking, redacted thinking, text, then calls, in pieces of `piece` characters.

    `cut_after`, `fail_after` and `hold_after` count stream events: after so many the connection is
    cut, an error object is sent (`failure`), or nothing more comes until the client goes away.
    `stop` is "stop", "length" or a raw reason of the format.
    `interleave` sends the pieces of parallel calls in turns where the format can.
    """

    text: str = ""
    thinking: str = ""
    signature: str = ""
    redacted: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    tokens: Tokens = Tokens()
    stop: str = "stop"
    piece: int = 4
    interleave: bool = False
    cut_after: int | None = None
    fail_after: int | None = None
    failure: Failure | None = None
    hold_after: int | None = None
    thinking_field: str = "reasoning_content"


@frozen
class Failure:
    """An answer with an error status. `body` replaces the usual error object; "" sends none."""

    status: int
    message: str = ""
    code: str = ""
    headers: Mapping[str, str] = Factory(dict)
    body: Any = None


Behaviour: TypeAlias = Reply | Failure


def pieces(text: str, size: int) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _data(payload: Any) -> str:
    return f"data: {json.dumps(payload, ensure_ascii=False)}\n\n"


class OpenAIChat:
    """Chat completions."""

    @staticmethod
    def error(failure: Failure) -> Any:
        return {"error": {"message": failure.message, "type": failure.code or None, "code": failure.code or None}}

    @staticmethod
    def stream_error(failure: Failure) -> str:
        return _data(OpenAIChat.error(failure))

    @staticmethod
    def events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}

        def chunk(delta: Any, finish: str | None = None) -> str:
            return _data({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": ""})
        for part in pieces(reply.thinking, reply.piece):
            yield chunk({reply.thinking_field: part})
        for part in pieces(reply.text, reply.piece):
            yield chunk({"content": part})
        for delta in OpenAIChat._calls(reply):
            yield chunk({"tool_calls": [delta]})
        finish = "tool_calls" if reply.calls and reply.stop == "stop" else reply.stop
        yield chunk({}, finish)
        if (body.get("stream_options") or {}).get("include_usage"):
            yield _data({**base, "choices": [], "usage": OpenAIChat._usage(reply.tokens)})
        yield "data: [DONE]\n\n"

    @staticmethod
    def _calls(reply: Reply) -> Iterator[Any]:
        streams: list[list[Any]] = []
        for index, call in enumerate(reply.calls):
            head = {"name": call.name, "arguments": ""}
            first = {"index": index, "id": call.id, "type": "function", "function": head}
            texts = pieces(json.dumps(call.arguments, ensure_ascii=False), reply.piece)
            streams.append([first, *({"index": index, "function": {"arguments": t}} for t in texts)])
        if not reply.interleave:
            yield from (delta for stream in streams for delta in stream)
            return
        while any(streams):
            for stream in streams:
                if stream:
                    yield stream.pop(0)

    @staticmethod
    def _usage(tokens: Tokens) -> Any:
        sent = tokens.input + tokens.cache_read
        return {
            "prompt_tokens": sent,
            "completion_tokens": tokens.output,
            "total_tokens": sent + tokens.output,
            "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
        }


class Anthropic:
    """Messages."""

    @staticmethod
    def error(failure: Failure) -> Any:
        return {"type": "error", "error": {"type": failure.code or "api_error", "message": failure.message}}

    @staticmethod
    def stream_error(failure: Failure) -> str:
        return Anthropic._event("error", Anthropic.error(failure))

    @staticmethod
    def _event(kind: str, payload: Mapping[str, Any]) -> str:
        return f"event: {kind}\n{_data({'type': kind, **payload})}"

    @staticmethod
    def events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
        event = Anthropic._event
        t = reply.tokens
        usage = {
            "input_tokens": t.input,
            "output_tokens": 1,
            "cache_read_input_tokens": t.cache_read,
            "cache_creation_input_tokens": t.cache_write,
        }
        message: dict[str, Any] = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield event("message_start", {"message": message})
        for index, (block, deltas) in enumerate(Anthropic._blocks(reply)):
            yield event("content_block_start", {"index": index, "content_block": block})
            for delta in deltas:
                yield event("content_block_delta", {"index": index, "delta": delta})
            yield event("content_block_stop", {"index": index})
        names = {"stop": "tool_use" if reply.calls else "end_turn", "length": "max_tokens"}
        stop = names.get(reply.stop, reply.stop)
        ending = {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": t.output}}
        yield event("message_delta", ending)
        yield event("message_stop", {})

    @staticmethod
    def _blocks(reply: Reply) -> Iterator[tuple[Any, Sequence[Any]]]:
        if reply.thinking or reply.signature:
            deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(reply.thinking, reply.piece)]
            deltas.append({"type": "signature_delta", "signature": reply.signature})
            yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
        for data in reply.redacted:
            yield {"type": "redacted_thinking", "data": data}, ()
        if reply.text:
            texts = [{"type": "text_delta", "text": p} for p in pieces(reply.text, reply.piece)]
            yield {"type": "text", "text": ""}, texts
        for call in reply.calls:
            raw = json.dumps(call.arguments, ensure_ascii=False)
            inputs = [{"type": "input_json_delta", "partial_json": p} for p in pieces(raw, reply.piece)]
            yield {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}, inputs


class Gemini:
    """generateContent. Calls come whole; the signature of a text comes with its last piece."""

    @staticmethod
    def error(failure: Failure) -> Any:
        status = failure.code or "INVALID_ARGUMENT"
        return {"error": {"code": failure.status, "message": failure.message, "status": status}}

    @staticmethod
    def stream_error(failure: Failure) -> str:
        return _data(Gemini.error(failure))

    @staticmethod
    def events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
        parts: list[dict[str, Any]] = []
        parts += [{"text": p, "thought": True} for p in pieces(reply.thinking, reply.piece)]
        parts += [{"text": p} for p in pieces(reply.text, reply.piece)]
        if reply.signature and parts:
            parts[-1]["thoughtSignature"] = reply.signature
        for call in reply.calls:
            part: dict[str, Any] = {"functionCall": {"name": call.name, "args": call.arguments, "id": call.id}}
            if call.signature:
                part["thoughtSignature"] = call.signature
            parts.append(part)
        for part in parts:
            yield _data({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]})
        names = {"stop": "STOP", "length": "MAX_TOKENS"}
        sent = reply.tokens.input + reply.tokens.cache_read
        usage = {
            "promptTokenCount": sent,
            "candidatesTokenCount": reply.tokens.output,
            "totalTokenCount": sent + reply.tokens.output,
            "cachedContentTokenCount": reply.tokens.cache_read,
        }
        candidate = {"finishReason": names.get(reply.stop, reply.stop), "index": 0}
        yield _data({"candidates": [candidate], "usageMetadata": usage})


Wire: TypeAlias = type[OpenAIChat] | type[Anthropic] | type[Gemini]


def wire_for(path: str) -> Wire | None:
    """The format that a request path belongs to."""
    if path.endswith("/chat/completions"):
        return OpenAIChat
    if path.split("?")[0].endswith("/messages"):
        return Anthropic
    if "enerateContent" in path:
        return Gemini
    return None
