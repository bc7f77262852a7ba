"""The rules by which providers refuse a history, as strict as their servers: each a function of a request's body.

A function gives the first fault in words, or an empty string. `refusing` makes a loopback server
answer as the real one would.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from provider_server import Recorded, Scripted
from provider_wires import Failure, Reply

Rule: TypeAlias = Callable[[Mapping[str, Any]], Iterator[str]]

WORD = re.compile(r"[A-Za-z0-9_-]+")
MAGIC = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}


def refusing(rule: Rule, reply: Reply) -> Scripted:
    """The reply for a history that keeps the rule; an error with status 400 for another."""

    def answer(request: Recorded) -> Failure | Reply:
        fault = next(rule(request.body), "")
        return Failure(400, fault, "invalid_request_error") if fault else reply

    return answer


# --- Anthropic --------------------------------------------------------------------------------------------


def anthropic(body: Mapping[str, Any]) -> Iterator[str]:
    """Messages: roles in turns, results at the head of the next user message, signed thinking."""
    messages = body["messages"]
    yield from _alternate([m["role"] for m in messages], "user", "assistant")
    if messages and messages[-1]["role"] != "user":
        yield "the last message must be the user's"
    seen: set[str] = set()
    open_calls: list[str] = []
    for message in messages:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        if not blocks:
            yield f"{message['role']}: content must not be empty"
        yield from (fault for block in blocks for fault in _anthropic_block(block))
        if message["role"] == "user":
            yield from _anthropic_results(blocks, open_calls)
            open_calls = []
            continue
        if blocks[-1]["type"] in ("thinking", "redacted_thinking"):
            yield "the final block of a reply cannot be thinking"
        open_calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
        yield from _fresh_ids(open_calls, seen, 64)
    if open_calls:
        yield "calls without results at the end"


def _anthropic_block(block: Mapping[str, Any]) -> Iterator[str]:
    match block["type"]:
        case "text" if not block["text"].strip():
            yield "text blocks must hold more than white space"
        case "thinking" if not block.get("signature"):
            yield "thinking without a signature"
        case "image":
            source = block["source"]
            yield from _image(source["media_type"], source["data"], 5 * 1024 * 1024)
        case "tool_use":
            yield from _call(block["name"], block["input"])
        case "tool_result" if isinstance(block.get("content"), list):
            yield from (fault for inner in block["content"] for fault in _anthropic_block(inner))


def _anthropic_results(blocks: Sequence[Mapping[str, Any]], open_calls: Sequence[str]) -> Iterator[str]:
    results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
    if sorted(results) != sorted(open_calls):
        yield f"results {results} for the calls {list(open_calls)}"
    if any(b["type"] != "tool_result" for b in blocks[: len(results)]):
        yield "results must come first in a user message"


# --- OpenAI, and Mistral, which speaks the same format --------------------------------------------------------


def openai_chat(body: Mapping[str, Any]) -> Iterator[str]:
    """Chat completions: every call answered before anybody speaks; ids of at most 40 characters."""
    seen: set[str] = set()
    waiting: list[str] = []
    for place, message in enumerate(body["messages"]):
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"a result for {message['tool_call_id']!r}, which no call right before it has"
                return
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"calls without results: {waiting}"
        if role in ("system", "developer") and place:
            yield "the system message must come first"
        if role == "user":
            yield from _openai_user(message["content"])
        if role == "assistant":
            yield from _openai_reply(message)
            waiting = [c["id"] for c in message.get("tool_calls") or ()]
            yield from _fresh_ids(waiting, seen, 40)
    if waiting:
        yield "calls without results at the end"


def _openai_user(content: Any) -> Iterator[str]:
    if not content:
        yield "a user message without content"
    for part in content if isinstance(content, list) else ():
        if part["type"] == "image_url":
            head, _, data = part["image_url"]["url"].partition(";base64,")
            yield from _image(head.removeprefix("data:"), data, 20 * 1024 * 1024)


def _openai_reply(message: Mapping[str, Any]) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls == [] or (not calls and not message.get("content")):
        yield "a reply needs content or tool calls"
    for call in calls or ():
        yield from _call(call["function"]["name"], json.loads(call["function"]["arguments"]))


def mistral(body: Mapping[str, Any]) -> Iterator[str]:
    """As OpenAI's, with ids of nine letters and digits, and nobody but the model after results."""
    yield from openai_chat(body)
    roles = [m["role"] for m in body["messages"] if m["role"] != "system"]
    for first, second in pairwise(roles):
        if (first, second) in (("tool", "user"), ("user", "user"), ("assistant", "assistant")):
            yield f"unexpected role {second!r} after role {first!r}"
    if roles and (roles[0] != "user" or roles[-1] not in ("user", "tool")):
        yield "expected the user to begin, and the last role to be user or tool"
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            if not re.fullmatch("[A-Za-z0-9]{9}", call["id"]):
                yield f"tool call id {call['id']!r} must be a-z, A-Z, 0-9, with a length of 9"


# --- Gemini ----------------------------------------------------------------------------------------------------


def gemini(body: Mapping[str, Any]) -> Iterator[str]:
    """generateContent: turns alternate, as many responses as calls, in their order, right behind them."""
    contents = body["contents"]
    turns = [c for i, c in enumerate(contents) if i == 0 or not _is_response(contents[i - 1]) or c["role"] != "user"]
    yield from _alternate([c["role"] for c in turns], "user", "model")
    calls: list[str] = []
    for content in contents:
        parts = content["parts"]
        if not parts:
            yield "content without parts"
        yield from (fault for part in parts for fault in _gemini_part(part))
        responses = [p["functionResponse"]["name"] for p in parts if "functionResponse" in p]
        if responses != calls:
            yield f"function responses {responses} for the function calls {calls}"
        calls = [p["functionCall"]["name"] for p in parts if "functionCall" in p]
    if calls:
        yield "function calls without responses at the end"


def _is_response(content: Mapping[str, Any]) -> bool:
    """Content of function responses alone; the user's words may follow it in content of their own."""
    return all("functionResponse" in part for part in content["parts"])


def _gemini_part(part: Mapping[str, Any]) -> Iterator[str]:
    if not part.keys() & {"text", "inlineData", "functionCall", "functionResponse"}:
        yield f"a part without data: {sorted(part)}"
    if "inlineData" in part:
        data = part["inlineData"]
        yield from _image(data.get("mimeType") or data.get("mime_type", ""), data["data"], 20 * 1024 * 1024)
    if "functionCall" in part:
        yield from _call(part["functionCall"]["name"], part["functionCall"].get("args", {}))
    if "thoughtSignature" in part:
        try:
            base64.urlsafe_b64decode(part["thoughtSignature"].encode())
        except binascii.Error:
            yield "a thought signature that is not base64"


# --- OpenAI's Responses, on its input items ---------------------------------------------------------------------


def responses(body: Mapping[str, Any]) -> Iterator[str]:
    """A call's item needs its reasoning item before it, and that one an item behind it; outputs pair."""
    items = body["input"]
    calls: set[str] = set()
    for place, item in enumerate(items):
        following = items[place + 1]["type"] if place + 1 < len(items) else ""
        if item["type"] == "reasoning" and following not in ("message", "function_call"):
            yield "a reasoning item without the item that it belongs to"
        if item["type"] == "function_call":
            if item["call_id"] in calls:
                yield f"call id {item['call_id']!r} is used twice"
            calls.add(item["call_id"])
            if len(item["call_id"]) > 64 or len(item.get("id", "")) > 64:
                yield "an id of more than 64 characters"
            if item.get("id") and not item["reasoned"]:
                yield "a function call was given without its required reasoning item"
    outputs = [item["call_id"] for item in items if item["type"] == "function_call_output"]
    if sorted(outputs) != sorted(calls):
        yield f"outputs {outputs} for the calls {sorted(calls)}"


# --- what several have in common -----------------------------------------------------------------------------------


def _alternate(roles: Sequence[str], first: str, second: str) -> Iterator[str]:
    if not roles:
        yield "no messages"
    for place, role in enumerate(roles):
        if role != (first, second)[place % 2]:
            yield f"roles must alternate and begin with {first}: {role} at {place}"


def _fresh_ids(ids: Sequence[str], seen: set[str], longest: int) -> Iterator[str]:
    for call_id in ids:
        if call_id in seen:
            yield f"tool call id {call_id!r} is used twice"
        if not WORD.fullmatch(call_id) or len(call_id) > longest:
            yield f"tool call id {call_id!r}: expected up to {longest} of A-Z, a-z, 0-9, _ and -"
        seen.add(call_id)


def _call(name: str, arguments: Any) -> Iterator[str]:
    if not WORD.fullmatch(name) or len(name) > 64:
        yield f"tool name {name!r}"
    if not isinstance(arguments, Mapping):
        yield "tool arguments must be an object"


def _image(mime_type: str, data: str, largest: int) -> Iterator[str]:
    try:
        raw = base64.b64decode(data + "=" * (-len(data) % 4), altchars=b"-_" if re.search("[-_]", data) else None)
    except binascii.Error:
        yield "an image that is not base64"
        return
    if not raw.startswith(MAGIC.get(mime_type, b"no such type")) or len(raw) > largest:
        yield f"an image of {len(raw)} bytes that is no {mime_type}"
