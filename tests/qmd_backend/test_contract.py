"""The backend `qmd` keeps the contract of memory backends."""

from __future__ import annotations

from pathlib import Path

import pytest
from qmd_programs import StandIn

from lamella.testing import MemoryBackendContract, registered_backend
from lamella.types.memory import BackendRegistration
from lamella_qmd_backend import QmdBackendPlugin


@pytest.mark.slow
class TestCommandLine(MemoryBackendContract):
    @pytest.fixture
    def lamella_backend(self, tmp_path: Path) -> BackendRegistration:
        qmd = StandIn.make(tmp_path / "bin")
        return registered_backend(QmdBackendPlugin, "qmd", command=qmd.command, mcp=False)


class TestServer(MemoryBackendContract):
    @pytest.fixture
    def lamella_backend(self, tmp_path: Path) -> BackendRegistration:
        qmd = StandIn.make(tmp_path / "bin")
        return registered_backend(QmdBackendPlugin, "qmd", command=qmd.command)
