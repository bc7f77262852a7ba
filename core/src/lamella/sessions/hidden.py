"""What a transcript holds that was never meant for a reader: prompts of programs, and silent replies.

lamella stores no silent turns; other programs do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lamella.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage, text_of

# Replies that nobody is shown.
SILENT_REPLIES = frozenset({"NO_REPLY", "HEARTBEAT_OK"})
# How the prompt of a memory flush begins; the whole turn is silent.
FLUSH_PROMPT = "Pre-compaction memory flush"
# Prompts of programs whose answers may be for people.
_PROMPTS = (FLUSH_PROMPT, "Read HEARTBEAT.md if it exists")


def is_hidden(text: str) -> bool:
    """Whether a message says nothing to a reader: it is blank, a silent reply, or a program's prompt."""
    words = text.strip()
    return not words or words in SILENT_REPLIES or words.startswith(_PROMPTS)


def without_hidden(messages: Iterable[Message]) -> Iterator[Message]:
    """What a reader is shown of a conversation: all but silent turns, silent replies and prompts of programs."""
    silent = False
    for message in messages:
        if not isinstance(message, (UserMessage, AssistantMessage, ToolResultMessage)):
            yield message
            continue
        text = text_of(message.content)
        if isinstance(message, UserMessage):
            silent = text.lstrip().startswith(FLUSH_PROMPT)
        said = isinstance(message, ToolResultMessage) or not (text.strip() and is_hidden(text))
        if not silent and said:
            yield message
