"""The settings that the docs show for other programs start a server that answers."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_servers import over_stdio
from pages import ROOT, blocks, sections

from lamella.cli.mcp import mcp
from lamella.mcp.http import PATH, Place

PAGE = ROOT / "docs" / "how-to" / "use-over-mcp.md"
SETTINGS = [json.loads(block.text) for block in blocks(PAGE) if block.language == "json"]
SHELL = [line for block in blocks(PAGE) if block.language == "sh" for line in block.text.splitlines()]


def servers(value: Any) -> Iterator[dict[str, Any]]:
    """Every server in settings, however deep."""
    if isinstance(value, dict):
        if "command" in value or "url" in value:
            yield value
        else:
            for inner in value.values():
                yield from servers(inner)


ALL = [server for settings in SETTINGS for server in servers(settings)]
STARTED = [server for server in ALL if "command" in server]
ADDED = [shlex.split(line.partition(" -- ")[2]) for line in SHELL if line.startswith("claude mcp add ")]
COMMANDS = {(s["command"], *s["args"]): s.get("env", {}) for s in STARTED} | {tuple(words): {} for words in ADDED}


def test_every_host_has_settings() -> None:
    keys = {next(iter(s)) for s in SETTINGS}
    assert keys == {"mcpServers", "servers", "context_servers", "command"}
    assert len(STARTED) >= 6
    assert len(ADDED) == 1
    hosts = {"Claude Desktop", "Claude Code", "VS Code", "Cursor", "Zed", "Anything else"}
    assert hosts <= sections(PAGE.read_text(encoding="utf-8")).keys()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_a_command_line_in_the_docs_answers(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    program, door, *arguments = command
    assert (program, door) == ("lamella", "mcp")
    env = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path), **COMMANDS[command]}
    home = Path(env.pop("LAMELLA_HOME", str(tmp_path / "state")))
    async with over_stdio(*arguments, home=home, **env) as (_, hello):
        assert hello.server_info.name == "lamella"
        assert hello.capabilities.tools is not None


def test_addresses_in_the_docs_are_the_defaults() -> None:
    defaults = {option.name: option.default for option in mcp.params}
    assert (defaults["host"], defaults["port"]) == (Place().host, Place().port)
    address = f"http://{Place().host}:{Place().port}{PATH}"
    assert {server["url"] for server in ALL if "url" in server} == {address}
    assert set(re.findall(r"http://127\S*?(?=[`\"])", PAGE.read_text(encoding="utf-8"))) == {address}


def test_command_lines_in_the_docs_have_options_that_exist() -> None:
    known = {spelling for option in mcp.params for spelling in option.opts}
    lines = [line for line in SHELL if line.startswith("lamella mcp")]
    assert len(lines) == 2
    for line in lines:
        assert {word for word in shlex.split(line) if word.startswith("--")} <= known
