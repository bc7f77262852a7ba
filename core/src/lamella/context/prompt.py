"""The system prompt: named sections in a fixed order, without a byte that changes between turns.

Order, and the modes that have a section (plugins' own sections have order 500 unless they say):

    0    opening        who the agent is                          full, minimal, none
    100  tools          what it can call                          full, minimal
    300  skills         plugin skills                             full, minimal
    400  memory         the plugin in slot memory                 full
    600  workspace      the folder that paths start from          full, minimal
    650  time           the time zone, never the time             full, minimal
    700  files          plugin workspace-files                    full, minimal
    900  runtime        agent, system, model                      full, minimal
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from lamella.sessions.keys import SessionKey
from lamella.text.unicode import one_line, well_formed
from lamella.types.hooks import PromptContext, PromptMode, PromptSection
from lamella.types.model import ToolSpec

OPENING_ORDER = 0
TOOLS_ORDER = 100
SKILLS_ORDER = 300
WORKSPACE_ORDER = 600
TIME_ORDER = 650
FILES_ORDER = 700
RUNTIME_ORDER = 900

WORKING: tuple[PromptMode, ...] = ("full", "minimal")
_TOOL_ORDER = ("read", "write", "edit", "grep", "find", "ls", "exec")

DEFAULT_OPENING = (
    "You are {name}, an assistant with a workspace and a memory. Answer in the language of the person "
    "you talk to. Say what you know and what you do not know; when something comes from a file, name "
    "the file."
)


def mode_for(key: SessionKey) -> PromptMode:
    """The prompt that a session gets unless it is told otherwise: runs that nobody watches a short one."""
    return "minimal" if key.kind in ("subagent", "cron") else "full"


def as_mode(setting: str) -> PromptMode | None:
    """The mode that `context.prompt_mode` names; None for `auto`."""
    return next((m for m in get_args(PromptMode) if m == setting), None)


def opening(name: str, configured: str = "") -> PromptSection:
    """Who the agent is."""
    text = configured.strip() or DEFAULT_OPENING.format(name=one_line(name).strip() or "lamella")
    return PromptSection("opening", text, OPENING_ORDER, (*WORKING, "none"))


def tool_section(tools: Sequence[ToolSpec]) -> PromptSection:
    """The tools on offer, one line each: files, commands, then the others by name."""
    lines = [f"- {t.name}: {t.description.split('. ')[0].rstrip('.')}." for t in sorted(tools, key=_tool_rank)]
    text = "## Tools\n" + "\n".join(lines) if lines else "## Tools\nNo tools are available."
    return PromptSection("tools", text, TOOLS_ORDER, WORKING)


def _tool_rank(tool: ToolSpec) -> tuple[int, str]:
    known = tool.name.lower() in _TOOL_ORDER
    return (_TOOL_ORDER.index(tool.name.lower()) if known else len(_TOOL_ORDER), tool.name)


def workspace_section(workspace: Path) -> PromptSection:
    """The folder that relative paths start from."""
    text = f"## Workspace\nYour working folder is {one_line(str(workspace))}. Relative paths start there."
    return PromptSection("workspace", text, WORKSPACE_ORDER, WORKING)


def time_section(timezone: str) -> PromptSection:
    """The zone that dates are meant in; empty when none is configured. The time itself would change
    the prompt, and with it everything that a provider has cached."""
    text = f"## Dates\nDates are days in the time zone {timezone}." if timezone else ""
    return PromptSection("time", text, TIME_ORDER, WORKING)


def runtime_section(agent_id: str, model: str) -> PromptSection:
    """What runs here, on one line."""
    facts = (("agent", agent_id), ("os", f"{platform.system()} ({platform.machine()})"), ("model", one_line(model)))
    text = "Runtime: " + " | ".join(f"{name}={value}" for name, value in facts if value)
    return PromptSection("runtime", text, RUNTIME_ORDER, WORKING)


def arrange(sections: Iterable[PromptSection], context: PromptContext) -> list[PromptSection]:
    """The sections with text that belong into this prompt, by order and then name."""

    def belongs(section: PromptSection) -> bool:
        usable = not section.needs_tools or not set(section.needs_tools).isdisjoint(context.tools)
        return context.mode in section.modes and context.chat_type in section.chats and usable

    chosen = [s for s in sections if s.text.strip() and belongs(s)]
    return sorted(chosen, key=lambda s: (s.order, s.name))


def section_texts(sections: Iterable[PromptSection]) -> list[str]:
    """The texts of sections as they stand in the prompt: valid Unicode, each but the first behind a blank line."""
    return [("\n\n" if i else "") + well_formed(s.text.strip()) for i, s in enumerate(sections)]


def render(sections: Iterable[PromptSection]) -> str:
    """The prompt that consists of these sections."""
    return "".join(section_texts(sections))
