"""The contract of `sync`: what is derived follows the files, whatever happened to either."""

from __future__ import annotations

import contextlib
import os
import shutil

import pytest

from lamella.errors import LamellaError
from lamella.testing.contract.base import ContractBase
from lamella.testing.contract.checks import check_report
from lamella.testing.contract.notebook import FILLER, Notebook
from lamella.types.memory import MemoryBackend, SyncProgress

QUESTIONS = ("night train platform", "okapi figs", "图书馆 爬山", "the library wants its atlas back", "lighthouses")


class SyncContract(ContractBase):
    """Bringing what is derived up to date."""

    def test_a_sync_tells_what_it_did(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.open()
        first = notebook.sync(backend)
        assert first.seen == len(FILLER), f"report.seen counts files: {first}"
        assert not first.failed, f"nothing is wrong with these files: {first.failed}"
        if self.keeps_index:
            assert first.added == len(FILLER), f"at the first sync all files are added: {first}"
            assert first.chunks >= len(FILLER), f"report.chunks is the number of passages in the index: {first}"

    def test_a_second_sync_changes_nothing(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        before = self._answers(notebook, backend)
        again = notebook.sync(backend)
        assert (again.added, again.updated, again.removed) == (0, 0, 0), f"no file has changed: {again}"
        assert again.unchanged == again.seen == len(FILLER), f"all files are unchanged: {again}"
        assert self._answers(notebook, backend) == before, "answers stay the same when nothing has changed"

    def test_an_added_file_is_found(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        notebook.write("memory/new.md", "The okapi eats figs.\n")
        report = notebook.sync(backend)
        assert notebook.found(backend, "okapi figs")[:1] == ["memory/new.md"], "a new file must be found after a sync"
        if self.keeps_index:
            assert (report.added, report.updated, report.removed) == (1, 0, 0), f"one file was added: {report}"

    def test_an_edited_file_is_found_by_its_new_text_alone(self, notebook: Notebook) -> None:
        notebook.fill()
        notebook.write("memory/note.md", "The okapi eats figs.\n")
        backend = notebook.synced()
        notebook.write("memory/note.md", "The zebra drinks milk, as everybody knows.\n")
        report = notebook.sync(backend)
        assert notebook.found(backend, "zebra milk")[:1] == ["memory/note.md"], (
            "the new text must be found after a sync"
        )
        shown = [h.snippet for h in notebook.search(backend, "okapi figs", max_results=20).hits]
        assert not [s for s in shown if "okapi" in s], f"the old text must be gone; shown were {shown}"
        if self.keeps_index:
            assert (report.added, report.updated, report.removed) == (0, 1, 0), f"one file was updated: {report}"

    def test_an_edit_of_the_same_size_is_seen(self, notebook: Notebook) -> None:
        notebook.write("memory/note.md", "the okapi\n")
        backend = notebook.synced()
        notebook.write("memory/note.md", "the zebra\n")
        notebook.sync(backend)
        assert notebook.found(backend, "zebra") == ["memory/note.md"], "a file can change and keep its size"

    def test_an_edit_moves_the_lines_below_it(self, notebook: Notebook) -> None:
        notebook.write("memory/note.md", "one\n\nthe okapi eats figs\n")
        backend = notebook.synced()
        notebook.write("memory/note.md", "zero\n\n" * 30 + "one\n\nthe okapi eats figs\n")
        notebook.sync(backend)
        (hit, *_) = notebook.search(backend, "okapi figs").hits
        notebook.check_place(hit)
        assert hit.start_line <= 63 <= hit.end_line, f"the words now stand in line 63, the hit is {hit.citation}"

    def test_a_deleted_file_is_forgotten(self, notebook: Notebook) -> None:
        notebook.fill()
        notebook.write("memory/note.md", "The okapi eats figs.\n")
        backend = notebook.synced()
        notebook.remove("memory/note.md")
        report = notebook.sync(backend)
        found = notebook.found(backend, "okapi figs", max_results=20)
        assert "memory/note.md" not in found, "a deleted file must not be found after a sync"
        if self.keeps_index:
            assert report.removed == 1, f"one file was removed: {report}"

    def test_a_renamed_file_is_found_under_its_new_name(self, notebook: Notebook) -> None:
        notebook.write("memory/old.md", "The okapi eats figs.\n")
        backend = notebook.synced()
        (notebook.workspace / "memory/old.md").rename(notebook.workspace / "memory/new.md")
        notebook.sync(backend)
        assert notebook.found(backend, "okapi figs") == ["memory/new.md"], "a renamed file has its new name only"

    def test_all_files_can_go_and_come_back(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        before = self._answers(notebook, backend)
        shutil.rmtree(notebook.workspace / "memory")
        report = notebook.sync(backend)
        assert report.seen == 0, f"there are no files now: {report}"
        assert notebook.search(backend, "night train").hits == (), "there is nothing to be found now"
        notebook.fill()
        notebook.sync(backend)
        assert self._answers(notebook, backend) == before, "the same files give the same answers"

    def test_a_search_sees_changes_by_itself(self, notebook: Notebook) -> None:
        if not self.searches_fresh:
            pytest.skip("this backend takes in files at syncs only")
        notebook.write("memory/one.md", "The okapi eats figs.\n")
        backend = notebook.open()
        assert notebook.found(backend, "okapi figs") == ["memory/one.md"], "a search needs no sync before it"
        notebook.write("memory/two.md", "The zebra drinks milk.\n")
        assert notebook.found(backend, "zebra milk")[:1] == ["memory/two.md"], "a search takes in changed files"
        notebook.remove("memory/one.md")
        assert "memory/one.md" not in notebook.found(backend, "okapi figs"), "a search forgets deleted files"

    def test_as_is_answers_from_the_last_sync(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        ordinary = notebook.search(backend, "night train").hits
        assert notebook.search(backend, "night train", as_is=True).hits == ordinary, (
            "nothing has changed since the sync"
        )
        notebook.write("memory/new.md", "The okapi eats figs.\n")
        if self.keeps_index:
            found = [h.path for h in notebook.search(backend, "okapi figs", as_is=True).hits]
            assert "memory/new.md" not in found, "with as_is the files are not looked at"

    def test_progress_is_told_in_order(self, notebook: Notebook) -> None:
        notebook.fill()
        heard: list[SyncProgress] = []
        check_report(notebook.open().sync(progress=heard.append), notebook.workspace)
        for state in heard:
            assert isinstance(state, SyncProgress), f"progress is told a SyncProgress, not {type(state).__name__}"
            assert 0 <= state.done <= state.total, f"done is between 0 and total: {state}"

    # --- what is derived can be rebuilt ------------------------------------------------------------

    def test_a_forced_sync_changes_no_answer(self, notebook: Notebook) -> None:
        backend = self._after_many_changes(notebook)
        before = self._answers(notebook, backend)
        report = notebook.sync(backend, force=True)
        assert report.seen == report.added + report.updated + report.unchanged, f"all files were taken in: {report}"
        assert self._answers(notebook, backend) == before, "rebuilding from nothing must give what the syncs gave"

    def test_syncs_one_by_one_equal_a_fresh_index(self, notebook: Notebook) -> None:
        backend = self._after_many_changes(notebook)
        fresh = notebook.synced(state_dir=notebook.state_dir.with_name("fresh"))
        answers, from_nothing = self._answers(notebook, backend), self._answers(notebook, fresh)
        assert answers == from_nothing, "after any changes the answers are those of an index made from nothing"

    def test_a_deleted_state_is_made_again(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        before = self._answers(notebook, backend)
        backend.close()
        shutil.rmtree(notebook.state_dir)
        again = notebook.synced()
        assert self._answers(notebook, again) == before, "what is derived can be deleted: the notes are the truth"

    def test_a_damaged_state_is_made_again(self, notebook: Notebook) -> None:
        notebook.fill()
        backend = notebook.synced()
        before = self._answers(notebook, backend)
        backend.close()
        for folder, _, files in os.walk(notebook.state_dir):
            for name in files:
                with open(os.path.join(folder, name), "wb") as file:  # noqa: PTH118
                    file.write(b"this is not what you have written\n" * 500)
        again = notebook.open()
        with contextlib.suppress(LamellaError):  # it may say that it cannot answer; anything else would be a crash
            notebook.search(again, "night train")
        notebook.sync(again, force=True)
        assert self._answers(notebook, again) == before, "a forced sync makes everything anew, whatever was there"

    def test_one_file_that_cannot_be_read_hides_no_other(self, notebook: Notebook) -> None:
        notebook.write("memory/good.md", "The okapi eats figs.\n")
        notebook.write("memory/bytes.md", b"the gnu \xff\xfe\x00 eats grass\n")
        (notebook.workspace / "memory" / "folder.md").mkdir()
        backend = notebook.open()
        notebook.sync(backend)
        assert notebook.found(backend, "okapi figs")[:1] == ["memory/good.md"], "the other files must be found"
        hits = notebook.search(backend, "gnu grass").hits
        assert hits and hits[0].path == "memory/bytes.md", "what can be read of a file is found (see decode_text)"

    def _after_many_changes(self, notebook: Notebook) -> MemoryBackend:
        notebook.fill()
        backend = notebook.synced()
        notebook.write("memory/note.md", "The okapi eats figs.\n\nThe zebra does not.\n")
        notebook.sync(backend)
        notebook.write("memory/travel.md", "# Travel\n\nNew.\n\nThe night train leaves from platform nine.\n")
        notebook.remove("memory/garden.md")
        notebook.sync(backend)
        notebook.write("memory/note.md", "An okapi!\n\nThe okapi eats figs.\n\nThe zebra does not.\n")
        notebook.write("memory/garden.md", "The figs are ripe.\n")
        notebook.sync(backend)
        return backend

    def _answers(self, notebook: Notebook, backend: MemoryBackend) -> dict[str, list[tuple[str, float]]]:
        """What each question finds: citations, and scores to three places."""
        answers = {}
        for question in QUESTIONS:
            hits = notebook.search(backend, question, max_results=10).hits
            answers[question] = sorted((h.citation, round(h.score, 3)) for h in hits)
        assert any(answers.values()), "these questions must find something"
        return answers
