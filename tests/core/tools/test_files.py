from __future__ import annotations

import base64
import os

import pytest
from tool_calls import call, context_in, shown

from lamella.errors import ToolError
from lamella.memory.journal import read_journal
from lamella.memory.writer import MemoryWriter
from lamella.tools.builtin import builtin_tools

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


@pytest.fixture
def workspace(tmp_path):
    root = tmp_path / "workspace"
    root.mkdir()
    return root


@pytest.fixture
def tools(workspace):
    return builtin_tools(workspace, exec_enabled=False)


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/hostname", "~/x", "inside/../../secret.txt", "@../secret.txt"])
@pytest.mark.parametrize("tool", ["read", "ls", "grep", "write"])
async def test_nothing_outside_the_workspace_is_reached(workspace, tools, tool, name):
    (workspace.parent / "secret.txt").write_text("secret")
    (workspace / "inside").mkdir()
    extra = {"grep": {"pattern": "secret"}, "write": {"content": "x"}}.get(tool, {})
    with pytest.raises(ToolError, match="outside the workspace"):
        await call(tools, tool, context_in(workspace), path=name, **extra)
    assert (workspace.parent / "secret.txt").read_text() == "secret"


async def test_links_that_lead_outside_are_refused(workspace, tools):
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (workspace / "link").symlink_to(outside)
    (workspace / "file-link.txt").symlink_to(outside / "secret.txt")
    context = context_in(workspace)
    with pytest.raises(ToolError, match="leads through a link outside the workspace"):
        await call(tools, "read", context, path="link/secret.txt")
    with pytest.raises(ToolError, match="outside the workspace"):
        await call(tools, "write", context, path="link/new.txt", content="x")
    with pytest.raises(ToolError, match="outside the workspace"):
        await call(tools, "edit", context, path="file-link.txt", oldText="secret", newText="x")
    assert shown(await call(tools, "grep", context, pattern="secret")) == "No matches found"
    assert sorted(p.name for p in outside.iterdir()) == ["secret.txt"]


async def test_links_inside_and_a_linked_workspace_work(workspace):
    (workspace / "real.txt").write_text("content")
    (workspace / "link.txt").symlink_to("real.txt")
    through = workspace.parent / "through"
    through.symlink_to(workspace)
    tools = builtin_tools(through, exec_enabled=False)
    assert shown(await call(tools, "read", context_in(through), path="link.txt")) == "content"
    assert shown(await call(tools, "read", context_in(through), path=str(workspace / "real.txt"))) == "content"


async def test_odd_names_are_understood(workspace, tools):
    (workspace / "my notes.txt").write_text("plain blank")
    (workspace / "@home.txt").write_text("at")
    context = context_in(workspace)
    assert shown(await call(tools, "read", context, path="my\u00a0notes.txt")) == "plain blank"
    assert shown(await call(tools, "read", context, path="@my\u202fnotes.txt")) == "plain blank"
    assert shown(await call(tools, "read", context, path="@home.txt")) == "at"
    with pytest.raises(ToolError, match="NUL"):
        await call(tools, "read", context, path="a\0b")


async def test_read_explains_what_it_cannot_show(workspace, tools):
    (workspace / "data.bin").write_bytes(b"\0\1\2")
    os.mkfifo(workspace / "pipe")
    context = context_in(workspace)
    with pytest.raises(ToolError, match=r"data.bin is a binary file \(3B\)"):
        await call(tools, "read", context, path="data.bin")
    with pytest.raises(ToolError, match="pipe is not a regular file"):
        await call(tools, "read", context, path="pipe")
    with pytest.raises(ToolError, match="is a directory; use ls"):
        await call(tools, "read", context, path=".")


async def test_read_goes_on_where_a_note_says(workspace, tools):
    lines = [f"line {n}\n" for n in range(1, 4301)]
    (workspace / "long.txt").write_text("".join(lines))
    context, seen, offset = context_in(workspace), "", 1
    for _ in range(3):
        text = shown(await call(tools, "read", context, path="long.txt", offset=offset))
        body, _, note = text.partition("\n\n[")
        seen += body if body.endswith("\n") else body + "\n"
        if not note:
            break
        offset = int(note.split("offset=")[1].split()[0])
    assert seen == "".join(lines)


@pytest.mark.parametrize(
    ("start", "mime_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF1234WEBP", "image/webp"),
    ],
)
async def test_images_are_shown_by_their_content(workspace, tools, start, mime_type):
    (workspace / "picture.dat").write_bytes(start)
    note, image = (await call(tools, "read", context_in(workspace), path="picture.dat")).blocks
    assert image.mime_type == mime_type
    assert base64.b64decode(image.data) == start
    assert mime_type in note.text


async def test_images_too_large_for_providers_are_an_error(workspace, tools):
    (workspace / "big.png").write_bytes(PNG + b"\0" * 4_000_000)
    with pytest.raises(ToolError, match=r"big\.png is too large to show: 5.1MB when encoded, at most 4.5MB"):
        await call(tools, "read", context_in(workspace), path="big.png")


async def test_write_replaces_whole_files_and_keeps_their_rights(workspace, tools):
    script = workspace / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    result = await call(tools, "write", context_in(workspace), path="run.sh", content="héllo\n")
    assert shown(result) == "Wrote 7 bytes to run.sh."
    assert script.read_bytes() == "héllo\n".encode()
    assert script.stat().st_mode & 0o777 == 0o750
    assert [p.name for p in workspace.iterdir()] == ["run.sh"]


async def test_write_refuses_what_it_cannot_store(workspace, tools):
    context = context_in(workspace)
    with pytest.raises(ToolError, match="is a directory"):
        await call(tools, "write", context, path=".", content="x")
    with pytest.raises(ToolError, match="lone surrogate"):
        await call(tools, "write", context, path="a.txt", content="\ud83c")
    (workspace / "file").write_text("x")
    with pytest.raises(ToolError, match=r"Cannot (write|replace) file/below\.txt"):
        await call(tools, "write", context, path="file/below.txt", content="x")
    assert [p.name for p in workspace.iterdir()] == ["file"]


# --- memory files ------------------------------------------------------------------------------------


@pytest.fixture
def writer(workspace, tmp_path):
    return MemoryWriter(workspace, tmp_path / "state")


@pytest.fixture
def tools_with_memory(workspace, writer):
    return builtin_tools(workspace, exec_enabled=False, memory_writer=writer)


def journalled(writer):
    return [
        (entry.path, entry.provenance.actor, entry.provenance.session_key)
        for entry in read_journal(writer.state_dir).entries
    ]


@pytest.mark.parametrize("path", ["MEMORY.md", "memory/2026-03-01.md", "memory/people/anna.md", "@memory/x.md"])
async def test_memory_files_change_only_through_the_writer(workspace, writer, tools_with_memory, path):
    context = context_in(workspace)
    await call(tools_with_memory, "write", context, path=path, content="likes tea\n")
    await call(tools_with_memory, "edit", context, path=path, oldText="tea", newText="coffee")
    name = path.removeprefix("@")
    assert journalled(writer) == [(name, "write", "agent:main:main"), (name, "edit", "agent:main:main")]
    assert (workspace / name).read_text() == "likes coffee\n"


async def test_a_link_to_a_memory_file_leads_to_the_writer(workspace, writer, tools_with_memory):
    (workspace / "MEMORY.md").write_text("old\n")
    (workspace / "innocent.txt").symlink_to("MEMORY.md")
    await call(tools_with_memory, "write", context_in(workspace), path="innocent.txt", content="new\n")
    assert journalled(writer) == [("MEMORY.md", "write", "agent:main:main")]


async def test_ordinary_files_do_not_go_through_the_memory_writer(workspace, writer, tools_with_memory):
    await call(tools_with_memory, "write", context_in(workspace), path="memory/notes.txt", content="x")
    assert journalled(writer) == []
    assert (workspace / "memory" / "notes.txt").read_text() == "x"


async def test_a_refusal_of_the_writer_reaches_the_model(workspace, tmp_path):
    class Late(MemoryWriter):
        """Someone else writes between reading and replacing."""

        def replace(self, path, text, expected_hash, provenance):
            (self.workspace / path).write_text("someone else's\n")
            return super().replace(path, text, expected_hash, provenance)

    tools = builtin_tools(workspace, exec_enabled=False, memory_writer=Late(workspace, tmp_path / "state"))
    with pytest.raises(ToolError, match=r"MEMORY\.md was not changed: .*changed since it was read"):
        await call(tools, "write", context_in(workspace), path="MEMORY.md", content="x")
    assert (workspace / "MEMORY.md").read_text() == "someone else's\n"


@pytest.mark.parametrize("path", ["MEMORY.md", "memory.md", "memory/today.md", "memory/deep/today.md"])
async def test_without_a_writer_memory_files_can_only_be_read(workspace, tools, path):
    with pytest.raises(ToolError, match="is a memory file and no memory writer is at hand"):
        await call(tools, "write", context_in(workspace), path=path, content="x")
    assert not (workspace / path).exists()
