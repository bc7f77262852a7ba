"""The system prompt: named sections in a fixed order, without a byte that changes between turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lamella.types.hooks import PromptSection
from lamella.types.host import ChatType
from lamella.types.model import ToolSpec

OPENING_ORDER = 0
TOOLS_ORDER = 100
WORKSPACE_ORDER = 300

DEFAULT_OPENING = (
    "You are {name}, an assistant with a workspace and a memory. Answer in the language of the person "
    "you talk to. Say what you know and what you do not know; when something comes from a file, name "
    "the file."
)


def opening(name: str, configured: str = "") -> PromptSection:
    """Who the agent is."""
    text = configured.strip() or DEFAULT_OPENING.format(name=name.strip() or "lamella")
    return PromptSection("opening", text, OPENING_ORDER, ("full", "minimal"))


def tool_section(tools: Sequence[ToolSpec], workspace: str) -> PromptSection:
    """The tools on offer, one line each, and where relative paths start."""
    lines = [f"- {t.name}: {t.description.split('. ')[0].rstrip('.')}." for t in sorted(tools, key=lambda t: t.name)]
    text = "## Tools\n" + "\n".join(lines) if lines else "## Tools\nNo tools are available."
    return PromptSection("tools", f"{text}\n\nPaths are relative to the workspace {workspace}.", TOOLS_ORDER)


def arrange(sections: Iterable[PromptSection], mode: str = "full") -> list[PromptSection]:
    """Sections of a mode with text, by order and then name."""
    chosen = [s for s in sections if s.text.strip() and mode in s.modes]
    return sorted(chosen, key=lambda s: (s.order, s.name))


def for_chat(sections: Iterable[PromptSection], chat_type: ChatType) -> list[PromptSection]:
    """The sections that belong into a chat of this type, in the same order."""
    return [s for s in sections if chat_type in s.chats]


def render(sections: Iterable[PromptSection]) -> str:
    """The prompt: section texts joined by blank lines."""
    return "\n\n".join(s.text.strip() for s in sections)
