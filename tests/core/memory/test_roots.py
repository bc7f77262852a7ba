"""Extra paths: which files they add, under which names, and that nothing outside of them is reached."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lamella.errors import MemoryPathError
from lamella.memory.reading import read_memory
from lamella.memory.roots import extra_roots
from lamella.memory.scan import scan_memory
from lamella.memory.writer import MemoryWriter
from lamella.types.memory import Provenance


def write(path: Path, text: str = "words\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    write(tmp_path / "ws" / "MEMORY.md")
    write(tmp_path / "ws" / "memory" / "a.md")
    write(tmp_path / "ws" / "notes" / "plan.md", "plan\n")
    write(tmp_path / "ws" / "notes" / "deep" / "er.md")
    write(tmp_path / "ws" / "README.md")
    write(tmp_path / "extra" / "team.md", "team\n")
    write(tmp_path / "extra" / "sub" / "guide.md", "guide\n")
    write(tmp_path / "extra" / "data.txt")
    write(tmp_path / "extras" / "secret.md", "SECRET\n")
    return tmp_path / "ws"


def names(ws: Path, *extra: str) -> list[str]:
    return [f.name for f in scan_memory(ws, extra).files]


def test_a_folder_above_the_workspace_gives_its_files_their_usual_names(ws: Path) -> None:
    """`memory.md` is what no chat sees beside `MEMORY.md`, whichever way a scan comes to it."""
    write(ws / "memory.md", "old\n")
    above = names(ws, "..")
    assert set(above) == {
        "MEMORY.md",
        "memory/a.md",
        "README.md",
        "notes/plan.md",
        "notes/deep/er.md",
        "../extra/team.md",
        "../extra/sub/guide.md",
        "../extras/secret.md",
    }
    assert len(above) == len(set(above))


def skipped(ws: Path, *extra: str) -> dict[str, str]:
    return {p.path: p.reason for p in scan_memory(ws, extra).skipped}


@pytest.mark.parametrize("absolute", [False, True])
def test_folders_and_files_are_taken_under_their_paths_from_the_workspace(ws: Path, absolute: bool) -> None:
    extra = ["../extra", "notes/plan.md"]
    if absolute:
        extra = [str(ws.parent / "extra"), str(ws / "notes" / "plan.md")]
    assert names(ws, *extra) == [
        "../extra/sub/guide.md",
        "../extra/team.md",
        "MEMORY.md",
        "memory/a.md",
        "notes/plan.md",
    ]


def test_home_is_understood(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(ws.parent))
    monkeypatch.setenv("USERPROFILE", str(ws.parent))
    assert "../extra/team.md" in names(ws, "~/extra")


def test_what_overlaps_is_taken_once(ws: Path) -> None:
    assert names(ws, "notes", "notes/deep", "notes/plan.md", "notes", " notes ", "", "memory", "MEMORY.md") == [
        "MEMORY.md",
        "memory/a.md",
        "notes/deep/er.md",
        "notes/plan.md",
    ]
    whole = scan_memory(ws, [".", "notes"])
    expected = ["MEMORY.md", "README.md", "memory/a.md", "notes/deep/er.md", "notes/plan.md"]
    assert [f.name for f in whole.files] == expected
    assert (whole.failed, whole.skipped) == ((), ())


def test_a_covered_workspace_adds_no_second_curated_file(ws: Path) -> None:
    write(ws / "memory.md", "lower\n")
    assert "memory.md" not in names(ws, ".")


def test_what_is_missing_or_no_markdown_is_said(ws: Path) -> None:
    assert skipped(ws, "../nowhere", "../extra/data.txt") == {
        "../nowhere": "does not exist",
        "../extra/data.txt": "neither a folder nor a Markdown file (.md)",
    }


def test_links_are_said_and_not_followed(ws: Path) -> None:
    (ws / "vault").symlink_to("../extra", target_is_directory=True)
    (ws.parent / "extra" / "out.md").symlink_to("../extras/secret.md")
    (ws.parent / "extra" / "door").symlink_to("../extras", target_is_directory=True)
    os.link(ws.parent / "extras" / "secret.md", ws.parent / "extra" / "hard.md")
    assert names(ws, "vault", "../extra") == ["../extra/sub/guide.md", "../extra/team.md", "MEMORY.md", "memory/a.md"]
    assert set(skipped(ws, "vault", "../extra")) == {
        "vault",
        "../extra/out.md",
        "../extra/door",
        "../extra/hard.md",
    }
    for name in ("vault/team.md", "../extra/out.md", "../extra/door/secret.md", "../extra/hard.md"):
        with pytest.raises(MemoryPathError):
            read_memory(ws, name, extra_paths=["vault", "../extra"])


def test_folders_of_tools_are_left_out_of_extra_paths_only(ws: Path) -> None:
    write(ws / "notes" / "node_modules" / "x.md")
    write(ws / "notes" / ".git" / "x.md")
    write(ws / "memory" / "node_modules" / "x.md")
    assert [n for n in names(ws, "notes") if n.endswith("x.md")] == ["memory/node_modules/x.md"]


def test_extra_files_are_read_under_both_names(ws: Path) -> None:
    extra = ["../extra", "README.md"]
    for name in ("../extra/team.md", "../extra/sub/../team.md", str(ws.parent / "extra" / "team.md")):
        found = read_memory(ws, name, extra_paths=extra)
        assert (found.status, found.path, found.text) == ("ok", "../extra/team.md", "team")
    assert read_memory(ws, "README.md", extra_paths=extra).status == "ok"
    assert read_memory(ws, "../extra/none.md", extra_paths=extra).status == "missing"


def test_memory_files_may_be_named_with_the_whole_path(ws: Path) -> None:
    (ws.parent / "door").symlink_to(ws, target_is_directory=True)
    for root, path in ((ws, ws / "MEMORY.md"), (ws.parent / "door", ws.parent / "door" / "memory" / "a.md")):
        assert read_memory(root, str(path)).status == "ok"


@pytest.mark.parametrize(
    "name",
    [
        "../extras/secret.md",
        "../extra/../extras/secret.md",
        "../extra/data.txt",
        "../extra",
        "../extra/sub",
        "../extra/.md",
        "../extra/%2e%2e/extras/secret.md",
        "../extra\\..\\extras\\secret.md",
        "../extra/a\n.md",
        "../extra/\ud800.md",
        "~/extra/team.md",
        "/etc/passwd",
        "../extra/" + "m" * 2000 + ".md",
        "notes/plan.md",
        "",
        ".",
        "..",
        "/",
    ],
)
def test_nothing_beside_an_extra_path_is_read(ws: Path, name: str) -> None:
    with pytest.raises(MemoryPathError):
        read_memory(ws, name, extra_paths=["../extra"])


def test_a_file_in_the_place_of_a_folder_gives_nothing(ws: Path) -> None:
    with pytest.raises(MemoryPathError):
        read_memory(ws, "README.md/x.md", extra_paths=["README.md"])
    shutil.rmtree(ws.parent / "extra")
    write(ws.parent / "extra")
    with pytest.raises(MemoryPathError):
        read_memory(ws, "../extra/team.md", extra_paths=["../extra"])


def test_extra_files_are_not_written(ws: Path) -> None:
    writer = MemoryWriter(ws, ws.parent / "state", "UTC")
    with pytest.raises(MemoryPathError):
        writer.append("../extra/team.md", "more", Provenance("test"))


def test_roots_keep_their_order(ws: Path) -> None:
    roots = extra_roots(ws, ["notes", "../extra", "./notes/"])
    assert [r.name for r in roots] == ["notes", "../extra"]
