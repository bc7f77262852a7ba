"""Behaviours of the core that are plugins on the public hooks: listed, configurable, switchable."""

from __future__ import annotations

from typing import Any


def builtin_plugins() -> dict[str, Any]:
    """Plugins that come with the core, by name."""
    from lamella.context.builtin.daily_notes import DailyNotes
    from lamella.context.builtin.history_limit import HistoryLimit
    from lamella.context.builtin.skills import Skills
    from lamella.context.builtin.workspace_files import WorkspaceFiles

    return {plugin.name: plugin for plugin in (WorkspaceFiles, Skills, DailyNotes, HistoryLimit)}
