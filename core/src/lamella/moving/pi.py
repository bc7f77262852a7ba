"""Moving in from Pi: its agent folder, `~/.pi/agent`, or any folder with transcripts of Pi.

    settings.json
    sessions/--<folder of the project>--/<time>_<session id>.jsonl

Transcripts have the same format here, so they are copied byte for byte, or used where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from lamella.errors import SessionError, UsageError
from lamella.models.registry import builtin_providers
from lamella.moving.entries import Incoming
from lamella.moving.files import Content, Move, regular_files
from lamella.moving.foreign import leaves, read_json5
from lamella.moving.openclaw_rules import PROVIDERS
from lamella.moving.plan import Plan
from lamella.moving.report import Item
from lamella.moving.settings import Setting
from lamella.moving.target import Target
from lamella.sessions.keys import is_session_id, normalize_key
from lamella.sessions.transcript import SessionFile
from lamella.text.days import parse_iso_ms

PROGRAM = "pi"
SETTINGS_NAME = "settings.json"

_MODEL = ("defaultProvider", "defaultModel")
_RULES = {
    "defaultThinkingLevel": "agent.thinking",
    "compaction.enabled": "compaction.enabled",
    "compaction.reserveTokens": "compaction.reserve_tokens",
    "compaction.keepRecentTokens": "compaction.keep_recent_tokens",
    "retry.enabled": "retry.enabled",
    "retry.maxRetries": "retry.max_retries",
    "retry.baseDelayMs": "retry.base_delay_ms",
    "steeringMode": "agent.steering_mode",
    "followUpMode": "agent.follow_up_mode",
}


def plan_pi(folder: Path, target: Target, agent_id: str, *, in_place: bool = False) -> Plan:
    """What an import does. Raises `UsageError` for a folder without transcripts, or, in place, with those of
    several projects."""
    base = folder / "sessions" if (folder / "sessions").is_dir() else folder
    found, told = _read_all(base)
    if not found and not (folder / SETTINGS_NAME).is_file():
        raise UsageError(f"{folder}: no folder of Pi (neither sessions nor {SETTINGS_NAME} are in it)")
    settings, left = convert_settings(read_json5(folder / SETTINGS_NAME))
    told = [*left, *told]
    if in_place:
        return _in_place(folder, found, settings, told, agent_id)
    place = target.sessions(agent_id)
    moves = tuple(
        Move("transcript", str(s.path), Content(s.path), place / f"{s.session_id}.jsonl", lock=True) for s in found
    )
    incoming = {place: tuple(s.incoming(agent_id, f"{s.session_id}.jsonl") for s in found)}
    return Plan(PROGRAM, folder, tuple(settings), moves, incoming, tuple(told))


def _in_place(
    folder: Path, found: Sequence[PiSession], settings: Sequence[Setting], told: Sequence[Item], agent_id: str
) -> Plan:
    places = {s.path.parent for s in found}
    if len(places) != 1:
        raise UsageError(
            f"{folder}: holds the sessions of {len(places)} projects, and only one folder can be used in place",
            hint="Name the folder of one project, such as ~/.pi/agent/sessions/--home-me-project--",
        )
    (place,) = places
    store = Setting("session.store", ("session", "store"), str(place))
    incoming = {place: tuple(s.incoming(agent_id, s.path.name) for s in found)}
    return Plan(PROGRAM, folder, (store, *settings), (), incoming, tuple(told), ("session.store",), in_place=True)


@frozen(slots=True)
class PiSession:
    """A transcript of Pi. `session_id` is its own, or that of its file where another file has it already."""

    path: Path
    session_id: str
    name: str
    updated_at: int

    def incoming(self, agent_id: str, file_name: str) -> Incoming:
        entry = {"sessionId": self.session_id, "sessionFile": file_name, "updatedAt": self.updated_at}
        named = {"displayName": self.name} if self.name else {}
        key = normalize_key(f"agent:{agent_id}:{PROGRAM}-{self.session_id}")
        return Incoming(key, {**entry, "chatType": "direct", **named})


def _read_all(base: Path) -> tuple[list[PiSession], list[Item]]:
    """The sessions of a folder and its sub-folders, oldest file names first, and what is none."""
    sessions: list[PiSession] = []
    told: list[Item] = []
    taken: set[str] = set()
    for found in regular_files(base, deep=True):
        if found.path.suffix != ".jsonl":
            continue
        try:
            session = None if found.problem else _read(found.path, taken)
        except (SessionError, OSError) as error:
            told.append(Item("transcript", str(found.path), "", "left_out", str(error)))
            continue
        if session is None:
            told.append(Item("transcript", str(found.path), "", "left_out", found.problem or "holds nothing"))
            continue
        taken.add(session.session_id.lower())
        sessions.append(session)
    return sessions, told


def _read(path: Path, taken: set[str]) -> PiSession | None:
    file = SessionFile.open(path, whole=True)
    lines = file.lines()
    if not lines:
        return None
    times = (parse_iso_ms(lines.entry(len(lines) - 1).timestamp), parse_iso_ms(file.header.timestamp))
    ids = (file.id, path.stem, *(f"{path.stem[:100]}-{n}" for n in range(2, len(taken) + 3)))
    session_id = next((i for i in ids if is_session_id(i) and i.lower() not in taken), "")
    if not session_id:
        raise SessionError(f"{path}: neither its session id nor its name can be a session id here")
    return PiSession(path, session_id, file.name or "", next((t for t in times if t is not None), 0))


def convert_settings(config: Mapping[str, Any]) -> tuple[list[Setting], list[Item]]:
    """Pi's settings.json as settings of lamella, and what has no counterpart."""
    settings = list(_model(config))
    done = _MODEL if settings else ()
    left = []
    for path, value in leaves(config):
        name = ".".join(path)
        if name in _RULES:
            settings.append(Setting(name, tuple(_RULES[name].split(".")), value))
        elif name not in done:
            why = "lamella does not know the provider" if name in _MODEL else "has no counterpart"
            left.append(Item("setting", name, "", "left_out", why))
    return settings, left


def _model(config: Mapping[str, Any]) -> Iterator[Setting]:
    provider, model = (config.get(name) for name in _MODEL)
    if isinstance(provider, str) and isinstance(model, str):
        ours = PROVIDERS.get(provider, provider)
        if ours in builtin_providers():
            yield Setting("defaultModel", ("agent", "model"), f"{ours}/{model}")
