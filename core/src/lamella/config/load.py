"""Reading the configuration: defaults, then config.toml, then the workspace's lamella.toml (a short
list of harmless keys only), then the environment, then what the caller says.

Files are only ever read here. A file that cannot be parsed is an error that names line and column;
it is never taken for an empty one.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from lamella.config.schema import AgentSection, Settings
from lamella.config.secrets import shown
from lamella.config.structure import flatten, structure
from lamella.errors import ConfigError, Problem
from lamella.paths import Paths
from lamella.text.files import BOM

WORKSPACE_FILE = "lamella.toml"
# Enough for any use; a huge file could keep the parser busy for minutes.
WORKSPACE_FILE_BYTES = 20_000
# A repository that one opens is not trusted: it may only name the agent and ask for less context.
WORKSPACE_KEYS = {
    "agent.name": "any",
    "context.window": "lower",
}
ENVIRONMENT = {"LAMELLA_MODEL": "agent.model", "LAMELLA_WORKSPACE": "agent.workspace"}

Data = dict[str, Any]


@frozen(slots=True)
class Config:
    """Settings with the origin of each value that is not a default, and warnings met on the way."""

    settings: Settings
    origins: Mapping[str, str] = field(repr=False)
    problems: tuple[Problem, ...] = ()

    def origin(self, key: str) -> str:
        """Where a leaf's value comes from: a file, `environment NAME`, `command line` or `default`."""
        return _nearest(self.origins, key) or "default"

    def agent(self, agent_id: str) -> AgentSection:
        """The agent section of one agent: its own values over the general ones.

        Workspace and name belong to the main agent alone; another one has its own, or the default.
        """
        if agent_id in self.settings.agents:
            return self.settings.agents[agent_id]
        if agent_id == "main":
            return self.settings.agent
        return evolve(self.settings.agent, workspace="", name="")

    def leaves(self) -> list[tuple[str, Any, str]]:
        """(key, value, origin) of every setting; keys of secrets have their value hidden."""
        return [(k, shown(k, v), self.origin(k)) for k, v in flatten(self.settings)]


def load_config(
    paths: Paths,
    *,
    file: Path | None = None,
    workspace: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    strict: bool = False,
    builtin_only: bool = False,
) -> Config:
    """Read and check all layers. `overrides` maps dotted keys to values (the command line).

    `builtin_only` leaves out config.toml, so that only defaults and overrides count.

    Unknown keys are warnings, or errors with `strict`. Raises `ConfigError` with all faults.
    """
    environ = os.environ if environ is None else environ
    data: Data = {}
    origins: dict[str, str] = {}
    problems: list[Problem] = []
    main = file or paths.config_file
    there = main.exists() or main.is_symlink()  # a link that leads nowhere is an error, not an absent file
    layer = read_toml(main) if file is not None or (there and not builtin_only) else {}
    _merge(data, layer, str(main), origins)
    if there and not builtin_only and not layer and main.is_file() and not main.read_bytes().strip():
        # What a crash of another program may leave: never in silence the same as no file.
        problems.append(Problem("", "is empty; every setting has its default", str(main), "warning"))
    for name, key in ENVIRONMENT.items():
        if environ.get(name, "").strip():
            _put(data, key, environ[name].strip(), f"environment {name}", origins)
    for key, value in (overrides or {}).items():
        _put(data, key, value, "command line", origins)
    settings = _check(data, origins, problems)
    if workspace is not None and settings is not None:
        allowed = _workspace_layer(workspace, settings, problems)
        for key, value in allowed.items():
            _put(data, key, value, str(workspace / WORKSPACE_FILE), origins)
        settings = _check(data, origins, []) if allowed else settings
    errors = [p for p in problems if p.level == "error" or strict]
    if errors or settings is None:
        raise ConfigError(errors, hint="Run `lamella config check` after correcting it.")
    return Config(settings, origins, tuple(problems))


def read_toml(path: Path) -> Data:
    """A TOML file as data. Raises `ConfigError` that names file, line and column."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # reading a pipe or a device may never end
            raise ConfigError([Problem("", "is not a regular file", str(path))])
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError([Problem("", f"cannot be read: {error.strerror or error}", str(path))]) from error
    try:
        return tomllib.loads(raw.removeprefix(BOM).decode("utf-8").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        raise ConfigError([Problem("", f"is not UTF-8 (byte {error.start})", str(path))]) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([Problem("", f"is not valid TOML: {error}", str(path))]) from error
    except RecursionError:
        raise ConfigError([Problem("", "is nested too deeply", str(path))]) from None


def _check(data: Data, origins: Mapping[str, str], problems: list[Problem]) -> Settings | None:
    agents = data.get("agents")
    merged = dict(data)
    if isinstance(agents, Mapping):
        base = data.get("agent") if isinstance(data.get("agent"), Mapping) else {}
        merged["agents"] = {
            name: _own_agent(base or {}, section) if isinstance(section, Mapping) else section
            for name, section in agents.items()
        }
    settings, found = structure(Settings, merged)
    problems += [Problem(p.path, p.message, _origin(origins, p.path), p.level) for p in found]
    return settings


def _own_agent(base: Mapping[str, Any], section: Mapping[str, Any]) -> Data:
    # The workspace is what makes an agent its own; it is never shared by accident.
    return {**{k: v for k, v in base.items() if k not in ("workspace", "name")}, **section}


def _origin(origins: Mapping[str, str], key: str) -> str:
    """Where a key was set; for a table, where the first of its keys was."""
    key = key.partition("[")[0]
    below = next((origin for known, origin in origins.items() if known.startswith(f"{key}.")), "")
    return _nearest(origins, key) or below


def _nearest(origins: Mapping[str, str], key: str) -> str:
    """The origin of a key or of the closest table above it; empty when none has one."""
    while key and key not in origins:
        key = key.rpartition(".")[0]
    return origins.get(key, "")


def _merge(data: Data, layer: Mapping[str, Any], origin: str, origins: dict[str, str], path: str = "") -> None:
    for key, value in layer.items():
        full = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            below = data.setdefault(key, {})
            if isinstance(below, dict):
                _merge(below, value, origin, origins, full)
                origins.setdefault(full, origin) if not value else None
                continue
        data[key] = value
        origins[full] = origin


def _put(data: Data, key: str, value: Any, origin: str, origins: dict[str, str]) -> None:
    *parents, last = key.split(".")
    for parent in parents:
        below = data.setdefault(parent, {})
        if not isinstance(below, dict):
            return  # a wrong type in a lower layer, reported by the check
        data = below
    data[last] = value
    origins[key] = origin


def _workspace_layer(workspace: Path, settings: Settings, problems: list[Problem]) -> Data:
    """The keys of the workspace's lamella.toml that it may set; others are warned about."""
    file = workspace / WORKSPACE_FILE
    if not file.is_file():
        return {}
    if file.stat().st_size > WORKSPACE_FILE_BYTES:
        text = f"has more than {WORKSPACE_FILE_BYTES} bytes; ignored"
        problems.append(Problem("", text, str(file), "warning"))
        return {}
    allowed: Data = {}
    current = dict(flatten(settings))
    for key, value in _leaves(read_toml(file)):
        rule = WORKSPACE_KEYS.get(key)
        if rule is None:
            text = f"is not among the keys that a workspace may set ({', '.join(WORKSPACE_KEYS)}); ignored"
        elif rule == "lower" and not _lowers(value, current[key]):
            text = f"a workspace may only lower this (now {current[key]}, found {value!r}); ignored"
        elif rule == "any" and not isinstance(value, str):
            text = f"expected a string, found {value!r}; ignored"
        else:
            allowed[key] = value
            continue
        problems.append(Problem(key, text, str(file), "warning"))
    return allowed


def _leaves(data: Mapping[str, Any], path: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in data.items():
        full = f"{path}.{key}" if path else key
        found += _leaves(value, full) if isinstance(value, Mapping) else [(full, value)]
    return found


def _lowers(value: Any, limit: int) -> bool:
    """Whether a value is a limit below another one, of which 0 is none at all."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= (limit or value)
