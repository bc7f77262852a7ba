"""The contract about files: which are memory, and that they are only read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamella.testing.contract.base import ContractBase
from lamella.testing.contract.notebook import Notebook
from lamella.testing.transcripts import TranscriptBuilder

SECRET = "the okapi code is 7788"


def _link(link: Path, target: Path) -> None:
    """A symbolic link; the test is skipped where the system makes none."""
    link.parent.mkdir(parents=True, exist_ok=True)
    try:
        link.symlink_to(target)
    except OSError as error:
        pytest.skip(f"no symbolic links here: {error}")


class FilesContract(ContractBase):
    """Which files are searched. `scan_memory` of `lamella.memory.scan` lists exactly these."""

    def test_memory_md_and_the_folder_memory_are_searched(self, notebook: Notebook) -> None:
        names = [
            "MEMORY.md",
            "memory/2026-05-10.md",
            "memory/deep/er/note.md",
            "memory/日记/五月.md",
            "memory/with blank.md",
        ]
        for name in names:
            notebook.write(name, "the okapi was here\n")
        found = notebook.found(notebook.synced(), "okapi", max_results=20)
        assert sorted(found) == sorted(names), f"all of these are memory: {names}; found were {found}"

    def test_other_files_are_not_searched(self, notebook: Notebook) -> None:
        for name in ("notes.md", "README.md", "memory/okapi.txt", "memory/okapi.md.bak", "other/okapi.md"):
            notebook.write(name, SECRET)
        found = notebook.found(notebook.synced(), "okapi code", max_results=20)
        assert found == [], f"only MEMORY.md and the .md files in memory/ are memory; found were {found}"

    def test_a_link_to_a_file_is_not_followed(self, notebook: Notebook) -> None:
        _link(notebook.workspace / "memory" / "link.md", notebook.write_outside("secret.md", SECRET))
        _link(notebook.workspace / "MEMORY.md", notebook.outside / "secret.md")
        self._finds_nothing(notebook)

    def test_a_link_to_a_folder_is_not_followed(self, notebook: Notebook) -> None:
        notebook.write_outside("secret.md", SECRET)
        _link(notebook.workspace / "memory" / "folder", notebook.outside)
        self._finds_nothing(notebook)

    def test_a_folder_memory_that_is_a_link_is_not_followed(self, notebook: Notebook) -> None:
        notebook.write_outside("secret.md", SECRET)
        _link(notebook.workspace / "memory", notebook.outside)
        self._finds_nothing(notebook)

    def test_a_file_with_two_names_is_not_searched(self, notebook: Notebook) -> None:
        secret = notebook.write_outside("secret.md", SECRET)
        target = notebook.workspace / "memory" / "hard.md"
        target.parent.mkdir()
        try:
            os.link(secret, target)
        except OSError as error:
            pytest.skip(f"no hard links here: {error}")
        self._finds_nothing(notebook)

    def test_a_note_that_became_a_link_is_forgotten(self, notebook: Notebook) -> None:
        notebook.write("memory/note.md", "harmless\n")
        backend = notebook.synced()
        notebook.remove("memory/note.md")
        _link(notebook.workspace / "memory" / "note.md", notebook.write_outside("secret.md", SECRET))
        notebook.sync(backend)
        found = notebook.search(backend, "okapi code harmless").hits
        assert found == (), f"a link is no note, whatever was there before; found {[h.citation for h in found]}"

    def test_the_curated_file_has_one_spelling(self, notebook: Notebook) -> None:
        notebook.write("memory.md", "the okapi was here\n")
        backend = notebook.synced()
        assert notebook.found(backend, "okapi") == ["memory.md"], "memory.md counts where there is no MEMORY.md"
        notebook.write("MEMORY.md", "the gnu was here\n")
        if len(list(notebook.workspace.glob("*.md"))) == 1:
            pytest.skip("this disk ignores the case of names")
        notebook.sync(backend)
        assert notebook.found(backend, "okapi gnu") == ["MEMORY.md"], "MEMORY.md stands for memory.md where both exist"

    def test_extra_paths_are_searched(self, notebook: Notebook) -> None:
        notebook.write("memory/inside.md", "the okapi was here\n")
        notebook.write_outside("team/outside.md", "the okapi was there\n")
        single = notebook.write_outside("single.md", "the okapi came back\n")
        extra = (str(notebook.outside / "team"), str(single))
        backend = notebook.synced(extra_paths=extra)
        hits = notebook.search(backend, "okapi", max_results=20).hits
        for hit in hits:
            notebook.check_place(hit, extra)
        assert len({h.path for h in hits}) == 3, f"extra_paths are memory too; found {[h.citation for h in hits]}"
        notebook.sync(without := notebook.open())
        found = notebook.found(without, "okapi", max_results=20)
        assert found == ["memory/inside.md"], f"paths that are no longer configured are forgotten; found {found}"

    def test_transcripts_are_searched_where_there_are_any(self, notebook: Notebook) -> None:
        if not self.reads_transcripts:
            pytest.skip("this backend does not search transcripts")
        built = TranscriptBuilder(notebook.outside, notebook.workspace)
        built.user("Where did we see the okapi?").assistant("The okapi was seen at the zoo in Basel.")
        notebook.write("memory/note.md", "the okapi was here\n")
        backend = notebook.synced(transcripts=built.path.parent)
        sources = {h.source for h in notebook.search(backend, "okapi", max_results=20).hits}
        assert sources == {"memory", "sessions"}, f"notes are memory, transcripts are sessions; found were {sources}"
        only = notebook.search(backend, "okapi zoo", sources=("sessions",)).hits
        assert only, "what was said is found when only sessions are asked for"
        assert notebook.found(backend, "okapi", sources=("memory",)) == ["memory/note.md"]
        built.close()

    def test_the_workspace_is_only_read(self, notebook: Notebook) -> None:
        notebook.fill()
        before = notebook.snapshot()
        backend = notebook.synced()
        notebook.search(backend, "night train")
        notebook.sync(backend, force=True)
        backend.close()
        assert notebook.snapshot() == before, "notes are the truth: a backend writes to its state_dir only"

    def _finds_nothing(self, notebook: Notebook) -> None:
        backend = notebook.open()
        notebook.sync(backend)
        hits = notebook.search(backend, "okapi code 7788", max_results=20).hits
        assert hits == (), f"this file lies outside of the workspace; found {[(h.citation, h.snippet) for h in hits]}"
