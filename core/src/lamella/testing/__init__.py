"""For the tests of plugins: fixtures, a recorder of hooks, a builder of transcripts, and a contract of backends.

With the extra `lamella[testing]` pytest finds the fixtures by itself; see `lamella.testing.pytest_plugin`.
Nothing here is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lamella.testing.contract import MemoryBackendContract
    from lamella.testing.recorder import HookRecorder
    from lamella.testing.registrations import registered_backend
    from lamella.testing.runtimes import RuntimeFactory
    from lamella.testing.transcripts import TranscriptBuilder

_EXPORTS = {
    "HookRecorder": "lamella.testing.recorder",
    "MemoryBackendContract": "lamella.testing.contract",
    "RuntimeFactory": "lamella.testing.runtimes",
    "TranscriptBuilder": "lamella.testing.transcripts",
    "registered_backend": "lamella.testing.registrations",
}

__all__ = ["HookRecorder", "MemoryBackendContract", "RuntimeFactory", "TranscriptBuilder", "registered_backend"]


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        return getattr(import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'lamella.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
