"""Call sequences on a session give what the real Pi's session manager gave.

Where lamella differs on purpose: moving to another entry stores a position marker (so entries and
lines are compared without markers), opening writes nothing (an empty file gets its header with the
first message), a file that holds no session is refused, and every session has a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pi_golden import newest, scenarios

from lamella.errors import EntryNotFound
from lamella.sessions.transcript import SessionFile
from lamella.sessions.tree import Node, build_tree
from lamella.types.entries import POSITION_TYPE
from lamella.types.message_json import parse_content, parse_message
from lamella.types.messages import CustomMessage, Message, text_of

CASES = [s for s in scenarios("ops") if "openError" not in newest(s) and s["mode"] != "memory"]


class Player:
    """Plays a recorded sequence; `$n` names the entry that call n made."""

    def __init__(self, folder: Path, case: dict[str, Any]) -> None:
        self.folder = folder
        self.count = 0
        self.names: dict[str, str] = {}
        if case["mode"] == "open":
            path = folder / "s.jsonl"
            if case["initialFile"] is not None:
                path.write_bytes(case["initialFile"].encode())
                self.file = SessionFile.open(path)
                return
            self.file = SessionFile.create(path)
        else:
            self.file = SessionFile.create(self.fresh(), cwd="/work/demo")

    def fresh(self) -> Path:
        self.count += 1
        return self.folder / f"{self.count}.jsonl"

    def id(self, name: Any) -> Any:
        return self.names.get(name, name) if isinstance(name, str) else name

    def play(self, op: list[Any], result: Any) -> Any:
        name, arguments = op[0], op[1:]
        entry = None
        match name:
            case "appendMessage":
                entry = self.file.append_message(parse_message({**arguments[0], "timestamp": 1}))
            case "appendModelChange":
                entry = self.file.append_model_change(*arguments)
            case "appendThinkingLevelChange":
                entry = self.file.append_thinking_level(*arguments)
            case "appendCustomEntry":
                entry = self.file.append_custom(*arguments)
            case "appendCustomMessageEntry":
                details = arguments[3] if len(arguments) > 3 else None
                message = CustomMessage(arguments[0], parse_content(arguments[1]), arguments[2], details)
                entry = self.file.append_custom_message(message)
            case "appendSessionInfo":
                entry = self.file.set_name(arguments[0])
            case "appendLabelChange":
                entry = self.file.set_label(self.id(arguments[0]), arguments[1])
            case "appendCompaction":
                details = arguments[3] if len(arguments) > 3 else None
                entry = self.file.append_compaction(arguments[0], self.id(arguments[1]), arguments[2], details=details)
            case "branch":
                self.file.branch(self.id(arguments[0]))
            case "resetLeaf":
                self.file.branch(None)
            case "branchWithSummary":
                details = arguments[2] if len(arguments) > 2 else None
                entry = self.file.branch_with_summary(self.id(arguments[0]), arguments[1], details=details)
            case "createBranchedSession":
                self.file = self.file.fork(self.fresh(), entry_id=self.id(arguments[0]))
            case "forkFrom":
                self.file = self.file.fork(self.fresh(), cwd=arguments[0])
            case "reopen":
                self.file = SessionFile.open(self.file.path)
            case "context":
                return self.context()
            case "tree":
                return [self.shape(n) for n in build_tree(self.file.lines())]
            case "getLabel":
                return self.file.labels.get(self.id(arguments[0]))
            case "getSessionName":
                return self.file.name
            case _:
                return result  # files, lists and single entries are compared by other tests
        if entry is not None and isinstance(result, str):
            self.names[result] = entry.id
        return result

    def context(self) -> dict[str, Any]:
        context = self.file.context()
        state = context.state
        model = {"provider": state.provider, "modelId": state.model_id} if state.provider is not None else None
        said = [f"{m.role}:{_text(m)}" for m in context.messages]
        return {"model": model, "thinkingLevel": state.thinking_level, "messages": said}

    def shape(self, node: Node) -> list[Any]:
        names = {v: k for k, v in self.names.items()}
        return [names.get(node.entry.id, node.entry.id), node.label, [self.shape(c) for c in node.children]]

    def entries(self) -> int:
        return sum(not marker(e.fields) for e in self.file.lines().entries())

    def file_lines(self) -> int | None:
        if not self.file.path.exists():
            return None
        rows = [line for line in self.file.path.read_bytes().split(b"\n") if line.strip()]
        return sum(POSITION_TYPE.encode() not in row for row in rows)


def _text(message: Message) -> str:
    return str(getattr(message, "summary", None) or text_of(getattr(message, "content", "")))


def marker(fields: Any) -> bool:
    return fields.get("customType") == POSITION_TYPE


def unmarked(shape: list[Any], markers: set[str]) -> list[list[Any]]:
    """A tree without position markers: their children hang from their parent."""
    children = [c for child in shape[2] for c in unmarked(child, markers)]
    return children if shape[0] in markers else [[shape[0], shape[1], children]]


@pytest.mark.parametrize("case", [pytest.param(c, id=c["name"]) for c in CASES])
def test_calls(case: dict[str, Any], tmp_path: Path) -> None:
    player = Player(tmp_path, case)
    compacted = False
    for step in newest(case)["steps"]:
        expected = step["result"]
        if isinstance(expected, dict) and "error" in expected:
            with pytest.raises(EntryNotFound, match="not found"):
                player.play(step["op"], None)
            continue
        got = player.play(step["op"], expected)
        if step["op"][0] == "tree":
            markers = {e.id for e in player.file.lines().entries() if marker(e.fields)}
            got = [n for shape in got for n in unmarked(shape, markers)]
        assert got == expected, step["op"][:2]
        compacted = compacted or step["op"][0] == "appendCompaction"
        if not compacted:  # behind a compaction lamella repeats model and level
            assert player.entries() == step["entries"], step["op"][:2]
            if player.file.on_disk and step["op"][0] not in ("createBranchedSession", "forkFrom"):
                assert player.file_lines() == step["fileLines"], step["op"][:2]
