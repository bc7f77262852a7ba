"""lamella: layered context memory for LLM agents.

from lamella import Runtime

async with Runtime.open(workspace="notes", model="offline") as runtime:
    print((await runtime.ask("What did we decide?")).text)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamella.agent.turn import TurnResult
    from lamella.errors import LamellaError
    from lamella.plugins.hookspecs import hookimpl
    from lamella.runtime import Runtime
    from lamella.session import Session
    from lamella.types.results import ToolResult
    from lamella.types.tools import Tool, ToolContext

_EXPORTS = {
    "LamellaError": "lamella.errors",
    "Runtime": "lamella.runtime",
    "Session": "lamella.session",
    "Tool": "lamella.types.tools",
    "ToolContext": "lamella.types.tools",
    "ToolResult": "lamella.types.results",
    "TurnResult": "lamella.agent.turn",
    "hookimpl": "lamella.plugins.hookspecs",
}

__all__ = ["LamellaError", "Runtime", "Session", "Tool", "ToolContext", "ToolResult", "TurnResult", "hookimpl"]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import lamella` stays light."""
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'lamella' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
