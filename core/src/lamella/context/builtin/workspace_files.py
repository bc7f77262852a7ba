"""Stable context: the workspace's own files in the system prompt, in a fixed order and a budget."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import evolve, frozen

from lamella.config.schema import between, setting
from lamella.context.prompt import WORKSPACE_ORDER
from lamella.plugins import hookimpl
from lamella.text.files import read_text_file
from lamella.types.hooks import PromptSection, RegistrationContext
from lamella.types.host import PRIVATE_CHATS

# Lasting facts about the user: for the user's own chats, not for those that others read.
_PRIVATE = "MEMORY.md"
FILES = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", _PRIVATE)
_MAX_BYTES = 2 * 1024 * 1024
_HEAD_SHARE, _TAIL_SHARE = 0.7, 0.2


@frozen(slots=True)
class WorkspaceFilesConfig:
    """Settings of the plugin, with their defaults."""

    file_max_chars: int = setting(
        20_000, "Most characters of one file; a longer one is cut in the middle.", check=between(0)
    )
    total_max_chars: int = setting(60_000, "Most characters of all files together.", check=between(0))
    memory_in_groups: bool = setting(False, "Show MEMORY.md in group and channel chats too.")


class WorkspaceFiles:
    """Puts AGENTS.md, SOUL.md and the other stable files into the prompt."""

    name = "workspace-files"
    Config = WorkspaceFilesConfig

    def __init__(self, config: WorkspaceFilesConfig) -> None:
        self.config = config

    @hookimpl
    def prompt_sections(self, context: RegistrationContext) -> Iterable[PromptSection]:
        left = self.config.total_max_chars
        sections = []
        for number, path in enumerate(stable_files(context.workspace)):
            text = read_text_file(path).text.strip()
            if not text or left <= 0:
                continue
            shown = shorten(text, min(self.config.file_max_chars, left), path.name)
            left -= len(shown)
            section = PromptSection(path.name, f"## {path.name}\n{shown}", WORKSPACE_ORDER + number)
            private = path.name.upper() == _PRIVATE.upper() and not self.config.memory_in_groups
            sections.append(evolve(section, chats=PRIVATE_CHATS) if private else section)
        return sections


def stable_files(workspace: Path) -> list[Path]:
    """The files that exist, are plain files inside the workspace, and are not huge."""
    root = workspace.resolve()
    found = []
    for name in FILES:
        path = workspace / name
        if not path.exists() and name == _PRIVATE:
            path = workspace / "memory.md"
        if not path.is_file() or not path.resolve().is_relative_to(root):
            continue
        stat = path.stat()
        if stat.st_nlink == 1 and stat.st_size <= _MAX_BYTES:
            found.append(path)
    return found


def shorten(text: str, limit: int, name: str) -> str:
    """The text within a limit of characters: its head and tail with a marker between them."""
    if len(text) <= limit:
        return text
    head, tail = int(limit * _HEAD_SHARE), int(limit * _TAIL_SHARE)
    marker = f"\n\n[... {name} is cut here: {len(text) - head - tail} of {len(text)} characters left out ...]\n\n"
    return text[:head] + marker + (text[-tail:] if tail else "")
