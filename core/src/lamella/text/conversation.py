"""Messages as a model sees them, as a text to summarise, and the files that their tool calls touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from lamella.text.javascript import cut_utf16, js_json, utf16_length, utf16_sorted
from lamella.types.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    ModelMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)

COMPACTION_PREFIX = (
    "Earlier parts of this conversation were compacted to save room. This summary stands in their place:\n\n<summary>\n"
)
COMPACTION_SUFFIX = "\n</summary>"
BRANCH_PREFIX = (
    "The conversation went down another branch and came back here. This summary tells what happened there:"
    "\n\n<summary>\n"
)
BRANCH_SUFFIX = "</summary>"

MAX_RESULT_CHARS = 2000


# --- messages for a model --------------------------------------------------------------------------


def convert_to_model_messages(messages: Iterable[Message]) -> tuple[ModelMessage, ...]:
    """Messages in the three roles that providers know.

    Shell commands of the user, custom messages and summaries become user messages; commands that
    are excluded from the context and messages of unknown roles are left out.
    """
    converted = (_model_message(message) for message in messages)
    return tuple(message for message in converted if message is not None)


def _model_message(message: Message) -> ModelMessage | None:
    match message:
        case UserMessage() | AssistantMessage() | ToolResultMessage():
            return message
        case CustomMessage():
            content = message.content
            return UserMessage((TextBlock(content),) if isinstance(content, str) else content, message.timestamp)
        case BashExecutionMessage():
            return None if message.exclude_from_context else _user_text(_bash_text(message), message.timestamp)
        case CompactionSummaryMessage():
            return _user_text(f"{COMPACTION_PREFIX}{message.summary}{COMPACTION_SUFFIX}", message.timestamp)
        case BranchSummaryMessage():
            return _user_text(f"{BRANCH_PREFIX}{message.summary}{BRANCH_SUFFIX}", message.timestamp)
        case _:
            return None


def _user_text(text: str, timestamp: float | None) -> UserMessage:
    return UserMessage((TextBlock(text),), timestamp)


def _bash_text(message: BashExecutionMessage) -> str:
    text = f"Ran `{message.command}`\n"
    text += f"```\n{message.output}\n```" if message.output else "(no output)"
    if message.cancelled:
        text += "\n\n(command cancelled)"
    elif message.exit_code:
        text += f"\n\nCommand exited with code {message.exit_code}"
    if message.truncated and message.full_output_path:
        text += f"\n\n[Output truncated. Full output: {message.full_output_path}]"
    return text


# --- a text to summarise -----------------------------------------------------------------------------


def serialize_conversation(messages: Iterable[ModelMessage]) -> str:
    """The conversation as labelled paragraphs, for a summary request.

    Thinking and images are left out. Tool results are cut to 2000 UTF-16 units, never inside a
    character.
    """
    return "\n\n".join(part for message in messages for part in _paragraphs(message))


def _paragraphs(message: ModelMessage) -> list[str]:
    match message:
        case UserMessage():
            text = text_of(message.content)
            return [f"[User]: {text}"] if text else []
        case AssistantMessage():
            return _assistant_paragraphs(message)
        case ToolResultMessage():
            text = text_of(message.content)
            return [f"[Tool result]: {_shortened(text)}"] if text else []


def _assistant_paragraphs(message: AssistantMessage) -> list[str]:
    texts = [block.text for block in message.content if isinstance(block, TextBlock)]
    calls = [describe_call(call) for call in message.tool_calls]
    parts = []
    if texts:
        parts.append("[Assistant]: " + "\n".join(texts))
    if calls:
        parts.append("[Assistant tool calls]: " + "; ".join(calls))
    return parts


def describe_call(call: ToolCall) -> str:
    """A tool call on one line: `name(key=JSON, key=JSON)`."""
    arguments = ", ".join(f"{key}={js_json(value)}" for key, value in call.arguments.items())
    return f"{call.name}({arguments})"


def _shortened(text: str) -> str:
    kept = cut_utf16(text, MAX_RESULT_CHARS)
    if len(kept) == len(text):
        return text
    left_out = utf16_length(text) - utf16_length(kept)
    return f"{kept}\n\n[... {left_out} more characters truncated]"


# --- files -------------------------------------------------------------------------------------------


@frozen(slots=True)
class FileOps:
    """Paths that tool calls named, by what was done with them."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    edited: frozenset[str] = frozenset()

    def __or__(self, other: FileOps) -> FileOps:
        return FileOps(self.read | other.read, self.written | other.written, self.edited | other.edited)

    @classmethod
    def from_details(cls, details: Any) -> FileOps:
        """The operations behind a compaction's stored `details`; anything malformed is ignored."""
        if not isinstance(details, Mapping):
            return cls()
        return cls(read=_strings(details.get("readFiles")), edited=_strings(details.get("modifiedFiles")))


@frozen(slots=True)
class FileLists:
    """Sorted paths: those only read, and those changed."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def to_details(self) -> dict[str, list[str]]:
        """The form that is stored with a compaction."""
        return {"readFiles": list(self.read), "modifiedFiles": list(self.modified)}


def file_operations(messages: Iterable[Message]) -> FileOps:
    """What the calls of `read`, `write` and `edit` in assistant messages touched."""
    paths: dict[str, set[str]] = {"read": set(), "write": set(), "edit": set()}
    for message in messages:
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            path = call.arguments.get("path")
            if call.name in paths and isinstance(path, str) and path:
                paths[call.name].add(path)
    return FileOps(frozenset(paths["read"]), frozenset(paths["write"]), frozenset(paths["edit"]))


def file_lists(ops: FileOps) -> FileLists:
    """Read-only and modified files, each sorted; a file that was both counts as modified."""
    modified = ops.written | ops.edited
    return FileLists(tuple(utf16_sorted(ops.read - modified)), tuple(utf16_sorted(modified)))


def file_tags(lists: FileLists) -> str:
    """The lists as tags to append to a summary; empty when there are no files."""
    tags = [
        f"<{name}>\n" + "\n".join(paths) + f"\n</{name}>"
        for name, paths in (("read-files", lists.read), ("modified-files", lists.modified))
        if paths
    ]
    return "".join(f"\n\n{tag}" for tag in tags)


def _strings(value: Any) -> frozenset[str]:
    return frozenset(v for v in value if isinstance(v, str)) if isinstance(value, (list, tuple)) else frozenset()
