"""Moving in from OpenClaw: its state folder, `~/.openclaw`.

    openclaw.json                          settings, in JSON5
    workspace/, workspace-<agent>/         unless the settings name others
    agents/<agent>/sessions/               sessions.json, transcripts, archives

Nothing is written there, and nothing outside the folder is read unless the user says so (`follow`).
OpenClaw 2026.9 keeps its sessions in a database, which is not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from lamella.errors import SessionError, UsageError
from lamella.models.registry import builtin_providers
from lamella.moving.entries import Incoming, agent_key
from lamella.moving.files import Content, Move, regular_files
from lamella.moving.foreign import read_json5
from lamella.moving.openclaw_settings import agent_section, agent_sections, convert_settings, store_folder, workspace_of
from lamella.moving.plan import Plan
from lamella.moving.report import Item, Kind
from lamella.moving.settings import Setting
from lamella.moving.target import Target
from lamella.paths import expand
from lamella.sessions.archive import is_live_name, parse_archive_name
from lamella.sessions.index import INDEX_NAME, SessionIndex
from lamella.sessions.index_file import SessionEntry
from lamella.sessions.keys import DEFAULT_AGENT, is_session_id, slug_agent_id
from lamella.sessions.transcript import SessionFile

PROGRAM = "openclaw"
CONFIG_NAME = "openclaw.json"
_DATABASE = "openclaw-agent.sqlite"


def plan_openclaw(folder: Path, target: Target, *, follow: bool = False, in_place: bool = False) -> Plan:
    """What an import of a state folder does. Raises `UsageError` when it is none, and `ConfigError`."""
    if not (folder / CONFIG_NAME).is_file() and not (folder / "agents").is_dir():
        raise UsageError(f"{folder}: no state folder of OpenClaw (neither {CONFIG_NAME} nor agents/ is in it)")
    source = Source.open(folder, follow=follow)
    settings, left = convert_settings(source.config, builtin_providers())
    left += source.remarks()
    if in_place:
        where = list(source.places())
        required = tuple(".".join(s.ours) for s in where)
        return Plan(PROGRAM, folder, (*where, *settings), told=tuple(left), required=required, in_place=True)
    found = Collected(source, target)
    for agent_id in source.agents:
        found.add_workspace(agent_id)
    for agent_id, sessions in source.session_folders().items():
        found.add_sessions(agent_id, sessions)
    incoming = {place: tuple(entries) for place, entries in found.incoming.items()}
    return Plan(PROGRAM, folder, tuple(settings), tuple(found.moves.values()), incoming, (*left, *found.told))


@frozen(slots=True)
class Source:
    """A state folder of OpenClaw. `agents`: the folder name of each agent, by its id here."""

    folder: Path
    config: Mapping[str, Any]
    agents: Mapping[str, str]
    follow: bool

    @classmethod
    def open(cls, folder: Path, *, follow: bool) -> Source:
        config = read_json5(folder / CONFIG_NAME)
        names = [name for name, _ in agent_sections(config)]
        if (folder / "agents").is_dir():
            names += sorted(entry.name for entry in (folder / "agents").iterdir() if entry.is_dir())
        agents = {slug_agent_id(name): name for name in (*names, DEFAULT_AGENT)}
        return cls(folder, config, dict(sorted(agents.items())), follow)

    def may_read(self, path: Path) -> bool:
        """Whether a path lies in the folder, links followed, or the user said to look elsewhere."""
        return self.follow or path.resolve().is_relative_to(self.folder.resolve())

    def workspace(self, agent_id: str) -> Path:
        """An agent's workspace. One that is configured and gone is looked for by its name in the folder,
        which may have been copied from elsewhere."""
        default = self.folder / ("workspace" if agent_id == DEFAULT_AGENT else f"workspace-{agent_id}")
        configured = workspace_of(self.config, agent_id)
        if not configured:
            return default
        path = expand(configured)
        return self.folder / path.name if not path.is_dir() and path.name else path

    def store(self) -> str:
        """The folder of sessions, with `{agentId}` for the agent."""
        configured = store_folder(self.config)
        return str(expand(configured) if configured else self.folder / "agents" / "{agentId}" / "sessions")

    def session_folders(self) -> dict[str, Path]:
        """The folders of sessions that there are, each once, by the agent whose they are."""
        folders: dict[Path, str] = {}
        for agent_id, name in self.agents.items():
            path = Path(self.store().replace("{agentId}", name))
            if path.is_dir():
                folders.setdefault(path, agent_id)
        return {agent_id: path for path, agent_id in folders.items()}

    def places(self) -> Iterator[Setting]:
        """The settings that make lamella work in the folder itself. Raises `UsageError` when one would lead
        out of it and the user did not say so."""
        yield Setting("session.store", ("session", "store"), self._allowed(self.store()))
        for agent_id in self.agents:
            path = self.workspace(agent_id)
            if path.is_dir():
                above = agent_section(agent_id)
                yield Setting(f"workspace of {agent_id}", (*above, "workspace"), self._allowed(str(path)))

    def _allowed(self, path: str) -> str:
        if not self.may_read(Path(path)):
            raise UsageError(f"{path} lies outside {self.folder}", hint="--follow uses it all the same.")
        return path

    def remarks(self) -> Iterator[Item]:
        """What lies in the folder and is not taken over."""
        for name in self.agents.values():
            database = self.folder / "agents" / name / "agent" / _DATABASE
            if database.is_file():
                yield Item("other", str(database), "", "left_out", "sessions of 2026.9 are in a database, not in files")
        for entry in sorted((self.folder / "agents").glob("*/sessions")):
            if self.agents.get(slug_agent_id(entry.parent.name)) != entry.parent.name:
                yield Item("session", str(entry), "", "left_out", "another folder has the same agent id")
        if (self.folder / "skills").is_dir():
            why = "name it in plugins.config.skills.extra_dirs to use it"
            yield Item("other", str(self.folder / "skills"), "", "left_out", why)


@define(slots=True)
class Collected:
    """What was found in a folder so far: files by their target, entries by their sessions folder."""

    source: Source
    target: Target
    moves: dict[Path, Move] = field(factory=dict)
    incoming: dict[Path, list[Incoming]] = field(factory=dict)
    told: list[Item] = field(factory=list)

    def add_workspace(self, agent_id: str) -> None:
        folder, target = self.source.workspace(agent_id), self.target.workspace(agent_id)
        if not folder.is_dir() or folder.resolve() == target.resolve():
            return
        if not self.source.may_read(folder):
            self._leave("workspace", folder, "lies outside the folder; --follow takes it over too")
            return
        for found in regular_files(folder, deep=True):
            self._move("workspace", found.path, target / found.path.relative_to(folder), found.problem)

    def add_sessions(self, agent_id: str, folder: Path) -> None:
        if not self.source.may_read(folder):
            self._leave("session", folder, "lies outside the folder; --follow takes it over too")
            return
        if folder.resolve() == self.target.sessions(agent_id).resolve():
            return
        places = {path.resolve() for path in (folder, *self.source.session_folders().values())}
        for key, entry in self._index(folder).items():
            self._add_entry(agent_id, key, entry, _transcript(folder, entry, places))
        taken = {move.source for move in self.moves.values()}
        for found in regular_files(folder.resolve()):
            if str(found.path) not in taken:
                self._add_file(found.path, self.target.sessions(agent_id), found.problem)

    def _index(self, folder: Path) -> Mapping[str, SessionEntry]:
        file = folder / INDEX_NAME
        if file.is_symlink():
            self._leave("session", file, "is a symbolic link")
            return {}
        try:
            state = SessionIndex(folder).load()
        except SessionError as error:
            self._leave("session", file, str(error))
            return {}
        if state.damage is not None:
            self._leave("session", file, f"{state.damage.message}; {state.damage.recovered} entries were recovered")
        return state.sessions

    def _add_entry(self, agent_id: str, key: str, entry: SessionEntry, file: Path | None) -> None:
        try:
            ours = agent_key(agent_id, key)
        except UsageError as error:
            return self._leave("session", key, str(error))
        if file is None:
            return self._leave("session", key, "its transcript is not there")
        place = self.target.sessions(ours.agent_id)
        if not self._add_file(file, place):
            return self._leave("session", key, "its transcript cannot be taken over")
        self.incoming.setdefault(place, []).append(Incoming(ours.text, {**entry, "sessionFile": file.name}))
        return None

    def _add_file(self, file: Path, place: Path, problem: str = "") -> bool:
        """Take over a transcript or an archive; other files of the folder are OpenClaw's own."""
        live, archive = is_live_name(file.name), parse_archive_name(file.name) is not None
        if not live and not archive:
            return False
        kind: Kind = "transcript" if live else "archive"
        problem = problem or ("is a symbolic link" if file.is_symlink() else "") or (_unreadable(file) if live else "")
        return self._move(kind, file, place / file.name, problem, lock=live)

    def _move(self, kind: Kind, file: Path, target: Path, problem: str, *, lock: bool = False) -> bool:
        """Plan to carry a file over, unless there is a problem or another file goes to the same place."""
        planned = self.moves.get(target)
        if planned is not None and planned.source != str(file):
            problem = problem or f"goes to the same place as {planned.source}"
        if problem:
            self._leave(kind, file, problem)
            return False
        self.moves[target] = Move(kind, str(file), Content(file), target, lock)
        return True

    def _leave(self, kind: Kind, source: Path | str, reason: str) -> None:
        item = Item(kind, str(source), "", "left_out", reason)
        if item not in self.told:
            self.told.append(item)


def _transcript(folder: Path, entry: SessionEntry, places: Collection[Path]) -> Path | None:
    """The transcript of an entry: where its pointer leads, when that is one of the `places` (real paths of
    folders of sessions); else a file of that name in its own folder, since folders are moved; else the one
    of its id."""
    session_id, pointer = entry.get("sessionId"), entry.get("sessionFile")
    if not isinstance(session_id, str) or not is_session_id(session_id):
        return None
    named = [folder / pointer, folder / Path(pointer.replace("\\", "/")).name] if isinstance(pointer, str) else []
    for path in (*named, folder / f"{session_id}.jsonl"):
        if is_live_name(path.name) and path.is_file() and path.parent.resolve() in places:
            return path.parent.resolve() / path.name
    return None


def _unreadable(file: Path) -> str:
    """Why a file is no transcript; empty when it is one, however damaged."""
    try:
        SessionFile.open(file).close()
    except (SessionError, OSError) as error:
        return str(error)
    return ""
