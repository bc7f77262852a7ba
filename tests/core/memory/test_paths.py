import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.errors import LamellaError, MemoryPathError, UsageError
from lamella.memory.paths import is_memory_path, memory_file, memory_name
from lamella.memory.reading import read_memory
from lamella.memory.writer import MemoryWriter
from lamella.types.memory import Provenance

DATA = Path(__file__).parents[2] / "data" / "memory"
WHO = Provenance("test")
SECRETS = ("SIBLING SECRET", "OUTSIDE SECRET", "root:")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(DATA / "K145" / "root", tmp_path / "root")
    work = tmp_path / "root" / "work"
    (work / "memory" / "link.md").symlink_to("../../outside.md")
    (work / "memory" / "linked").symlink_to("../../workspace", target_is_directory=True)
    os.link(tmp_path / "root" / "outside.md", work / "memory" / "hard.md")
    os.mkfifo(work / "memory" / "pipe.md")
    return tmp_path / "root"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()}


EXTRA = [
    {"p": p, "ok": False}
    for p in (
        "memory/link.md",
        "memory/linked/secrets.md",
        "memory/hard.md",
        "memory/pipe.md",
        "memory/x.txt",
        "memory/.md",
        "MEMORY.MD",
        "Memory/a.md",
        "memory/..",
        "memory/a/../../../outside.md",
        "memory/%2E%2E/outside.md",
        "memory/..%2foutside.md",
        "memory/a\n.md",
        "memory/\ud83d.md",
        "~/memory/a.md",
        "C:\\memory\\a.md",
        "memory/" + "d/" * 600 + "a.md",
    )
]


@pytest.mark.parametrize(
    "case", json.loads((DATA / "K145" / "paths.json").read_text()) + EXTRA, ids=lambda c: c["p"][:40]
)
def test_only_memory_files_are_read_and_written(root: Path, case: dict[str, object]) -> None:
    workspace = root / "work"
    path = str(case["p"]).replace("@ROOT@", str(root))
    writer = MemoryWriter(workspace, root / "state", "UTC")
    before = snapshot(root)
    if case["ok"] is True:
        assert read_memory(workspace, path).text
        assert writer.append(path, "more", WHO).path == os.path.normpath(path)
        return
    try:
        text = read_memory(workspace, path).text
    except MemoryPathError as error:
        text = f"{error} {error.hint}"
    assert not any(secret in text for secret in SECRETS)
    with pytest.raises(MemoryPathError):
        writer.append(path, "must not be written", WHO)
    with pytest.raises(MemoryPathError):
        writer.replace(path, "must not be written", None, WHO)
    assert {k: v for k, v in snapshot(root).items() if "/state/" not in k} == before


def test_a_refusal_does_not_tell_whether_the_file_exists(root: Path) -> None:
    answers = set()
    for name in ("../outside.md", "../nothing.md"):
        with pytest.raises(MemoryPathError) as caught:
            read_memory(root / "work", name)
        answers.add(str(caught.value).replace(name, "NAME"))
    assert len(answers) == 1


def test_the_curated_file_is_the_one_that_exists(tmp_path: Path) -> None:
    assert memory_file(tmp_path, "memory.md").name == "MEMORY.md"
    (tmp_path / "memory.md").write_text("lower\n")
    assert memory_file(tmp_path, "MEMORY.md").name == "memory.md"
    (tmp_path / "MEMORY.md").write_text("upper\n")
    assert memory_file(tmp_path, "MEMORY.md").name == "MEMORY.md"
    assert memory_file(tmp_path, "memory.md").name == "memory.md"


@pytest.mark.parametrize("make", [False, True])
def test_a_missing_workspace_is_a_usage_error(tmp_path: Path, make: bool) -> None:
    workspace = tmp_path / "none"
    if make:
        workspace.write_text("a file")
    with pytest.raises(UsageError, match="none"):
        memory_file(workspace, "MEMORY.md")


def test_a_workspace_behind_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real" / "memory").mkdir(parents=True)
    (tmp_path / "real" / "memory" / "a.md").write_text("hello\n")
    (tmp_path / "link").symlink_to("real")
    assert read_memory(tmp_path / "link", "memory/a.md").text == "hello"


def test_writes_of_other_tools_are_recognised(root: Path, tmp_path: Path) -> None:
    work = root / "work"
    (tmp_path / "door").symlink_to(work / "memory")
    for path in ("MEMORY.md", "memory/new.md", "./memory/x/../new.md", "../work/memory/a.md", work / "memory" / "a.md",
                 tmp_path / "door" / "deep" / "a.md", work / "memory.md"):  # fmt: skip
        assert is_memory_path(work, path), path
    for path in ("notes.txt", "AGENTS.md", "memory", "memory/a.txt", "memory/../AGENTS.md", "memory/link.md",
                 root / "workspace" / "MEMORY.md", "/etc/passwd", "a\0b.md", "\ud83d.md"):  # fmt: skip
        assert not is_memory_path(work, path), path
    assert memory_name(work, tmp_path / "door" / "deep" / "a.md") == "memory/deep/a.md"


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=60))
def test_any_name_is_answered(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    workspace = tmp_path_factory.getbasetemp()
    is_memory_path(workspace, name)
    try:
        file = memory_file(workspace, name)
    except LamellaError:
        return
    assert file.path.is_relative_to(workspace)
