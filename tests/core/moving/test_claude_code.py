"""`lamella import claude-code`: what its lines become, and that a longer file gives a longer transcript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inside import lamella
from other_programs import Claude, claude, snapshot, text, tool_use, write

from lamella.moving.claude_lines import Conversion
from lamella.sessions.reader import parse_transcript
from lamella.sessions.transcript import SessionFile
from lamella.sessions.tree import find_leaf, path_to
from lamella.types.messages import AssistantMessage, CompactionSummaryMessage, Message, ToolResultMessage, text_of

ID = "11111111-1111-4111-8111-111111111111"
KEY = f"agent:main:claude-code-{ID}"


def converted(lines: list[dict[str, Any]] | list[bytes]) -> Conversion:
    conversion = Conversion(ID)
    for line in lines:
        conversion.add(line if isinstance(line, bytes) else json.dumps(line).encode())
    return conversion


def context(tmp_path: Path, c: Claude) -> list[Message]:
    """What a model would see of the converted lines."""
    file = tmp_path / "converted.jsonl"
    file.write_bytes(converted(c.lines).data())
    return list(SessionFile.open(file).context().messages)


def roles(messages: list[Message]) -> list[str]:
    return [m.role for m in messages]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_a_session_arrives_and_goes_on(home: Path, tmp_path: Path) -> None:
    folder = claude(tmp_path)
    before = snapshot(folder)
    lamella("import", "claude-code", folder, home=home, check=True)
    assert snapshot(folder) == before
    shown = lamella("sessions", "show", KEY, "--json", home=home, check=True).json
    assert shown["name"] == "Listing files"
    said = ["user", "assistant", "assistant", "assistant", "toolResult", "toolResult", "assistant"]
    assert [m["role"] for m in shown["messages"]] == said
    lamella("ask", "And now?", "--key", KEY, "--model", "offline", home=home, check=True)
    again = lamella("import", "claude-code", folder, "--json", home=home, check=True).json
    assert again["changes"] == 0
    assert {i["kind"] for i in again["items"] if i["action"] == "kept"} == {"transcript", "session"}


def test_blocks_usage_and_names_of_tools(tmp_path: Path) -> None:
    file = claude(tmp_path) / "projects" / "-home-me-project" / f"{ID}.jsonl"
    c = Claude()
    c.lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    messages = context(tmp_path, c)
    (thinking, first, second) = (m for m in messages[1:4] if isinstance(m, AssistantMessage))
    assert thinking.content[0].signature == "sig"  # type: ignore[union-attr]
    assert [call.name for m in (first, second) for call in m.tool_calls] == ["Bash", "Read"]
    assert (first.stop_reason, first.provider, first.model) == ("toolUse", "anthropic", "claude-opus-5")
    assert first.usage is not None
    assert (first.usage.prompt_tokens, first.usage.output) == (48, 7)
    results = [m for m in messages if isinstance(m, ToolResultMessage)]
    assert [(m.tool_name, text_of(m.content)) for m in results] == [("Bash", "a.txt"), ("Read", "content")]


def test_a_prompt_sent_again_from_an_earlier_place_is_a_branch(tmp_path: Path) -> None:
    c = Claude()
    asked = c.user("one", None)
    answered = c.assistant(asked, text("first answer"))
    c.assistant(c.user("left behind", answered), text("never mind"))
    c.assistant(c.user("two", answered), text("second answer"))
    said = [text_of(m.content) for m in context(tmp_path, c)]  # type: ignore[union-attr]
    assert said == ["one", "first answer", "two", "second answer"]


def test_a_compaction_stays_one(tmp_path: Path) -> None:
    c = Claude()
    answered = c.assistant(c.user("old", None), text("old answer"))
    boundary = c.add(
        "system", None, subtype="compact_boundary", logicalParentUuid=answered, compactMetadata={"preTokens": 150_000}
    )
    summary = c.user("What was said before: old.", boundary, isCompactSummary=True)
    c.assistant(c.user("new", summary), text("new answer"))
    messages = context(tmp_path, c)
    assert roles(messages) == ["compactionSummary", "user", "assistant"]
    assert messages[0] == CompactionSummaryMessage("What was said before: old.", 150_000, messages[0].timestamp)


def test_what_is_no_conversation_is_left_out_and_counted(tmp_path: Path) -> None:
    c = Claude()
    asked = c.user("hello", None)
    c.user("of a helper", asked, isSidechain=True)
    hook = c.add("system", asked, subtype="informational", content="a hook ran")
    c.user("<local-command-caveat>", hook, isMeta=True)
    c.assistant(hook, text("hi"))
    failed = c.assistant(hook, text("API Error: overloaded"), isApiErrorMessage=True)
    c.lines.append({**c.lines[0]})
    conversion = converted([*(json.dumps(x).encode() for x in c.lines), b"[1]", b'{"torn', b"\xff\xfe", b""])
    assert conversion.left_out == {"of a sub-agent": 1, "of type system": 1, "there twice": 1, "not a JSON object": 3}
    assert [e.get("customType") for e in conversion.entries if e["type"] == "custom_message"] == ["claude-code.meta"]
    (last,) = (e for e in conversion.entries if e["id"] == failed)
    assert (last["message"]["stopReason"], last["message"]["errorMessage"]) == ("error", "API Error: overloaded")


def test_files_that_are_none_and_notes(home: Path, tmp_path: Path) -> None:
    folder = claude(tmp_path)
    project = folder / "projects" / "-home-me-project"
    write(folder / "CLAUDE.md", "# Rules\n")
    write(project / "agent-1.jsonl", "{}\n")
    write(project / "bad name!.jsonl", "{}\n")
    write(project / "empty.jsonl", "\n")
    (project / "link.jsonl").symlink_to(project / f"{ID}.jsonl")
    report = lamella("import", "claude-code", folder, "--json", home=home, check=True).json
    reasons = {Path(i["source"]).name: i["reason"] for i in report["items"] if i["action"] == "left_out"}
    assert reasons == {
        "CLAUDE.md": "copy what should hold here into AGENTS.md",
        "agent-1.jsonl": "the work of a sub-agent",
        "bad name!.jsonl": "its name can be no session id here",
        "empty.jsonl": "nothing was said in it",
        "link.jsonl": "is a symbolic link",
        f"{ID}.jsonl": "1 lines of type file-history-snapshot",
    }


def test_a_file_that_has_grown_goes_on(home: Path, tmp_path: Path) -> None:
    folder = claude(tmp_path)
    file = folder / "projects" / "-home-me-project" / f"{ID}.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:4]) + lines[4][:30])  # as if read while a line was being written
    lamella("import", "claude-code", folder, home=home, check=True)
    file.write_bytes(b"".join(lines))
    report = lamella("import", "claude-code", folder, "--json", home=home, check=True).json
    assert {i["action"] for i in report["items"] if i["kind"] in ("transcript", "session")} == {"grow"}
    shown = lamella("sessions", "show", KEY, "--json", home=home, check=True).json
    assert len(shown["messages"]) == 7


# --- invariants -----------------------------------------------------------------------------------------------

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4), below, max_size=3),
    max_leaves=6,
)
_uuids = st.sampled_from(["a", "b", "c", "d", "e"])
_blocks = st.lists(
    st.one_of(
        st.builds(text, st.text(max_size=5)),
        st.builds(tool_use, st.sampled_from(["t1", "t2"])),
        st.builds(lambda i, c: {"type": "tool_result", "tool_use_id": i, "content": c}, st.sampled_from(["t1"]), _json),
        st.fixed_dictionaries({"type": st.sampled_from(["thinking", "image", "x"])}),
        _json,
    ),
    max_size=3,
)
_lines = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "summary", "system", "x"])},
    optional={
        "uuid": _uuids | _json,
        "parentUuid": _uuids | st.none() | _json,
        "timestamp": st.just("2026-05-10T08:00:00.000Z") | _json,
        "summary": _json,
        "isSidechain": st.booleans(),
        "isMeta": st.booleans(),
        "isCompactSummary": st.booleans(),
        "message": st.fixed_dictionaries({"content": _blocks | st.text(max_size=5)}, optional={"usage": _json}) | _json,
    },
)


@given(st.lists(_lines, max_size=12), st.integers(0, 12))
def test_a_longer_file_gives_a_longer_transcript(lines: list[dict[str, Any]], cut: int) -> None:
    assert converted(lines).data().startswith(converted(lines[:cut]).data())


@given(st.lists(_lines, max_size=12))
def test_every_conversion_is_a_whole_transcript(lines: list[dict[str, Any]]) -> None:
    data = converted(lines).data()
    if not data:
        return
    found = parse_transcript(Path(f"{ID}.jsonl"), data)
    assert not found.damage
    branch = path_to(found.lines.heads, found.lines.index(), find_leaf(found.lines))
    assert (branch.broken_by, branch.cycle_at) == (None, None)
    assert len(found.lines.index()) == len(found.lines)
