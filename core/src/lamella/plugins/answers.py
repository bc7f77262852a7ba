"""What implementations of hooks answer: what is wrong with it, and how answers are put together.

Everything here is pure. A check returns what is wrong, or an empty string.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, get_args

import attrs

from lamella.text.unicode import well_formed
from lamella.types import hooks as h
from lamella.types.messages import Block, Message

MESSAGE_TYPES: tuple[type, ...] = get_args(Message)
_BLOCK_TYPES: tuple[type, ...] = get_args(Block)
_COMMAND = re.compile(r"[^\s/A-Z:][^\sA-Z:]*")
_READY = (str, bytes, Mapping, list, tuple, Awaitable)
# What the annotations of answers and messages ask for. Others are not looked at.
_KINDS: Mapping[Any, tuple[tuple[Any, ...], str]] = {
    "str": ((str,), "a string"),
    "str | None": ((str, NoneType), "a string"),
    "int": ((int,), "a whole number"),
    "JsonObject": ((Mapping,), "a mapping"),
    "JsonObject | None": ((Mapping, NoneType), "a mapping"),
    "tuple[Block, ...]": ((tuple,), "a tuple of blocks"),
    "str | tuple[Block, ...]": ((str, tuple), "a string or a tuple of blocks"),
    **dict.fromkeys(
        (
            "ToolFunction",
            "ModelFactory",
            "BackendFactory",
            "EmbedderFactory",
            "Callable[[Message], int]",
            "Callable[[str], Any]",
        ),
        ((Callable,), "a function"),
    ),
}


def is_lazy(answer: Any) -> bool:
    """Whether an answer is, or holds, code of a plugin that still has to run, such as a generator."""
    if isinstance(answer, h.ContextEdit):
        return is_lazy(answer.messages) or is_lazy(answer.notes)
    return isinstance(answer, Iterable) and not isinstance(answer, _READY)


def settled(answer: Any) -> Any:
    """An answer with nothing lazy in it. May run code of the plugin, and raise what that raises."""
    if isinstance(answer, h.ContextEdit) and is_lazy(answer):
        return attrs.evolve(answer, messages=settled(answer.messages), notes=settled(answer.notes))
    return list(answer) if is_lazy(answer) else answer


def flaw(answer: Any) -> str:
    """What is wrong with the fields of an answer, a message, a block, or an object that is registered."""
    if not attrs.has(type(answer)):
        return ""
    for part in attrs.fields(type(answer)):
        kinds, expected = _KINDS.get(part.type, ((object,), ""))
        value = getattr(answer, part.name)
        if not isinstance(value, kinds):
            return f"{part.name}={value!r:.100}, expected {expected}"
    return _content_flaw(getattr(answer, "content", ())) if isinstance(answer, MESSAGE_TYPES) else ""


def _content_flaw(content: str | Sequence[Any]) -> str:
    if isinstance(content, str):
        return ""
    odd = next((block for block in content if not isinstance(block, _BLOCK_TYPES)), None)
    if odd is not None:
        return f"a block that is {type(odd).__name__}"
    return next(filter(None, map(flaw, content)), "")


def command_flaw(command: h.Command) -> str:
    """What is wrong with a slash command: its fields, or a name that nobody can type."""
    wrong = flaw(command)
    if not wrong and not _COMMAND.fullmatch(command.name):
        wrong = "a name that cannot be typed, expected small letters without blanks and without the slash"
    return wrong


def what_stands(answer: Any) -> h.ToolCallVerdict | h.CompactionResult | None:
    """What of an answer holds although something is wrong with it: that it refuses or cancels."""
    if isinstance(answer, h.ToolCallVerdict) and answer.block:
        return h.ToolCallVerdict(block=True)
    if isinstance(answer, h.CompactionResult) and answer.cancel:
        return h.CompactionResult(cancel=True)
    return None


def edit_flaw(answer: h.ContextEdit | Iterable[Any], given: Sequence[Message]) -> str:
    """What is wrong with the settled answer of a `context` hook. Messages that it was given are right."""
    messages, notes = (answer.messages, answer.notes) if isinstance(answer, h.ContextEdit) else (answer, ())
    for name, value in (("messages", messages or ()), ("notes", notes)):
        if not isinstance(value, list | tuple):
            return f"{name} as {type(value).__name__}, expected a list"
    known = set(map(id, given))
    for message in messages or ():
        if not isinstance(message, MESSAGE_TYPES):
            return f"{type(message).__name__} among the messages, expected a message"
        if id(message) not in known and (wrong := flaw(message)):
            return f"a {type(message).__name__} with {wrong}"
    return ""


def as_edit(answer: h.ContextEdit | Iterable[Message], given: Sequence[Message]) -> h.ContextEdit:
    """The answer of a `context` hook that has no flaw; without messages when they are those given."""
    edit = answer if isinstance(answer, h.ContextEdit) else h.ContextEdit(tuple(answer))
    messages = None if edit.messages is None else tuple(edit.messages)
    if messages is not None and len(messages) == len(given) and all(map(operator.is_, messages, given)):
        messages = None
    return h.ContextEdit(messages, tuple(n for n in edit.notes if isinstance(n, h.ContextNote)))


def no_file(item: Any) -> str:
    """Why something is no file for the prompt; empty when it is one."""
    if not isinstance(item, h.PromptFile):
        named = f" {item['name']!r}" if isinstance(item, Mapping) and "name" in item else ""
        return f"returned{named} as {type(item).__name__}, expected a PromptFile with 'name' and 'path'; left out"
    for name in ("name", "path"):
        value = getattr(item, name)
        if not isinstance(value, str) or not value.strip():
            return f"returned file {item.name!r} with {name}={value!r}, expected some text; left out"
    return "" if isinstance(item.text, str | None) else f"returned file {item.name!r} whose text is no string; left out"


def merge_additions(additions: Sequence[h.PromptAddition]) -> h.PromptAddition:
    """Contexts joined in order by a blank line, as valid Unicode; the last base prompt and the first model win."""

    def joined(texts: Iterable[str]) -> str:
        return well_formed("\n\n".join(t.strip() for t in texts if t.strip()))

    return h.PromptAddition(
        system_prompt=next((a.system_prompt for a in reversed(additions) if a.system_prompt.strip()), ""),
        prepend_system=joined(a.prepend_system for a in additions),
        append_system=joined(a.append_system for a in additions),
        prepend_context=joined(a.prepend_context for a in additions),
        model=next((a.model for a in additions if a.model), ""),
    )
