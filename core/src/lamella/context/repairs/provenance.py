"""User messages that no person wrote say where they come from."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from lamella.types.messages import Block, JsonObject, TextBlock, UserMessage

INTER_SESSION = "[Inter-session message]"

_FIELDS = (("sourceSession", "sourceSessionKey"), ("sourceChannel", "sourceChannel"), ("sourceTool", "sourceTool"))


def marked(message: UserMessage) -> UserMessage:
    """A message from another session with a line before it that tells so; others as they are.

    `provenance` is a field of the stored message (OpenClaw's): `kind` and where it comes from. It
    has done its work then, and goes: the message may become one with a person's.
    """
    provenance = message.extra.get("provenance")
    if not isinstance(provenance, Mapping) or provenance.get("kind") != "inter_session":
        return message
    extra = {name: value for name, value in message.extra.items() if name != "provenance"}
    return evolve(message, content=_led_by(_line(provenance), message.content), extra=extra)


def _line(provenance: JsonObject) -> str:
    sources = ((shown, provenance.get(name)) for shown, name in _FIELDS)
    known = [
        f"{shown}={' '.join(value.split())}" for shown, value in sources if isinstance(value, str) and value.strip()
    ]
    return " ".join((INTER_SESSION, *known)) + "\n"


def _led_by(line: str, content: str | tuple[Block, ...]) -> str | tuple[Block, ...]:
    """The content with a line before its first text, unless it has one already."""
    if isinstance(content, str):
        return content if content.startswith(INTER_SESSION) else line + content
    for at, block in enumerate(content):
        if isinstance(block, TextBlock):
            already = block.text.startswith(INTER_SESSION)
            led = block if already else evolve(block, text=line + block.text)
            return (*content[:at], led, *content[at + 1 :])
    return (TextBlock(line), *content)
