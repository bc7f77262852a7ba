"""What every memory backend must do, as a class of tests that a backend's author subclasses:

    class TestPlain(MemoryBackendContract):
        def registration(self) -> BackendRegistration:
            return registered_backend(Plain)

Each test says in its name what is asked for, and in its message what came instead. See `ContractBase`
for what can be adjusted.
"""

from __future__ import annotations

from lamella.testing.contract.files import FilesContract
from lamella.testing.contract.life import LifeContract
from lamella.testing.contract.searching import SearchContract
from lamella.testing.contract.syncing import SyncContract


class MemoryBackendContract(SearchContract, FilesContract, SyncContract, LifeContract):
    """All contracts of a memory backend; subclass it with a name that begins with `Test`."""


__all__ = ["MemoryBackendContract"]
