"""The tools beside what Pi's do in the same folder.

Differences on purpose:

- Wordings of confirmations and errors are lamella's; what an error is about must be the same.
- A final line feed does not count as a line: a file of 900 lines has 900, where Pi's note says 901.
- Hints name the tool `exec`, and `grep` where there is no shell.
- Details do not repeat the text of the result; `exec` tells the exit code there.
- Paths in messages are relative to the workspace.
- An exit code other than 0 makes an error result, as in Pi 0.58; Pi 1.6 no longer marks it.
- Output of a failed command ends in one blank line before the note, however it ended.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from pi_units import newest, text_of_case
from tool_calls import call, context_in, shown

from lamella.errors import ToolError
from lamella.tools.builtin import builtin_tools

CASES = json.loads((Path(__file__).parents[2] / "data" / "tools" / "cases.json").read_text(encoding="utf-8"))
SUCCESS_WORDS = {"write": "Wrote", "edit": "Replaced 1 block"}
ERROR_WORDS = {
    "read missing": "File not found: none.txt",
    "edit not found": "Could not find the text in c.py",
    "edit twice present": "Found 2 occurrences of the text in c.py",
    "edit same text": "No changes made to c.py",
    "edit missing file": "File not found: nope",
    "ls missing": "Path not found: nope",
    "ls on file": "Not a directory: f",
}
OWN_TEXTS = {
    "one 60000-byte line": "[Line 1 is 58.6KB, exceeds 50.0KB limit. Use exec: sed -n '1p' w.txt | head -c 51200]",
    "bash exit": "out\n\nCommand exited with code 3",
    "bash timeout": "start\n\nCommand timed out after 1 seconds",
}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["note"])
async def test_tool_equals_pi(case, tmp_path):
    for name, content in case["files"].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text_of_case(content).encode())
    expected = newest(case["result"])
    tools = builtin_tools(tmp_path, exec_enabled=True)
    name = "exec" if case["tool"] == "bash" else case["tool"]
    try:
        result = await call(tools, name, context_in(tmp_path), **case["args"])
    except ToolError as error:
        assert "error" in expected, str(error)
        assert str(error).startswith(ERROR_WORDS.get(case["note"], expected["error"]))
    else:
        _compare(case, shown(result), result, expected)
    for path, content in expected.get("filesAfter", {}).items():
        assert (tmp_path / path).read_bytes().decode() == content


def _compare(case, text, result, expected):
    note, tool = case["note"], case["tool"]
    assert result.is_error == ("error" in case["result"]["0.58.0"])
    if tool in SUCCESS_WORDS:
        assert text.startswith(SUCCESS_WORDS[tool])
        assert result.details == expected["details"]
    elif note in OWN_TEXTS:
        assert text == OWN_TEXTS[note]
    else:
        recorded = expected["content"][0]["text"]
        text = text.replace(str((result.details or {}).get("fullOutputPath")), "<TMPLOG>").replace("of 900 ", "of 901 ")
        if isinstance(recorded, dict):
            assert text.endswith(recorded["tail"])
            recorded, text = recorded["sha256"], hashlib.sha256(text.encode()).hexdigest()
        assert text == recorded
    if expected.get("details") and "truncation" in expected["details"]:
        cut = {k: v for k, v in expected["details"]["truncation"].items() if k != "content"}
        assert result.details["truncation"] == cut
    for path in [(result.details or {}).get("fullOutputPath")]:
        if path:
            Path(path).unlink()
