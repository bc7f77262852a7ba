from __future__ import annotations

from typing import Any

from lamella_tfidf_backend import Tfidf

from lamella.testing import MemoryBackendContract, registered_backend
from lamella.types.memory import BackendRegistration, Provenance, SearchQuery


class TestTfidf(MemoryBackendContract):
    def registration(self) -> BackendRegistration:
        return registered_backend(Tfidf)


class TestSmallPassages(MemoryBackendContract):
    def registration(self) -> BackendRegistration:
        return registered_backend(Tfidf, passage_tokens=16)


def test_it_answers_for_memory_core(lamella_runtime: Any) -> None:
    runtime = lamella_runtime(installed=["memory-core", "tfidf-backend"], settings={"memory.backend": "tfidf"})
    memory = runtime.require_memory()
    memory.append("The staging server is called bluebird.", provenance=Provenance("test"))
    found = memory.search(SearchQuery("What is the staging server called?"))
    assert found.backend == "tfidf"
    assert found.degraded is None
    assert "bluebird" in found.hits[0].snippet


def test_an_index_of_another_workspace_is_made_anew(lamella_runtime: Any, tmp_path: Any) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "MEMORY.md").write_text(f"The okapi of {name}.\n")
    settings = {"memory.backend": "tfidf"}
    for name in ("one", "two", "one"):
        runtime = lamella_runtime(
            installed=["memory-core", "tfidf-backend"], settings=settings, workspace=tmp_path / name
        )
        hits = runtime.require_memory().search(SearchQuery("okapi")).hits
        assert [h.snippet for h in hits] == [f"The okapi of {name}."]
