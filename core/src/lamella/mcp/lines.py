"""Lines that a client sends over stdio. The SDK passes over one that it cannot read without a word, and
the client waits for its answer: here it gets one."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from typing import Any, cast

from attrs import frozen
from mcp.types import INVALID_REQUEST, PARSE_ERROR, jsonrpc_message_adapter

from lamella.text.unicode import well_formed

log = logging.getLogger(__name__)


@frozen(slots=True)
class Checked:
    """A line as the SDK can read it, or empty; `reply` is the line that the client gets for it, or empty."""

    line: bytes = b""
    reply: bytes = b""


def check(line: bytes) -> Checked:
    """Halves of characters (a text that was cut within an emoji) are replaced. Never raises."""
    if not line.strip():
        return Checked()
    text = line.decode("utf-8", "replace")
    if _is_message(text):
        return Checked(line)
    try:
        sent = json.loads(text)
        mended = json.dumps(_whole(sent))
    except (ValueError, RecursionError) as error:
        log.warning("a line of %d bytes is no JSON: %s", len(line), error)
        return Checked(reply=_reply(None, PARSE_ERROR, f"expected a message as JSON in one line: {error}"))
    if _is_message(mended):
        return Checked(mended.encode() + b"\n")
    log.warning("a line of %d bytes is no message of JSON-RPC 2.0", len(line))
    if isinstance(sent, dict) and ("method" in sent) != ("id" in sent):
        return Checked()  # a notification or an answer, to which nobody answers
    return Checked(reply=_reply(_id_of(sent), INVALID_REQUEST, "expected a message of JSON-RPC 2.0, one a line"))


class Lines(io.RawIOBase):
    """What the SDK can read of a client's lines. `answer` gets the replies to others; `at_end` is called when
    all have been handed on, before the end is told."""

    def __init__(self, source: io.BufferedReader, answer: Callable[[bytes], None], at_end: Callable[[], None]) -> None:
        self._source = source
        self._answer = answer
        self._at_end = at_end
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left:
            line = self._source.readline()
            if not line:
                self._at_end()
                return 0
            checked = check(line if line.endswith(b"\n") else line + b"\n")
            if checked.reply:
                self._answer(checked.reply)
            self._left = memoryview(checked.line)
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size


def _is_message(text: str) -> bool:
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:  # pydantic's error, and that of a text that cannot be encoded
        return False
    return True


def _whole(value: Any) -> Any:
    """A JSON value whose texts hold whole characters."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed(name): _whole(item) for name, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _id_of(sent: object) -> int | str | None:
    number = cast("dict[str, Any]", sent).get("id") if isinstance(sent, dict) else None
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _reply(number: int | str | None, code: int, message: str) -> bytes:
    reply = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
    return json.dumps(reply, ensure_ascii=True).encode() + b"\n"
