"""Transcripts as text for people: conversations, trees, Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from lamella.sessions.tree import Node
from lamella.text.width import clip
from lamella.types.entries import Entry
from lamella.types.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    blocks_of,
    text_of,
)

_RESULT_LINES = 12


def conversation_text(messages: Iterable[Message]) -> str:
    """One paragraph a message, with its speaker."""
    return "\n\n".join(part for m in messages if (part := message_text(m)))


def message_text(message: Message) -> str:
    """A message for a terminal; empty when there is nothing to see."""
    match message:
        case UserMessage():
            return f"you> {_content(message.content)}"
        case AssistantMessage():
            said = _content(message.content)
            failed = f"[{message.stop_reason}: {message.error_message}]" if message.failed else ""
            return f"agent> {' '.join(p for p in (said, failed) if p)}"
        case ToolResultMessage():
            mark = "failed" if message.is_error else "result"
            return f"  [{message.tool_name} {mark}] {_few_lines(_content(message.content))}"
        case BashExecutionMessage():
            return f"$ {message.command}\n{_few_lines(message.output)}"
        case CustomMessage():
            return f"[{message.custom_type}] {_content(message.content)}" if message.display else ""
        case CompactionSummaryMessage():
            return f"[summary of earlier conversation]\n{message.summary}"
        case BranchSummaryMessage():
            return f"[summary of another branch]\n{message.summary}"
        case _:
            return ""


def _content(content: Any) -> str:
    parts = []
    for block in blocks_of(content):
        match block:
            case TextBlock():
                parts.append(block.text)
            case ThinkingBlock(redacted=False) if block.thinking.strip():
                parts.append(f"(thinking: {clip(block.thinking, 200)})")
            case ImageBlock():
                parts.append(f"[image {block.mime_type}]")
            case ToolCall():
                arguments = json.dumps(block.arguments, ensure_ascii=False, default=str)
                parts.append(f"[{block.name} {clip(arguments, 200)}]")
            case _:
                pass
    return "\n".join(parts)


def _few_lines(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= _RESULT_LINES:
        return text
    return "\n".join(lines[:_RESULT_LINES]) + f"\n  ... {len(lines) - _RESULT_LINES} more lines"


def markdown(title: str, messages: Iterable[Message]) -> str:
    """A conversation as a Markdown document."""
    parts = [f"# {title}"]
    for message in messages:
        match message:
            case UserMessage():
                parts.append(f"## User\n\n{_content(message.content)}")
            case AssistantMessage():
                parts.append(f"## Assistant\n\n{_content(message.content) or '(nothing said)'}")
            case ToolResultMessage():
                parts.append(f"### Result of {message.tool_name}\n\n{_fenced(text_of(message.content))}")
            case _:
                text = message_text(message)
                if text:
                    parts.append(text)
    return "\n\n".join(parts) + "\n"


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def tree_lines(nodes: Sequence[Node], leaf_id: str | None) -> list[str]:
    """The tree, children indented only where a branch forks."""
    lines: list[str] = []
    stack = [(node, 0) for node in reversed(nodes)]
    while stack:
        node, depth = stack.pop()
        mark = "*" if node.entry.id == leaf_id else " "
        label = f"  #{node.label}" if node.label else ""
        lines.append(f"{mark} {'  ' * depth}{node.entry.id}  {describe(node.entry)}{label}")
        deeper = depth + 1 if len(node.children) > 1 else depth
        stack += [(child, deeper) for child in reversed(node.children)]
    return lines


def describe(entry: Entry) -> str:
    """An entry on one line."""
    message = entry.message
    if message is not None:
        return f"{message.role}: {clip(message_text(message).partition('> ')[2] or message_text(message), 80)}"
    match entry.type:
        case "compaction":
            first_kept = entry.text("firstKeptEntryId")
            size = f"{entry.fields.get('tokensBefore', '?')} tokens{f', kept from {first_kept}' if first_kept else ''}"
            return f"compaction of {size}: {clip(entry.text('summary'), 80)}"
        case "branch_summary":
            return f"branch_summary: {clip(entry.text('summary'), 80)}"
        case "model_change":
            return f"model: {entry.text('provider')}/{entry.text('modelId')}"
        case "thinking_level_change":
            return f"thinking: {entry.text('thinkingLevel')}"
        case "session_info":
            return f"name: {entry.text('name')}"
        case "custom" | "custom_message":
            return f"{entry.type}: {entry.text('customType')}"
        case _:
            return entry.type


def tree_json(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """The tree as a flat list, parents before children: a conversation is one very deep branch."""
    rows: list[dict[str, Any]] = []
    stack: list[tuple[Node, str | None]] = [(n, None) for n in reversed(nodes)]
    while stack:
        node, parent = stack.pop()
        row: dict[str, Any] = {
            "id": node.entry.id,
            "parentId": parent,
            "type": node.entry.type,
            "timestamp": node.entry.timestamp,
            "summary": describe(node.entry),
            "children": [c.entry.id for c in node.children],
        }
        if node.label:
            row["label"] = node.label
        rows.append(row)
        stack += [(child, node.entry.id) for child in reversed(node.children)]
    return rows
