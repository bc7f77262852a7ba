"""A backend with sqlite behind it keeps the contract of memory backends, as long as one of the two does.

Both have the same name here, since the contract asks who answers.
"""

from __future__ import annotations

import pytest
from attrs import evolve
from backends import FAILS, Mood, ShakyBackend

from lamella.memory.cooling import CoolingFile
from lamella.memory.fallback import FallbackBackend
from lamella.memory.pairing import Lazily
from lamella.testing import MemoryBackendContract, registered_backend
from lamella.types.memory import BackendContext, BackendRegistration, MemoryBackend
from lamella_memory_core import MemoryCore

SQLITE = registered_backend(MemoryCore, "sqlite", embedder="none")


class TestTheFallbackAnswers(MemoryBackendContract):
    def registration(self) -> BackendRegistration:
        def open_broken(context: BackendContext) -> MemoryBackend:
            first = Lazily("sqlite", lambda: ShakyBackend(context, Mood(FAILS)))
            second = Lazily("sqlite", lambda: SQLITE.factory(context))
            return FallbackBackend(first, second, CoolingFile(context.state_dir, "sqlite"))

        return BackendRegistration("sqlite", open_broken)


@pytest.mark.slow
class TestTheFirstAnswers(MemoryBackendContract):
    def registration(self) -> BackendRegistration:
        def open_sound(context: BackendContext) -> MemoryBackend:
            apart = evolve(context, state_dir=context.state_dir / "behind")
            first = Lazily("sqlite", lambda: SQLITE.factory(context))
            second = Lazily("other", lambda: SQLITE.factory(apart))
            return FallbackBackend(first, second, CoolingFile(context.state_dir, "sqlite"))

        return BackendRegistration("sqlite", open_sound)
