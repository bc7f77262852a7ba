"""The contract of a backend's life: opening, status, several at once, failures, closing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lamella.errors import LamellaError, MemoryUnavailable, UsageError
from lamella.testing.contract.base import ContractBase
from lamella.testing.contract.checks import check_results, check_status
from lamella.testing.contract.notebook import Notebook
from lamella.types.memory import BackendRegistration, MemoryBackend, SearchQuery

ROUNDS = 8


class LifeContract(ContractBase):
    """What happens around searches and syncs."""

    def test_the_registration_is_complete(self, notebook: Notebook) -> None:
        registration = notebook.registration
        assert isinstance(registration, BackendRegistration), f"expected BackendRegistration, not {registration!r}"
        assert registration.name.strip() == registration.name != "", (
            "a registration has a name, which memory.backend names"
        )
        backend = notebook.open()
        missing = [m for m in ("name", "search", "sync", "status", "close") if not hasattr(backend, m)]
        assert isinstance(backend, MemoryBackend), f"the factory's object lacks {', '.join(missing)}"
        assert backend.name == registration.name, (
            f"backend.name is {backend.name!r}, registered is {registration.name!r}"
        )

    def test_the_state_folder_need_not_exist(self, notebook: Notebook) -> None:
        notebook.write("memory/note.md", "the okapi eats figs\n")
        state = notebook.state_dir / "not" / "there" / "yet"
        backend = notebook.open(state_dir=state)
        check_status(backend.status(), notebook.registration.name)
        notebook.sync(backend)
        assert notebook.found(backend, "okapi") == ["memory/note.md"], "state_dir is made when it is needed"

    def test_status_is_json_before_and_after_a_sync(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.open()
        check_status(backend.status(), notebook.registration.name)
        notebook.sync(backend)
        check_status(backend.status(), notebook.registration.name)

    def test_what_is_derived_outlives_the_object(self, notebook: Notebook) -> None:
        notebook.fill()
        first = notebook.synced()
        answer = notebook.search(first, "night train platform").hits
        first.close()
        again = notebook.open()
        report = notebook.sync(again)
        assert notebook.search(again, "night train platform").hits == answer, "the same notes give the same answer"
        if self.keeps_index:
            assert report.unchanged == report.seen, f"an index that was kept need not be made again: {report}"

    def test_nothing_but_the_state_folder_is_touched(
        self, notebook: Notebook, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        notebook.fill()
        here = notebook.outside / "here"
        here.mkdir(parents=True)
        monkeypatch.chdir(here)
        capfd.readouterr()
        backend = notebook.synced()
        notebook.search(backend, "night train platform")
        backend.status()
        backend.close()
        printed = capfd.readouterr().out
        assert printed == "", f"standard output belongs to the program, which may answer there; printed was {printed!r}"
        assert Path.cwd() == here, f"the working folder belongs to the program; it is {Path.cwd()} now"
        assert list(here.iterdir()) == [], "what is kept goes into state_dir, not into the working folder"

    def test_closing_twice_is_no_error(self, notebook: Notebook) -> None:
        notebook.fill()
        used, unused = notebook.synced(), notebook.open()
        notebook.search(used, "night train")
        for backend in (used, used, unused, unused):
            backend.close()

    # --- failures ----------------------------------------------------------------------------------

    def test_a_missing_workspace_is_an_error_of_lamella(self, notebook: Notebook) -> None:
        gone = notebook.workspace.with_name("gone")
        for what, call in self._calls():
            with pytest.raises((UsageError, MemoryUnavailable)) as caught:
                call(notebook.open(workspace=gone))
            assert str(gone) in str(caught.value), f"{what}: the error must name the folder: {caught.value}"
        assert not gone.exists(), "a backend makes no workspace"

    def test_an_unusable_state_folder_is_survived_or_told(self, notebook: Notebook) -> None:
        notebook.fill()
        state = notebook.state_dir / "a file"
        state.write_text("not a folder", encoding="utf-8")
        backend = self._opened(notebook, state)
        if backend is None:
            return
        check_status(backend.status(), notebook.registration.name)
        for what, call in self._calls():
            try:
                call(backend)
            except LamellaError:
                continue  # told; `MemoryUnavailable` lets another backend answer
            except Exception as error:
                raise AssertionError(
                    f"{what} raised {type(error).__name__}: {error}; what cannot be done is told as MemoryUnavailable"
                ) from error

    def _opened(self, notebook: Notebook, state: Any) -> MemoryBackend | None:
        """A backend; None when it says at once that it is unavailable."""
        try:
            return notebook.open(state_dir=state)
        except MemoryUnavailable:
            return None

    def _calls(self) -> list[tuple[str, Callable[[MemoryBackend], Any]]]:
        return [
            ("search", lambda backend: backend.search(SearchQuery("night train"))),
            ("sync", lambda backend: backend.sync()),
            ("sync(force=True)", lambda backend: backend.sync(force=True)),
        ]

    # --- several at once ---------------------------------------------------------------------------

    def test_a_search_can_run_beside_a_sync(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        stop = threading.Event()

        def sync() -> None:
            try:
                for n in range(ROUNDS):
                    notebook.write(f"memory/new-{n}.md", f"The okapi {n} eats figs.\n")
                    backend.sync(force=n == ROUNDS // 2)
            finally:
                stop.set()

        def search() -> int:
            searches = 0
            while not stop.is_set() or not searches:
                query = SearchQuery("night train platform", as_is=searches % 2 == 0)
                results = backend.search(query)
                check_results(results, query, notebook.registration.name)
                assert any(h.path == "memory/travel.md" for h in results.hits), "a note got lost during a sync"
                backend.status()
                searches += 1
            return searches

        self._together(sync, search)
        self.settle(backend)
        found = {p for p in notebook.found(backend, "okapi figs", max_results=50) if p.startswith("memory/new-")}
        assert len(found) == ROUNDS, f"all notes that were written during the syncs are found: {found}"

    def test_two_objects_can_share_a_state_folder(self, notebook: Notebook) -> None:
        notebook.fill()
        first, second = notebook.synced(), notebook.open()

        def work(backend: MemoryBackend, name: str) -> Callable[[], None]:
            def run() -> None:
                for n in range(ROUNDS):
                    notebook.write(f"memory/{name}-{n}.md", f"The okapi {name} {n} eats figs.\n")
                    backend.sync()
                    notebook.search(backend, "night train platform")

            return run

        self._together(work(first, "one"), work(second, "two"))
        third = notebook.open()
        for backend in (first, second, third):
            notebook.sync(backend)
            found = set(notebook.found(backend, "okapi figs", max_results=50))
            missing = {f"memory/{name}-{n}.md" for name in ("one", "two") for n in range(ROUNDS)} - found
            assert not missing, f"every object must see what all have written; one misses {sorted(missing)}"

    def test_what_one_object_has_taken_in_another_one_finds(self, notebook: Notebook) -> None:
        notebook.fill()
        first, second = notebook.synced(), notebook.synced()
        notebook.write("memory/new.md", "The okapi eats figs.\n")
        notebook.sync(first)
        if self.keeps_index:
            found = [h.path for h in notebook.search(second, "okapi figs", as_is=True).hits]
            assert found[:1] == ["memory/new.md"], "two objects on one state folder share what is derived"
        notebook.remove("memory/new.md")
        notebook.sync(first)
        notebook.sync(second)
        assert "memory/new.md" not in notebook.found(second, "okapi figs"), "and what is forgotten"

    def _together(self, *functions: Callable[[], Any]) -> None:
        """Run functions at the same time; the first failure is raised."""
        with ThreadPoolExecutor(len(functions)) as pool:
            for future in [pool.submit(function) for function in functions]:
                future.result(timeout=300)
