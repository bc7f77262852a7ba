"""Generated transcripts for property tests: turns as they come from programs that failed in every way."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

WORDS = st.sampled_from(["", " ", "word", "第一百行", "half \ud83d", "\ud83d\ude00", "e\u0301", "a\nb"])
IDS = st.sampled_from(["a", "b", "c", "call|fc_1", "call|fc_2", "x" * 70, "x" * 71, "", "ü!", "\ud800"])
NAMES = st.sampled_from(["read", " read ", "a.b", "", "n" * 65, "write"])
SIGNATURES = st.sampled_from([None, "c2ln", "not base64!", '{"id":"rs_1","type":"reasoning"}', "[1]"])
IMAGES = st.sampled_from(["", "iVBORw0KGgo=", "/9j/", "not base64!"])
STOPS = st.sampled_from(["stop", "toolUse", "length", "error", "aborted"])


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in value.items() if v is not None}


def _block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields}).map(_plain)


TEXT = _block("text", text=WORDS, textSignature=SIGNATURES)
IMAGE = _block("image", data=IMAGES, mimeType=st.sampled_from(["image/png", "image/jpeg", None]))
THINKING = _block("thinking", thinking=WORDS, thinkingSignature=SIGNATURES)
ARGUMENTS = st.sampled_from([{}, {"path": "\udc00"}, {"n": [1, {"文": None}]}, None])
CALL = st.builds(
    lambda kind, call_id, name, arguments, signature: _plain(
        {"type": kind, "id": call_id, "name": name, "arguments": arguments, "thoughtSignature": signature}
    ),
    st.sampled_from(["toolCall", "toolCall", "toolUse"]),
    IDS,
    NAMES,
    ARGUMENTS,
    SIGNATURES,
)
OTHER = st.sampled_from([{"type": "mystery"}, "text", None])

USER = st.builds(
    lambda content, provenance: _plain({"role": "user", "content": content, "provenance": provenance}),
    WORDS | st.lists(TEXT | IMAGE | OTHER, max_size=3),
    st.sampled_from([None, None, {"kind": "inter_session", "sourceTool": "a\nb"}]),
)
REPLY = st.builds(
    lambda content, stop, model, total: {
        "role": "assistant",
        "content": content,
        "stopReason": stop,
        "provider": "p",
        "model": model,
        "api": "x",
        "usage": {"totalTokens": total},
    },
    st.lists(TEXT | THINKING | CALL | CALL | OTHER, max_size=4),
    STOPS,
    st.sampled_from(["m", "m", "other"]),
    st.integers(0, 9),
)
RESULT = st.builds(
    lambda call_id, content, failed, details: _plain(
        {"role": "toolResult", "toolCallId": call_id, "toolName": "t", "content": content, "isError": failed, **details}
    ),
    IDS,
    st.lists(TEXT | IMAGE, max_size=2),
    st.booleans(),
    st.sampled_from([{}, {"details": {"synthetic": True}}, {"details": {"size": 9}}]),
)
BASH = st.builds(lambda text: {"role": "bashExecution", "command": "ls", "output": text, "exitCode": 0}, WORDS)
MESSAGE = st.one_of(USER, REPLY, REPLY, RESULT, RESULT, BASH)

# A step: a message below the newest entry or, at times, an older one; a compaction; a plugin's message.
STEP = st.one_of(
    st.tuples(st.just("message"), MESSAGE, st.sampled_from([1, 1, 1, 1, 2, 4])),
    st.tuples(st.just("message"), MESSAGE, st.just(1)),
    st.tuples(st.just("compaction"), WORDS, st.integers(1, 5)),
    st.tuples(st.just("custom_message"), WORDS, st.just(1)),
)


def transcript_of(steps: list[tuple[str, Any, int]]) -> bytes:
    """The file of a session that took these steps."""
    when = "2026-05-10T09:00:00.000Z"
    rows: list[dict[str, Any]] = [{"type": "session", "version": 3, "id": "s", "timestamp": when, "cwd": "/w"}]
    for number, (kind, value, back) in enumerate(steps):
        older = max(number - back, 0)
        parent = older if kind == "message" else number - 1
        row: dict[str, Any] = {"type": kind, "id": f"e{number}", "timestamp": when}
        row["parentId"] = f"e{parent}" if number else None
        if kind == "message":
            row["message"] = value
        elif kind == "compaction":
            row |= {"summary": value, "firstKeptEntryId": f"e{older}", "tokensBefore": 9}
        else:
            row |= {"customType": "note", "content": value, "display": True}
        rows.append(row)
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
