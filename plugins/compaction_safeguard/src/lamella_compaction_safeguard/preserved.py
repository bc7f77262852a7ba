"""The newest folded turns, quoted word for word at the end of a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from lamella.types.messages import (
    AssistantMessage,
    Block,
    ImageBlock,
    Message,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    blocks_of,
    text_of,
)
from lamella_compaction_safeguard.clip import clipped

HEADING = "## Recent turns preserved verbatim"
MAX_TEXT = 600


@frozen(slots=True)
class Recent:
    """Messages in two: the newest turns, and the rest that goes before them."""

    rest: tuple[Message, ...]
    recent: tuple[Message, ...]


@frozen(slots=True)
class Quoted:
    """A section of quoted turns. `whole` tells that nothing of them was cut or left out."""

    text: str = ""
    whole: bool = True


def split_recent(messages: Sequence[Message], turns: int) -> Recent:
    """The newest `turns` turns, with the results of their calls, apart from the rest.

    A turn begins with a user message. When there are fewer of them, all user messages are taken, and
    messages from the end until there are twice as many as turns.
    """
    spoken = [i for i, m in enumerate(messages) if isinstance(m, (UserMessage, AssistantMessage))]
    asked = [i for i in spoken if isinstance(messages[i], UserMessage)]
    if turns <= 0 or not spoken:
        return Recent(tuple(messages), ())
    if len(asked) >= turns:
        chosen = {i for i in spoken if i >= asked[-turns]}
    else:
        others = [i for i in spoken if i not in asked]
        chosen = {*asked, *others[max(len(others) + len(asked) - 2 * turns, 0) :]}
    calls = {call.id for i in chosen for call in _calls(messages[i])}
    chosen |= {i for i in range(min(chosen), len(messages)) if _answers(messages[i], calls)}
    return Recent(
        tuple(m for i, m in enumerate(messages) if i not in chosen),
        tuple(m for i, m in enumerate(messages) if i in chosen),
    )


def quote_turns(messages: Sequence[Message], max_chars: int) -> Quoted:
    """The section for these messages, at most `max_chars`; empty without any text to quote.

    When there is no room for all, results go first, then replies, the oldest first.
    """
    lines = [(_rank(m), i, line) for i, m in enumerate(messages) if (line := _line(m))]
    kept, room = [], max_chars - len(HEADING)
    for entry in sorted(lines, key=lambda entry: (entry[0], -entry[1])):
        room -= len(entry[2]) + 1
        if room < 0:
            break
        kept.append(entry)
    if not kept:
        return Quoted(whole=not lines)
    whole = len(kept) == len(lines) and all(map(_is_plain, messages))
    shown = [line for _, _, line in sorted(kept, key=lambda entry: entry[1])]
    return Quoted("\n".join([HEADING, *shown]), whole)


def _calls(message: Message) -> tuple[ToolCall, ...]:
    return message.tool_calls if isinstance(message, AssistantMessage) else ()


def _answers(message: Message, calls: set[str]) -> bool:
    return isinstance(message, ToolResultMessage) and message.tool_call_id in calls


def _rank(message: Message) -> int:
    return 0 if isinstance(message, UserMessage) else 1 if isinstance(message, AssistantMessage) else 2


def _line(message: Message) -> str:
    match message:
        case UserMessage():
            who, content = "User", message.content
        case AssistantMessage():
            who, content = "Assistant", message.content
        case ToolResultMessage():
            who, content = f"Tool result ({message.tool_name.strip() or 'tool'})", message.content
        case _:
            return ""
    shown = _shown(content)
    return f"- {who}: {shown}" if shown else ""


def _shown(content: str | tuple[Block, ...]) -> str:
    text = clipped(text_of(content, "\n").strip(), MAX_TEXT)
    kinds = Counter(kind for block in blocks_of(content) if (kind := _kind(block)))
    named = ", ".join(f"{kind} x{count}" if count > 1 else kind for kind, count in kinds.items())
    return "\n".join(piece for piece in (text, f"[non-text content: {named}]" if named else "") if piece)


def _kind(block: Block) -> str:
    """What a block that is no text is called; empty for text and for thinking, which nobody was told."""
    match block:
        case TextBlock() | ThinkingBlock():
            return ""
        case ImageBlock():
            return "image"
        case ToolCall():
            return "toolCall"
        case OtherBlock():
            kind = block.raw.get("type") if isinstance(block.raw, dict) else None
            return kind if isinstance(kind, str) and kind else "unknown"


def _is_plain(message: Message) -> bool:
    """Whether a quotation says all that a message says."""
    if not isinstance(message, (UserMessage, AssistantMessage, ToolResultMessage)):
        return False
    plain = not any(_kind(block) for block in blocks_of(message.content))
    return plain and len(text_of(message.content, "\n").strip()) <= MAX_TEXT
