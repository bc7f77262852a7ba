"""Holds: every line that a client sends over stdio is handed to the SDK or answered, and no two lines are mixed."""

from __future__ import annotations

import io
import json
import os
import threading
from typing import Any

import pytest

pytest.importorskip("mcp")

from lamella.mcp.lines import Lines, check
from lamella.mcp.stdio import Output, Stop

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def reply_to(line: bytes) -> Any:
    checked = check(line)
    assert checked.line == b""
    return json.loads(checked.reply)


@pytest.mark.parametrize(
    "line", [PING, '{"jsonrpc":"2.0","method":"说"}\n'.encode(), b'{"jsonrpc":"2.0","id":1,"result":{}}\n']
)
def test_messages_are_left_as_they_are(line: bytes) -> None:
    assert check(line).line == line
    assert check(line).reply == b""


@pytest.mark.parametrize("line", [b"garbage\n", b"\xff\xfe\n", b"\x00\n", PING[:-5] + b"\n", b'{"a":' * 50_000 + b"\n"])
def test_what_is_no_json_is_answered(line: bytes) -> None:
    reply = reply_to(line)
    assert (reply["id"], reply["error"]["code"]) == (None, -32700)
    assert len(reply["error"]["message"]) < 200


@pytest.mark.parametrize(
    ("sent", "number"),
    [
        ({"id": 7, "method": "ping"}, 7),
        ({"jsonrpc": "1.0", "id": "七", "method": "ping"}, "七"),
        ({"jsonrpc": "2.0", "id": 8, "method": "ping", "params": [1]}, 8),
        ({"jsonrpc": "2.0"}, None),
        ([{"jsonrpc": "2.0", "id": 9, "method": "ping"}], None),
        (None, None),
    ],
)
def test_what_is_no_message_is_answered_under_its_id(sent: Any, number: Any) -> None:
    reply = reply_to(json.dumps(sent).encode() + b"\n")
    assert (reply["id"], reply["error"]["code"]) == (number, -32600)


@pytest.mark.parametrize(
    "line",
    [b"\n", b"  \r\n", b'{"jsonrpc":"2.0","method":"x","params":[1]}\n', b'{"jsonrpc":"2.0","id":1,"error":5}\n'],
)
def test_what_nobody_waits_for_is_not_answered(line: bytes) -> None:
    assert (check(line).line, check(line).reply) == (b"", b"")


@pytest.mark.parametrize(
    ("escaped", "expected"),
    [(r"cut \ud83d off", "cut \ufffd off"), (r"\udc00", "\ufffd"), (r"whole \ud83d\ude00 表情", "whole 😀 表情")],
)
def test_halves_of_characters_are_replaced(escaped: str, expected: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"{escaped}":["{escaped}"]}}}}\n'
    checked = check(line.encode())
    assert checked.reply == b""
    assert json.loads(checked.line)["params"] == {expected: [expected]}


def test_the_last_line_needs_no_end() -> None:
    """And it is handed on before the end is told."""
    seen: list[Any] = []
    source = io.BytesIO(PING + b"garbage\n\n" + PING.rstrip())
    lines = io.BufferedReader(Lines(io.BufferedReader(source), seen.append, lambda: seen.append("end")))  # type: ignore[arg-type]
    assert [lines.readline(), lines.readline()] == [PING, PING]
    assert [json.loads(reply)["error"]["code"] for reply in seen] == [-32700]
    assert lines.readline() == b""
    assert seen[-1] == "end"


@pytest.mark.skipif(os.name == "nt", reason="waits for pipes of POSIX")
def test_a_reply_waits_for_the_line_that_is_being_written() -> None:
    source, target = os.pipe()
    output = Output(target, Stop())
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.extend(iter(lambda: os.read(source, 65_536), b"")))
    reader.start()
    output.say(b"first\n")
    for piece in (b"long " * 5_000, b"line", b"\n", b"next\n"):
        output.write(piece)
        output.say(b"reply\n")
    os.close(target)
    reader.join()
    os.close(source)
    long = b"long " * 5_000 + b"line"
    assert b"".join(read).split() == [b"first", *long.split(), b"reply", b"reply", b"reply", b"next", b"reply"]
