import json
import shutil
from pathlib import Path

import pytest

from lamella.errors import MemoryPathError
from lamella.memory.reading import read_memory

DATA = Path(__file__).parents[2] / "data" / "memory"


@pytest.mark.parametrize(
    "call", json.loads((DATA / "K94" / "calls.json").read_text()), ids=lambda c: json.dumps(c)[:60]
)
def test_missing_empty_and_out_of_range_can_be_told_apart(call: dict[str, object]) -> None:
    def read() -> tuple[str, str]:
        found = read_memory(
            DATA / "K94" / "ws",
            str(call["path"]),
            start_line=int(call.get("frm", 1)),  # type: ignore[call-overload]
            lines=call.get("lines"),  # type: ignore[arg-type]
        )
        return found.status, found.text

    expected = str(call["status"])
    if expected == "refused":
        with pytest.raises(MemoryPathError):
            read()
        return
    status, text = read()
    if expected == "not_found":
        assert (status, text) == ("missing", "")
    elif "text" in call:
        wanted = str(call["text"]).removesuffix(" if ok").removesuffix("\n")
        assert (status, text) == ("ok" if wanted else "empty", wanted)
    else:
        assert status in ("ok", "empty")


def test_windows_files_are_read_without_mark_and_carriage_returns(tmp_path: Path) -> None:
    shutil.copytree(DATA / "K20" / "ws", tmp_path / "ws")
    (tmp_path / "ws" / "MEMORY.md").write_bytes("\ufeff# Long-term\r\n\r\n- likes oat milk\r\n- gate 7\r\n".encode())
    assert read_memory(tmp_path / "ws", "MEMORY.md", start_line=3, lines=1).text == "- likes oat milk"
    assert read_memory(tmp_path / "ws", "MEMORY.md", lines=1).text == "# Long-term"


def test_the_range_and_what_follows_are_told() -> None:
    found = read_memory(DATA / "K94" / "ws", "memory/five.md", start_line=2, lines=2)
    assert (found.start_line, found.end_line, found.total_lines, found.truncated) == (2, 3, 5, True)
    assert not read_memory(DATA / "K94" / "ws", "memory/five.md", start_line=4).truncated
