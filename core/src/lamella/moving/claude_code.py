"""Moving in from Claude Code: its folder `~/.claude`, or any folder with its transcripts.

    projects/<folder of the project>/<session id>.jsonl

Its transcripts have another format, so they are converted and cannot be used in place.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from lamella.errors import UsageError
from lamella.moving.claude_lines import Conversion
from lamella.moving.entries import Incoming
from lamella.moving.files import Content, Found, Move, regular_files
from lamella.moving.plan import Plan
from lamella.moving.report import Item
from lamella.moving.target import Target
from lamella.sessions.keys import is_session_id, normalize_key

PROGRAM = "claude-code"
MEMORY_NAME = "CLAUDE.md"
_OF_SUBAGENT = "agent-"


def plan_claude_code(folder: Path, target: Target, agent_id: str) -> Plan:
    """What an import does. Raises `UsageError` for a folder without transcripts."""
    base = folder / "projects" if (folder / "projects").is_dir() else folder
    files = [found for found in regular_files(base, deep=True) if found.path.suffix == ".jsonl"]
    if not files:
        raise UsageError(f"{folder}: no folder of Claude Code (there are no transcripts in it)")
    place = target.sessions(agent_id)
    moves: dict[str, Move] = {}
    incoming: list[Incoming] = []
    told: list[Item] = []
    projects: set[str] = set()
    for found in files:
        conversion, problem = _read(found, moves)
        if conversion is None or conversion.header is None:
            told.append(Item("transcript", str(found.path), "", "left_out", problem or "nothing was said in it"))
            continue
        told += _left_out(found.path, conversion)
        projects.add(conversion.header["cwd"])
        content, name = Content(found.path, _converted), f"{conversion.session_id}.jsonl"
        moves[conversion.session_id] = Move("transcript", str(found.path), content, place / name, lock=True)
        incoming.append(_incoming(agent_id, conversion))
    told += _memory_files(folder, projects)
    return Plan(PROGRAM, folder, (), tuple(moves.values()), {place: tuple(incoming)}, tuple(told))


def _read(found: Found, taken: Collection[str]) -> tuple[Conversion | None, str]:
    """A file's conversion, or None and why there is none. `taken`: session ids that other files have."""
    if found.problem:
        return None, found.problem
    if found.path.name.startswith(_OF_SUBAGENT):
        return None, "the work of a sub-agent"
    if not is_session_id(found.path.stem):
        return None, "its name can be no session id here"
    if found.path.stem in taken:
        return None, "a session of this id is there twice"
    try:
        return _convert(found.path), ""
    except OSError as error:
        return None, f"cannot be read: {error.strerror or error}"


def _convert(file: Path) -> Conversion:
    conversion = Conversion(file.stem)
    with file.open("rb") as lines:
        for line in lines:
            conversion.add(line)
    return conversion


def _left_out(file: Path, conversion: Conversion) -> list[Item]:
    return [
        Item("other", str(file), "", "left_out", f"{count} lines {why}")
        for why, count in sorted(conversion.left_out.items())
    ]


def _converted(file: Path) -> bytes:
    return _convert(file).data()


def _incoming(agent_id: str, conversion: Conversion) -> Incoming:
    key = normalize_key(f"agent:{agent_id}:{PROGRAM}-{conversion.session_id}")
    named = {"displayName": conversion.title} if conversion.title else {}
    entry = {"sessionId": conversion.session_id, "sessionFile": f"{conversion.session_id}.jsonl"}
    return Incoming(key, {**entry, "updatedAt": conversion.updated_at, "chatType": "direct", **named})


def _memory_files(folder: Path, projects: set[str]) -> list[Item]:
    """Where CLAUDE.md lies: lamella reads AGENTS.md, and only people know what belongs there."""
    places = [folder, *(Path(project) for project in sorted(projects) if project)]
    return [
        Item("other", str(place / MEMORY_NAME), "", "left_out", "copy what should hold here into AGENTS.md")
        for place in places
        if (place / MEMORY_NAME).is_file()
    ]
