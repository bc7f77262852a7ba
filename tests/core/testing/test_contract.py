"""The contract of memory backends holds for the example backend, and catches backends that break it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import evolve

from lamella.testing import MemoryBackendContract, registered_backend
from lamella.testing.contract.notebook import Notebook
from lamella.types.memory import BackendContext, BackendRegistration, MemoryResults, SearchQuery, SyncReport

EXAMPLE = Path(__file__).parents[3] / "examples" / "plugins" / "lamella-tfidf-backend"
sys.path.insert(0, str(EXAMPLE / "src"))

from lamella_tfidf_backend import Tfidf  # noqa: E402
from lamella_tfidf_backend.backend import TfidfBackend  # noqa: E402


class TestExample(MemoryBackendContract):
    def registration(self) -> BackendRegistration:
        return registered_backend(Tfidf)


# --- backends that break it --------------------------------------------------------------------------------


class Faulty(TfidfBackend):
    """A backend with what a subclass makes of its answers."""

    def __init__(self, context: BackendContext) -> None:
        super().__init__(context, 128)


def changed(**how: Callable[[Any], Any]) -> type[Faulty]:
    """A backend whose hits have other fields."""

    class Changed(Faulty):
        def search(self, query: SearchQuery) -> MemoryResults:
            found = super().search(query)
            return evolve(
                found, hits=tuple(evolve(h, **{name: make(h) for name, make in how.items()}) for h in found.hits)
            )

    return Changed


class WorstFirst(Faulty):
    def search(self, query: SearchQuery) -> MemoryResults:
        found = super().search(query)
        return evolve(found, hits=found.hits[::-1])


class Twice(Faulty):
    def search(self, query: SearchQuery) -> MemoryResults:
        found = super().search(query)
        return evolve(found, hits=(found.hits * 2)[: query.max_results])


class Ignores(Faulty):
    """Passes by a part of each query."""

    part: ClassVar[dict[str, Any]] = {}

    def search(self, query: SearchQuery) -> MemoryResults:
        return super().search(evolve(query, **self.part))


def ignores(**part: Any) -> type[Ignores]:
    return type("IgnoresThis", (Ignores,), {"part": part})


class FollowsLinks(Faulty):
    def search(self, query: SearchQuery) -> MemoryResults:
        from lamella.types.memory import MemoryHit

        every = (self._context.workspace / "memory").rglob("*.md")
        names = [str(p.relative_to(self._context.workspace)) for p in every if "okapi" in p.read_text(errors="replace")]
        return MemoryResults(tuple(MemoryHit(n, 1, 1, 0.5, "the okapi code is 7788") for n in names), self.name)


class Forgetful(Faulty):
    """Never takes a file out."""

    def _take_in(self, scan: Any, before: Any, progress: Any) -> Any:
        files, failed = super()._take_in(scan, before, progress)
        return {**before.files, **files}, failed


class SizeOnly(Faulty):
    def _take_in(self, scan: Any, before: Any, progress: Any) -> Any:
        known = {n: f.stamp[1] for n, f in before.files.items()}
        files, failed = super()._take_in(scan, before, progress)
        return {n: before.files[n] if known.get(n) == f.stamp[1] else f for n, f in files.items()}, failed


class Rewrites(Faulty):
    def sync(self, **options: Any) -> SyncReport:
        report = super().sync(**options)
        (self._context.workspace / "memory" / "index.txt").write_text("mine")
        return report


class Crashes(Faulty):
    def search(self, query: SearchQuery) -> MemoryResults:
        if "\x00" in query.text or "(((" in query.text:
            raise ValueError("bad query")
        return super().search(query)


class Leaks(Faulty):
    """Lets whatever the system says out."""

    def sync(self, **options: Any) -> SyncReport:
        self._context.state_dir.joinpath("x").write_text("x")
        return super().sync(**options)


class NoJson(Faulty):
    def status(self) -> dict[str, Any]:
        return {**super().status(), "path": self._context.workspace}


class CloseOnce(Faulty):
    closed = False

    def close(self) -> None:
        assert not self.closed
        self.closed = True


class OwnMemory(Faulty):
    """Keeps what it knows to itself."""

    def _index(self) -> Any:
        return getattr(self, "own", self._empty), ""

    def _keep(self, index: Any) -> None:
        self.own = index


class Prints(Faulty):
    def status(self) -> dict[str, Any]:
        sys.stdout.write("looking")
        return super().status()


class Moves(Faulty):
    def status(self) -> dict[str, Any]:
        os.chdir("..")
        return super().status()


class Litters(Faulty):
    def status(self) -> dict[str, Any]:
        Path("cache").write_text("mine")
        return super().status()


class ByName(Faulty):
    """Excludes every file of a name."""

    def search(self, query: SearchQuery) -> MemoryResults:
        found = super().search(evolve(query, exclude=(), max_results=99))
        kept = tuple(h for h in found.hits if not any(h.path.endswith(path) for path in query.exclude))
        return evolve(found, hits=kept[: query.max_results])


class FirstSource(Faulty):
    def search(self, query: SearchQuery) -> MemoryResults:
        return super().search(evolve(query, sources=query.sources[:1]))


class Miscounts(Faulty):
    def sync(self, **options: Any) -> SyncReport:
        return evolve(super().sync(**options), seen=0)


@contextlib.contextmanager
def notebook_of(backend: type[Faulty], folder: Path) -> Iterator[Notebook]:
    notebook = Notebook(BackendRegistration("tfidf", backend), folder, {}, lambda _b: None)
    yield notebook
    with contextlib.suppress(AssertionError):
        notebook.close()


FAULTS = {
    "scores above 1": (changed(score=lambda h: h.score + 1), "test_results_have_the_form_of_the_protocol", "0 to 1"),
    "no score": (changed(score=lambda h: float("nan")), "test_results_have_the_form_of_the_protocol", "a number"),
    "worst first": (WorstFirst, "test_max_results_and_min_score_are_honoured", "best first"),
    "twice": (Twice, "test_results_have_the_form_of_the_protocol", "found twice"),
    "empty snippets": (changed(snippet=lambda h: ""), "test_results_have_the_form_of_the_protocol", "is empty"),
    "other snippets": (
        changed(snippet=lambda h: "okapi but not as it stands there"),
        "test_line_numbers_are_right_with_windows_line_ends",
        "does not stand in these lines",
    ),
    "lines from 0": (
        changed(start_line=lambda h: h.start_line - 1),
        "test_results_have_the_form_of_the_protocol",
        "lines count from 1",
    ),
    "absolute paths": (
        changed(path=lambda h: f"/x/{h.path}"),
        "test_results_have_the_form_of_the_protocol",
        "relative to the workspace",
    ),
    "excluded files": (ignores(exclude=()), "test_an_excluded_file_is_not_in_the_answer", "may not see"),
    "files of one name": (ByName, "test_an_excluded_file_is_not_in_the_answer", "by its whole path"),
    "one source": (FirstSource, "test_sources_limit_the_answer", "any of the sources"),
    "other sources": (ignores(sources=()), "test_sources_limit_the_answer", "is not in"),
    "too many": (ignores(max_results=99), "test_max_results_and_min_score_are_honoured", "max_results is 1"),
    "too weak": (ignores(min_score=0.0), "test_max_results_and_min_score_are_honoured", "below min_score"),
    "never fresh": (ignores(as_is=True), "test_a_search_sees_changes_by_itself", "needs no sync"),
    "always fresh": (ignores(as_is=False), "test_as_is_answers_from_the_last_sync", "not looked at"),
    "links": (FollowsLinks, "test_a_link_to_a_file_is_not_followed", "outside of the workspace"),
    "hard links": (FollowsLinks, "test_a_file_with_two_names_is_not_searched", "outside of the workspace"),
    "deleted files": (Forgetful, "test_a_deleted_file_is_forgotten", "cannot be read: missing"),
    "edits of one size": (SizeOnly, "test_an_edit_of_the_same_size_is_seen", "keep its size"),
    "writing": (Rewrites, "test_the_workspace_is_only_read", "state_dir only"),
    "status": (NoJson, "test_status_is_json_before_and_after_a_sync", "JSON values only"),
    "state of its own": (OwnMemory, "test_what_one_object_has_taken_in_another_one_finds", "share what is derived"),
    "counts": (Miscounts, "test_a_sync_tells_what_it_did", "every file that was seen"),
    "failures": (Leaks, "test_an_unusable_state_folder_is_survived_or_told", "MemoryUnavailable"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught_and_the_author_is_told_what_is_wanted(fault: str, tmp_path: Path) -> None:
    backend, test, told = FAULTS[fault]
    with notebook_of(backend, tmp_path) as notebook, pytest.raises(AssertionError) as caught:
        getattr(TestExample(), test)(notebook)
    assert told in str(caught.value)


def test_an_exception_at_an_odd_query_is_caught(tmp_path: Path) -> None:
    for kind in ("NUL", "brackets"):
        (tmp_path / kind).mkdir()
        with notebook_of(Crashes, tmp_path / kind) as notebook, pytest.raises(ValueError, match="bad query"):
            TestExample().test_no_query_raises(notebook, kind)


@pytest.mark.parametrize(
    ("backend", "told"),
    [(Prints, "printed was 'looking"), (Moves, "working folder belongs"), (Litters, "goes into state_dir")],
)
def test_a_backend_that_leaves_traces_is_caught(
    backend: type[Faulty],
    told: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with notebook_of(backend, tmp_path) as notebook, pytest.raises(AssertionError) as caught:
        TestExample().test_nothing_but_the_state_folder_is_touched(notebook, capfd, monkeypatch)
    assert told in str(caught.value)


def test_closing_once_only_is_caught(tmp_path: Path) -> None:
    with notebook_of(CloseOnce, tmp_path) as notebook, pytest.raises(AssertionError):
        TestExample().test_closing_twice_is_no_error(notebook)


def test_an_author_who_names_no_backend_is_told_how() -> None:
    with pytest.raises(NotImplementedError, match=r"override registration\(\), or the fixture lamella_backend"):
        MemoryBackendContract().registration()
