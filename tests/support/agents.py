"""A runtime on a scratch folder with a scripted model, for tests of whole turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lamella.models.scripted import ScriptedModel
from lamella.runtime import Runtime
from lamella.types import events as e

# Small prompts, so that tests with small windows measure the conversation and nothing else.
BUILT_IN_TOOLS = ["read", "write", "edit", "grep", "find", "ls", "session_recall"]
QUICK = {"retry.base_delay_ms": 1, "compaction.reserve_tokens_floor": 0, "tools.deny": BUILT_IN_TOOLS}


def scripted(steps: Iterable[Any], **options: Any) -> ScriptedModel:
    options.setdefault("context_window", 100_000)
    return ScriptedModel(steps, **options)


def open_agent(
    home: Path,
    model: Any,
    *,
    settings: Mapping[str, Any] | None = None,
    plugins: Iterable[Any] = (),
    tools: Iterable[Any] = (),
    environ: Mapping[str, str] | None = None,
    **options: Any,
) -> Runtime:
    """A runtime whose state and workspace lie below `home`; installed plugins are left out."""
    workspace = home / "ws"
    workspace.mkdir(parents=True, exist_ok=True)
    return Runtime.open(
        workspace=workspace,
        model=model,
        system_prompt="SYS",
        settings={**QUICK, **(settings or {})},
        plugins=plugins,
        tools=tools,
        environ={"LAMELLA_HOME": str(home / "state"), "LAMELLA_PLUGINS": "", **(environ or {})},
        **options,
    )


class Recorder:
    """A listener that keeps the events."""

    def __init__(self) -> None:
        self.events: list[e.AgentEvent] = []

    def __call__(self, event: e.AgentEvent) -> None:
        self.events.append(event)

    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]
