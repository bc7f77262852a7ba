"""A conversation as plain turns and sentences, from messages or from their serialised text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from attrs import frozen

from lamella.text.conversation import convert_to_model_messages, describe_call
from lamella.text.cues import FAILURE
from lamella.types.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultMessage,
    text_of,
)


@frozen(slots=True)
class Turn:
    """One thing said or done: a user's or assistant's text, one tool call, or a tool's result.

    `failed` tells of a result whether the call failed.
    """

    kind: Literal["user", "assistant", "call", "result"]
    text: str
    failed: bool = False


_LABEL = re.compile(r"(?:\A|\n\n)\[(User|Assistant|Assistant thinking|Assistant tool calls|Tool result)\]: ?")
_CALL = re.compile(r'[\w.-]+\((?:"(?:[^"\\]|\\.)*"|[^")])*\)', re.DOTALL)
_FENCE = re.compile(r"^ *(```|~~~).*?(?:^ *\1 *$|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}#{1,6} .*$", re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[-*+•>]|\d{1,3}[.)、])\s+(?:\[[ xX]\]\s+)?")
_SENTENCE_END = re.compile(
    r"(?<=[.!?…])\s+|(?<=[.!?…][\"')\]])\s+|(?<=[。！？；…])(?![”」』）])|(?<=[。！？；…][”」』）])"
)
_EXIT = re.compile(r"Command .*")  # how a shell tool ends the output of a failed command
_SPACE = re.compile(r"\s+")


def turns_of(messages: Iterable[Message]) -> list[Turn]:
    """The turns of a conversation. Thinking and images are left out."""
    turns: list[Turn] = []
    for message in convert_to_model_messages(messages):
        if isinstance(message, AssistantMessage):
            texts = [block.text for block in message.content if isinstance(block, TextBlock)]
            turns += [Turn("assistant", text) for text in ["\n".join(texts)] if text.strip()]
            turns += [Turn("call", describe_call(call)) for call in message.tool_calls]
        elif isinstance(message, ToolResultMessage):
            turns.append(Turn("result", text_of(message.content), message.is_error))
        elif text := text_of(message.content):
            turns.append(Turn("user", text))
    return turns


def parse_conversation(text: str) -> list[Turn]:
    """The turns of a serialised conversation. Whether a call failed is told by its result's words."""
    pieces = _LABEL.split(text)
    turns: list[Turn] = []
    for label, body in zip(pieces[1::2], pieces[2::2], strict=True):
        match label:
            case "User":
                turns.append(Turn("user", body))
            case "Assistant":
                turns.append(Turn("assistant", body))
            case "Assistant tool calls":
                turns += [Turn("call", call) for call in _CALL.findall(body)]
            case "Tool result":
                turns.append(Turn("result", body, _reads_like_failure(body)))
    return turns


def sentences(text: str) -> list[str]:
    """The sentences of a text, one line each, without code blocks, headings and list marks."""
    prose = _HEADING.sub("", _FENCE.sub("", text))
    found = []
    for line in prose.split("\n"):
        for piece in _SENTENCE_END.split(_BULLET.sub("", line)):
            sentence = _SPACE.sub(" ", piece).strip()
            if any(char.isalnum() for char in sentence):
                found.append(sentence)
    return found


def failure_line(result: str) -> str:
    """The line of a failed call's result that says why."""
    lines = [line.strip() for line in result.split("\n") if line.strip()]
    if len(lines) > 1 and _EXIT.fullmatch(lines[-1]):
        return f"{lines[-2]} ({lines[-1]})"
    telling = [line for line in lines if FAILURE.search(line)]
    traceback = bool(lines) and lines[0].startswith("Traceback")
    return (lines[-1:] if traceback else telling[:1] or lines[:1] or [""])[0]


def _reads_like_failure(result: str) -> bool:
    lines = [line for line in result.split("\n") if line.strip()]
    return any(FAILURE.search(line) for line in lines[:1] + lines[-1:])
