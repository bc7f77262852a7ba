"""What all parts of the contract share: the backend that is tested, and what may be adjusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lamella.testing.contract.notebook import Notebook
from lamella.types.memory import BackendRegistration, EmbedderRegistration, MemoryBackend


class ContractBase:
    """Override `registration`; the rest where the protocol leaves a choice.

    `keeps_index`: something derived is kept, so a sync can tell what it changed, and `as_is` answers
    from the last sync. `searches_fresh`: a search takes in changed files by itself.
    `reads_transcripts`: session transcripts are searched where the context names a folder of them.
    """

    keeps_index = True
    searches_fresh = True
    reads_transcripts = True

    def registration(self) -> BackendRegistration:
        """The backend under test, as its plugin registers it."""
        raise NotImplementedError(
            f"{type(self).__name__} must say which backend it tests: override registration(), or the fixture "
            "lamella_backend when it needs other fixtures"
        )

    def embedders(self) -> Mapping[str, EmbedderRegistration]:
        """Embedders that the backend is offered; none, unless overridden."""
        return {}

    def settle(self, backend: MemoryBackend) -> None:
        """Wait until the backend has finished what its last sync began; nothing, unless overridden."""

    @pytest.fixture
    def lamella_backend(self) -> BackendRegistration:
        """The registration; override it as a fixture when it needs other fixtures."""
        return self.registration()

    @pytest.fixture
    def notebook(self, lamella_backend: BackendRegistration, tmp_path: Path) -> Iterator[Notebook]:
        """An empty workspace, and the backend to open on it."""
        notebook = Notebook(lamella_backend, tmp_path, self.embedders(), self.settle)
        yield notebook
        notebook.close()
